"""Syntax of a line of assembly: the parser and its syntax tree."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from isa.program import MAX_LINE, NAME_PATTERN
from support.errors import VipError

_SHIFTS = range(64)
#: Limit of intermediate results in expressions: without one, products of products would exhaust
#: memory.
RESULTS = range(-(1 << 127), 1 << 127)
_MAX_NUMBER_TEXT = 80
#: The operation that makes an expression a constant operand.
IMMEDIATE = "#"


class LineError(VipError):
    """A mistake in a line of assembly, at ``column`` (from 1)."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


@dataclass(frozen=True)
class Number:
    """A number."""

    value: int
    column: int

    def evaluate(self, constants: Mapping[str, int]) -> int:
        """Its value."""
        return self.value


@dataclass(frozen=True)
class Name:
    """A name: of a constant, a register or an alias of one, or a label."""

    text: str
    column: int

    def evaluate(self, constants: Mapping[str, int]) -> int:
        """The value of the constant.

        Raises:
            LineError: ``constants`` has no such name.
        """
        value = constants.get(self.text)
        if value is None:
            if not re.fullmatch(NAME_PATTERN, self.text):
                raise LineError(f"{self.text} is a register, written without #", self.column)
            raise LineError(f"no constant {self.text!r} is defined above this line", self.column)
        return value


@dataclass(frozen=True)
class Operation:
    """An operator with one or two operands; ``column`` is where the operation begins.

    Attributes:
        name: of its rule in the grammar, or :data:`IMMEDIATE`.
    """

    name: str
    operands: "tuple[Expression, ...]"
    column: int

    def evaluate(self, constants: Mapping[str, int]) -> int:
        """Its value.

        Raises:
            LineError: an unknown name, a division by zero, a shift outside 0..63, or a result
                beyond 128 bits.
        """
        values = [operand.evaluate(constants) for operand in self.operands]
        if self.name == "div" and values[1] == 0:
            raise LineError("division by zero", self.operands[1].column)
        if self.name in ("sll", "sra") and values[1] not in _SHIFTS:
            raise LineError(
                f"a constant can be shifted by 0 to 63, not by {values[1]}",
                self.operands[1].column,
            )
        result: int = _OPERATIONS[self.name](*values)
        if result not in RESULTS:
            raise LineError("this expression goes beyond 128 bits", self.column)
        return result


Expression = Number | Name | Operation


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


_OPERATIONS: dict[str, Callable[..., int]] = {
    "or_": operator.or_,
    "xor": operator.xor,
    "and_": operator.and_,
    "sll": operator.lshift,
    "sra": operator.rshift,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divide,
    "neg": operator.neg,
    "pos": operator.pos,
    IMMEDIATE: operator.pos,
    "invert": operator.invert,
}


@dataclass(frozen=True)
class Statement:
    """An instruction or directive as written.

    Attributes:
        mnemonic: its name, that of a directive with its dot; ``column`` is that of the name.
        operands: as written; a constant operand of an instruction is an operation
            :data:`IMMEDIATE`.
        width: text between the brackets, None without brackets; ``width_column`` is theirs.
    """

    mnemonic: str
    column: int
    operands: "tuple[Expression, ...]"
    width: str | None = None
    width_column: int = 0


#: A line: labels, then at most one instruction or directive.
Line = tuple[tuple[Name, ...], Statement | None]


def _column(token: Token) -> int:
    assert token.column is not None
    return token.column


