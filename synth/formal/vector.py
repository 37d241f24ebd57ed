"""Correspondence of the vector unit's control and of the ports of the scratchpad.

The results of the stages after the control are not compared here: an engine without some
instructions leaves out stages, and has results earlier within the latency that programs rely on.
"""

import re

from amaranth.hdl import Cat, Const, Value

from isa.launch import START_FX, START_MR, START_VL
from isa.table import Unit
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.vector.units import SPECIAL_PORTS

from .relation import Codes, Condition, Invariant, Relation, View
from .rows import any_of, codes_of, command_values, held

__all__ = ["command_relation", "vector_relation"]

_CONTROL = "vector.control."
_SPECIAL = "|".join(port.name for port in SPECIAL_PORTS)
#: Registers after the control, and those of the scratchpad.
_BEHIND = (
    # A unit whose name a signal has, too, gets a number after it.
    rf"vector\.(vertical|horizontal|finish|{_SPECIAL})(\$\d+)?\..*",
    rf"vector\.control\.(operands|early|complete|write|function|{_SPECIAL}).*",
    r"scratchpad\..*",
)


def vector_relation(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """Add the rules of the vector unit to ``relation``."""
    relation.ignored += _BEHIND
    _scratchpad(relation)
    if not configs[1].rows_of(Unit.VECTOR):
        relation.invariants.append(Invariant("the vector unit rests", _rests))
        return
    command_relation(relation, configs, _CONTROL)
    _settings(relation, configs)


def _settings(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """What nothing sets is what a launch leaves, wherever the full engine holds it."""
    places: dict[str, Condition] = {
        "issue.settings.": lambda v: Const(1, 1),
        "dispatch.instruction.settings.vector.": lambda v: (
            v["dispatch.occupied"] & held(v, "dispatch.instruction.vector").all()
        ),
        f"{_CONTROL}current.": lambda v: v[_CONTROL + "running"],
        f"{_CONTROL}waiting.": lambda v: v[_CONTROL + "is_waiting"],
    }

    def stays(f: View, name: str, start: int) -> Value:
        known = [(place + name, here) for place, here in places.items() if f.has(place + name)]
        return Cat(Const(1, 1), *(~here(f) | (f[own] == start) for own, here in known)).all()

    for name, start in (("vl", START_VL), ("mr", START_MR), ("fx", START_FX)):
        if f"set.{name}" in configs[0].instructions - configs[1].instructions:
            relation.invariants.append(
                Invariant(
                    f"{name.upper()} stays as a launch leaves it",
                    lambda f, t, name=name, start=start: stays(f, name, start),  # type: ignore[misc]
                )
            )


def _rests(f: View, t: View) -> Value:
    names = ("running", "is_waiting", "unwritten", "busy")
    return ~any_of(f[_CONTROL + name] != 0 for name in names)


def _scratchpad(relation: Relation) -> None:
    """Both engines read and write the same places; data read by stores are assumed to be equal."""

    def together(enable: str, *values: str) -> None:
        def same(f: View, t: View) -> Value:
            if not t.has(enable):
                return f[enable] == 0
            terms = [f[enable] == t[enable]]
            terms += [(f[enable] == 0) | (f[name] == t[name]) for name in values if t.has(name)]
            return Cat(terms).all()

        relation.guarantees.append(Invariant(f"{enable} agrees", same))

    port = "load_store.write__"
    together(port + "strobe", port + "address", port + "data")
    port = "load_store.read__"
    together(port + "enable", port + "address")
    together(_CONTROL + "read_first", _CONTROL + "address_first")
    together(_CONTROL + "read_second", _CONTROL + "address_second")
    relation.assumptions.append(
        Invariant(
            "the scratchpad holds the same for stores",
            lambda f, t: (
                f[port + "data"] == t[port + "data"] if t.has(port + "data") else Const(1, 1)
            ),
        )
    )


def command_relation(relation: Relation, configs: tuple[PeConfig, PeConfig], control: str) -> Codes:
    """Add the rules for the instructions in the control, whose registers have names that begin with
    ``control``, to ``relation``.

    Returns:
        The members that identify the instruction in the control.
    """
    rows = configs[1].rows_of(Unit.VECTOR)
    caps = Capabilities.of(configs[0]).vector
    inside = re.escape(control)
    works: Codes | None = None
    for name, flag in (("current", "running"), ("waiting", "is_waiting")):

        def here(v: View, flag: str = flag) -> Value:
            return v[control + flag]

        def second(v: View, flag: str = flag, name: str = name) -> Value:
            prefix = f"{control}{name}."
            unary = caps.is_unary(held(v, prefix + "kind"), held(v, prefix + "vertical"))
            return v[control + flag] & ~unary

        pattern = rf"{inside}{name}\."
        relation.gates += [(pattern + ".*", here), (pattern + "second", second)]
        prefix = f"{control}{name}."
        codes = codes_of(prefix, command_values, configs, rows, here)
        relation.add_codes(codes)
        if name == "current":
            works = codes
            relation.gates.append((rf"{inside}(address_)?second", second))

    def bounded(f: View, t: View) -> Value:
        if not f.has(control + "pass_index"):
            return Const(1, 1)
        terms = [
            Cat(
                f[f"{control}current.{name}"] == code
                for name, code in command_values(configs[0], row)[0].items()
                if f.has(f"{control}current.{name}")
            ).all()
            & (f[control + "pass_index"] < row.passes)
            for row in rows
        ]
        return ~f[control + "running"] | any_of(terms)

    # Places in the row of the current command.
    for name in ("left", "first_word", "row_end"):
        relation.gates.append((inside + name, lambda v: v[control + "running"]))
    relation.invariants.append(Invariant("no instruction has more passes than it needs", bounded))
    assert works is not None
    return works
