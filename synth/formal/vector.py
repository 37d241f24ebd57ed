"""Correspondence of the vector unit's control and the scratchpad's ports.

This does not compare the results of the stages after the control: an engine without some
instructions omits stages, and has results earlier within the latency that programs rely on.
"""

from functools import partial

from amaranth.hdl import Cat, Const, Value

from hdl.component import Probes
from isa.launch import START_FX, START_MR, START_VL
from isa.table import Unit
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.vector.units import SPECIAL_PORTS

from .probes import CONTROL, DISPATCH, ISSUE, LSU
from .relation import Codes, Condition, Relation, View
from .rows import any_of, codes_of, command_values, held, is_set, matching

_SPECIAL = "|".join(port.name for port in SPECIAL_PORTS)
#: Registers after the control, and those of the scratchpad.
_BEHIND = (
    # A unit that shares its name with a signal gets a numeric suffix.
    rf"vector\.(vertical|horizontal|finish|{_SPECIAL})(\$\d+)?\..*",
    rf"vector\.control\.(operands|early|complete|write|function|{_SPECIAL}).*",
    r"scratchpad\..*",
)


def vector_relation(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """Add the rules of the vector unit to ``relation``."""
    relation.ignored += _BEHIND
    _scratchpad(relation)
    if not configs[1].rows_of(Unit.VECTOR):
        relation.invariant("the vector unit rests", _rests)
        return
    command_relation(relation, configs, CONTROL)
    _settings(relation, configs)


def _settings(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """A setting that nothing changes is the launch's, wherever the full engine stores it."""
    places: dict[str, Condition] = {
        ISSUE.settings: lambda v: Const(1, 1),
        f"{DISPATCH.instruction}.settings.vector": lambda v: (
            v[DISPATCH.occupied] & held(v, f"{DISPATCH.instruction}.vector").all()
        ),
        CONTROL.current: lambda v: v[CONTROL.running],
        CONTROL.waiting: lambda v: v[CONTROL.is_waiting],
    }

    def stays(name: str, start: int, f: View, t: View) -> Value:
        terms: list[Value] = [Const(1, 1)]
        for place, present in places.items():
            if f.has(f"{place}.{name}"):
                terms.append(~present(f) | (f[f"{place}.{name}"] == start))
        return Cat(terms).all()

    for name, start in (("vl", START_VL), ("mr", START_MR), ("fx", START_FX)):
        if f"set.{name}" in configs[0].instructions - configs[1].instructions:
            rule = f"{name.upper()} stays as a launch leaves it"
            relation.invariant(rule, partial(stays, name, start))


def _rests(f: View, t: View) -> Value:
    names = (CONTROL.running, CONTROL.is_waiting, CONTROL.unwritten, CONTROL.busy)
    return ~any_of(f[name] != 0 for name in names)


def _scratchpad(relation: Relation) -> None:
    """Both engines read and write the same places; data read by stores are assumed to be equal."""

    def together(enable: str, *values: str) -> None:
        def same(f: View, t: View) -> Value:
            if not t.has(enable):
                return f[enable] == 0
            terms = [f[enable] == t[enable]]
            terms += [(f[enable] == 0) | (f[name] == t[name]) for name in values if t.has(name)]
            return Cat(terms).all()

        relation.guarantee(f"{enable} agrees", same)

    data = LSU.read__data
    together(LSU.write__strobe, LSU.write__address, LSU.write__data)
    together(LSU.read__enable, LSU.read__address)
    together(CONTROL.read_first, CONTROL.address_first)
    together(CONTROL.read_second, CONTROL.address_second)
    relation.assume(
        "the scratchpad holds the same for stores",
        lambda f, t: f[data] == t[data] if t.has(data) else Const(1, 1),
    )


def command_relation(
    relation: Relation, configs: tuple[PeConfig, PeConfig], control: Probes
) -> Codes:
    """Add the rules for the instructions in the control, which has the probes ``control``, to
    ``relation``.

    Returns:
        The members that identify the instruction in the control.
    """
    rows = configs[1].rows_of(Unit.VECTOR)
    caps = Capabilities.of(configs[0]).vector

    def has_second(work: str, flag: str, v: View) -> Value:
        unary = caps.is_unary(held(v, f"{work}.kind"), held(v, f"{work}.vertical"))
        return v[flag] & ~unary

    works: dict[str, Codes | None] = {}
    for work, flag in ((control.current, control.running), (control.waiting, control.is_waiting)):
        present = partial(is_set, flag)
        relation.members_when(present, work)
        relation.when(partial(has_second, work, flag), f"{work}.second")
        works[work] = codes_of(f"{work}.", command_values, configs, rows, present)
        relation.add_codes(works[work])
    second = partial(has_second, control.current, control.running)
    relation.when(second, control.address_second)

    def bounded(f: View, t: View) -> Value:
        if not f.has(control.pass_index):
            return Const(1, 1)
        terms = [
            Cat(matching(f, f"{control.current}.", command_values(configs[0], row)[0])).all()
            & (f[control.pass_index] < row.passes)
            for row in rows
        ]
        return ~f[control.running] | any_of(terms)

    # Positions in the row of the current command.
    running = partial(is_set, control.running)
    relation.when(running, control.left, control.first_word, control.row_end)
    relation.invariant("no instruction has more passes than it needs", bounded)
    codes = works[control.current]
    assert codes is not None
    return codes