@v_args(inline=True)
class _Builder(Transformer[Token, Line]):
    """Builds the tree; methods are named after the grammar's rules."""

    def start(self, *parts: Name | Statement) -> Line:
        labels = tuple(part for part in parts if isinstance(part, Name))
        bodies = [part for part in parts if not isinstance(part, Name)]
        return labels, bodies[0] if bodies else None

    def name(self, token: Token) -> Name:
        return Name(str(token), _column(token))

    def width(self, token: Token) -> Token:
        return token

    def operands(self, *operands: Expression) -> tuple[Expression, ...]:
        return operands

    def instruction(self, name: Token, *rest: Any) -> Statement:
        width = rest[0] if rest and isinstance(rest[0], Token) else None
        operands = rest[-1] if rest and isinstance(rest[-1], tuple) else ()
        return Statement(
            mnemonic=str(name),
            column=_column(name),
            operands=operands,
            width=None if width is None else str(width)[1:-1].strip(),
            width_column=0 if width is None else _column(width),
        )

    def directive(self, name: Token, *operands: Expression) -> Statement:
        return Statement(str(name), _column(name), operands)

    def immediate(self, hash_sign: Token, value: Expression) -> Operation:
        return Operation(IMMEDIATE, (value,), _column(hash_sign))

    def bare_number(self, token: Token) -> Operation:
        raise LineError(f"a constant operand is written #{token}", _column(token))

    def number(self, token: Token) -> Number:
        try:
            if len(token) > _MAX_NUMBER_TEXT:
                raise ValueError
            return Number(int(token, 0), _column(token))
        except ValueError:
            raise LineError(
                f"{str(token)[:_MAX_NUMBER_TEXT]!r} is not a number; numbers are decimal without "
                "leading zeros, 0x hexadecimal or 0b binary",
                _column(token),
            ) from None

    def __default__(self, data: Any, children: list[Expression], meta: Any) -> Operation:
        return Operation(str(data), tuple(children), meta.column)


@cache
def _parser() -> Lark:
    return Lark.open(
        "assembly.lark",
        rel_to=__file__,
        parser="lalr",
        maybe_placeholders=False,
        propagate_positions=True,
    )


_EXPECTED = {
    "NAME": "a name",
    "NUMBER": "a number",
    "HASH": "'#'",
    "COMMA": "','",
    "COLON": "':'",
    "RPAR": "')'",
    "LPAR": "'('",
    "WIDTH": "a width",
    "DIRECTIVE": "a directive",
    "$END": "the end of the line",
}


@lru_cache(maxsize=1 << 13)
def parse_line(text: str) -> Line:
    """The tree of a line of assembly (no line break in ``text``); cached, as programs repeat lines.

    Raises:
        LineError: a syntax error.
    """
    if len(text) > MAX_LINE:
        raise LineError(f"a line has at most {MAX_LINE} characters", MAX_LINE + 1)
    try:
        return _Builder().transform(_parser().parse(text))
    except VisitError as error:
        if isinstance(error.orig_exc, LineError):
            raise error.orig_exc from None
        if isinstance(error.orig_exc, RecursionError):
            raise _too_deep() from None
        raise
    except RecursionError:
        raise _too_deep() from None
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from None


def _too_deep() -> LineError:
    return LineError("the expression is nested too deeply", 1)


#: What is meant by characters that no line has.
_HINTS = {
    **dict.fromkeys("[]", "; a width is written like [16-bit]"),
    "=": "; write .equ NAME, value",
    "$": "; constants begin with #",
}


def _syntax_error(text: str, error: UnexpectedInput) -> LineError:
    if isinstance(error, UnexpectedCharacters):
        character = text[error.column - 1]
        hint = _HINTS.get(character, "")
        if character == "=" and "," in text[: error.column]:
            hint = "; constants begin with #"
        return LineError(f"unexpected {character!r}{hint}", error.column)
    assert isinstance(error, UnexpectedToken)
    token = str(error.token)
    if error.token.type in ("HASH", "SLASH") and not text[: error.column - 1].rstrip().endswith(
        ","
    ):
        code = text[: error.column - 1].strip()
        if not code or error.token.type == "SLASH" or text[error.column : error.column + 1] == " ":
            return LineError(f"unexpected {token!r}; comments begin with ;", error.column)
    if "COMMA" in error.expected and error.token.type in ("NAME", "NUMBER", "HASH"):
        return LineError(f"a comma is missing before {token!r}", error.column)
    if token.startswith(("[", "(")):
        return LineError(f"unexpected {token!r}; an address has no brackets", error.column)
    names = [_EXPECTED[name] for name in sorted(error.expected) if name in _EXPECTED]
    hint = f"; expected {' or '.join(names)}" if names else ""
    if error.token.type == "$END":
        code = text.partition(";")[0].rstrip()
        return LineError(f"the line ends too early{hint}", len(code) + 1)
    return LineError(f"unexpected {str(error.token)!r}{hint}", error.column)
