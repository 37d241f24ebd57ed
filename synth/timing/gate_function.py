"""Boolean functions in the syntax of Liberty files, as truth tables and in that of Verilog."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lark import Lark, Token, Tree
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


#: Operation -> how Verilog writes it.
_VERILOG = {
    "or_": "({} | {})",
    "xor": "({} ^ {})",
    "and_": "({} & {})",
    "not_": "~{}",
    "name": "{}",
    "constant": "1'b{}",
}


def _evaluated(part: Tree[Token] | Token, operations: Mapping[str, Callable[..., Any]]) -> Any:
    """What the operations make of a function, of the words in it first."""
    if isinstance(part, Token):
        return str(part)
    return operations[part.data](*(_evaluated(child, operations) for child in part.children))


def substituted(function: str, values: Mapping[str, object]) -> str:
    """``function`` with names replaced by constants, or by functions in parentheses."""
    return re.sub(r"[A-Za-z_][\w\[\]]*", lambda name: str(values.get(name[0], name[0])), function)


def verilog_expression(function: str) -> str:
    """``function``, of bits, in the syntax of Verilog.

    Raises:
        FunctionError: it can't be read.
    """
    operations = {name: text.format for name, text in _VERILOG.items()}
    return str(_evaluated(_tree(function), operations))


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
    ones = (1 << len(rows)) - 1
    columns = {
        name: sum(1 << row for row in rows if row >> place & 1) for place, name in enumerate(inputs)
    }
    operations: dict[str, Callable[..., int]] = {
        "or_": operator.or_,
        "xor": operator.xor,
        "and_": operator.and_,
        "not_": lambda table: ones ^ table,
        "name": columns.__getitem__,
        "constant": lambda digit: ones * int(digit),
    }
    try:
        return int(_evaluated(_tree(function), operations))
    except KeyError as error:
        name, names = error.args[0], ", ".join(inputs)
        raise FunctionError(f"{function!r}: {name} is not one of {names}") from None


@lru_cache(maxsize=4096)
def needed_inputs(table: int, inputs: int) -> int:
    """The inputs that a truth table of ``inputs`` inputs depends on, input ``i`` in bit ``i``."""
    return sum(
        1 << place
        for place in range(inputs)
        if any((table >> row ^ table >> (row ^ 1 << place)) & 1 for row in range(1 << inputs))
    )
