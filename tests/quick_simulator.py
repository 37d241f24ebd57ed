"""Amaranth's simulator, with processes that do less for what stays the same.

Of the registers and wires that a process drives, most keep their value in most cycles, but its
code calls a method for each, and looks each up in a list. With :func:`install` the code compares
first, and has what it reads and drives as local variables.
"""

import re

from amaranth.sim import _pyrtl

_HEAD = "def run():"
_UPDATE = re.compile(r"^( *)(slots\[\d+\])(\.update\((next_\d+), -?\d+\))$", re.MULTILINE)
_SLOT = re.compile(r"\bslots\[(\d+)\]")


def quick(code: str) -> str:
    """The code of a process with the same effects; other code as it is."""
    if not code.startswith(_HEAD):
        return code
    code = _UPDATE.sub(r"\1if \2.next != \4: \2\3", code)
    numbers = dict.fromkeys(_SLOT.findall(code))
    slots = ", ".join(f"slot_{number}=slots[{number}]" for number in numbers)
    return f"def run({slots}):" + _SLOT.sub(r"slot_\1", code.removeprefix(_HEAD))


def install() -> None:
    """Let all simulators of this process have quick processes."""
    _pyrtl._PythonEmitter.flush = lambda *arguments: quick(_FLUSH(*arguments))


_FLUSH = _pyrtl._PythonEmitter.flush
