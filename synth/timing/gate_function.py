"""Boolean functions in the syntax of Liberty files, as truth tables and in that of Verilog."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from lark import Lark, Token, Transformer, Tree
from lark.exceptions import LarkError

from synth.errors import SynthesisError

#: Maximum inputs of a function, so that its truth table fits 64 bits.
MAX_INPUTS = 6

# Liberty's operators, loosest first: or, exclusive or, and (may be omitted), not (on either side).
_GRAMMAR = r"""
?either: differ | either ("+" | "|") differ -> or_
?differ: both | differ "^" both -> xor
?both: inverse | both ("&" | "*")? inverse -> and_
?inverse: atom | "!" inverse -> not_
?atom: "(" either ")" | atom "'" -> not_ | NAME -> name | CONSTANT -> constant
NAME: /[A-Za-z_][\w\[\]]*/
CONSTANT: /[01]/
%ignore /\s+/
"""
_PARSER = Lark(_GRAMMAR, start="either", parser="lalr")


class FunctionError(SynthesisError):
    """A function that can't be parsed; one line quotes it."""


class _Table(Transformer[Token, int]):
    """Evaluates subexpressions to truth tables, row ``n`` in bit ``n``."""

    def __init__(self, names: Mapping[str, int], ones: int) -> None:
        super().__init__()
        self._names = names
        self._ones = ones

    def or_(self, sides: list[int]) -> int:
        return sides[0] | sides[1]

    def xor(self, sides: list[int]) -> int:
        return sides[0] ^ sides[1]

    def and_(self, sides: list[int]) -> int:
        return sides[0] & sides[1]

    def not_(self, sides: list[int]) -> int:
        return self._ones ^ sides[0]

    def name(self, names: list[Token]) -> int:
        return self._names[str(names[0])]

    def constant(self, digits: list[Token]) -> int:
        return self._ones if digits[0] == "1" else 0


class _Verilog(Transformer[Token, str]):
    """Writes expressions in the syntax of Verilog."""

    def or_(self, sides: list[str]) -> str:
        return f"({sides[0]} | {sides[1]})"

    def xor(self, sides: list[str]) -> str:
        return f"({sides[0]} ^ {sides[1]})"

    def and_(self, sides: list[str]) -> str:
        return f"({sides[0]} & {sides[1]})"

    def not_(self, sides: list[str]) -> str:
        return f"~{sides[0]}"

    def name(self, names: list[Token]) -> str:
        return str(names[0])

    def constant(self, digits: list[Token]) -> str:
        return f"1'b{digits[0]}"


def substituted(function: str, values: Mapping[str, object]) -> str:
    """``function`` with names replaced by constants, or by functions in parentheses."""
    return re.sub(r"[A-Za-z_][\w\[\]]*", lambda name: str(values.get(name[0], name[0])), function)


def verilog_expression(function: str) -> str:
    """``function``, of bits, in the syntax of Verilog.

    Raises:
        FunctionError: it can't be read.
    """
    return _Verilog().transform(_tree(function))


def _tree(function: str) -> Tree[Token]:
    try:
        return _PARSER.parse(function)
    except LarkError:
        raise FunctionError(f"{function!r} is not a boolean function") from None


@lru_cache(maxsize=4096)
def truth_table(function: str, inputs: Sequence[str]) -> int:
    """Truth table of ``function``: bit ``n`` is its value when input ``i`` is bit ``i`` of ``n``.

    Parameters:
        function: as in a Liberty file, e.g. ``!(A1 & A2)``.
        inputs: names that it may use, a tuple of at most :data:`MAX_INPUTS`.

    Raises:
        FunctionError: it can't be read, uses other names, or has too many inputs.
    """
    if len(inputs) > MAX_INPUTS:
        raise FunctionError(f"{function!r}: {len(inputs)} inputs, at most {MAX_INPUTS} are allowed")
    rows = range(1 << len(inputs))
    names = {
        name: sum(1 << row for row in rows if row >> place & 1) for place, name in enumerate(inputs)
    }
    tree = _tree(function)
    for token in tree.scan_values(lambda leaf: isinstance(leaf, Token)):
        if token.type == "NAME" and token not in names:
            raise FunctionError(f"{function!r}: {token} is not one of {', '.join(inputs)}")
    return _Table(names, (1 << len(rows)) - 1).transform(tree)


@lru_cache(maxsize=4096)
def needed_inputs(table: int, inputs: int) -> int:
    """The inputs that a truth table of ``inputs`` inputs depends on, input ``i`` in bit ``i``."""
    return sum(
        1 << place
        for place in range(inputs)
        if any((table >> row ^ table >> (row ^ 1 << place)) & 1 for row in range(1 << inputs))
    )
