"""Port tables of a component, for its documentation."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

from amaranth.hdl import Shape, Value
from amaranth.lib import data, wiring

from hdl.clocks import CLOCK_PORTS, ENGINE_DOMAIN

__all__ = ["PortField", "PortRow", "port_table", "ports_of", "verilog_names"]

#: Letters for the numbers in names of ports of arrays.
_LETTERS = "nmk"


class PortField(NamedTuple):
    """Bits of a port.

    Attributes:
        name: fields within fields are joined by a dot.
        low: lowest bit.
        bits: number of bits.
        signed: whether the value is two's complement.
        values: names of its values, "" without.
    """

    name: str
    low: int
    bits: int
    signed: bool
    values: str


class PortRow(NamedTuple):
    """A Verilog port, or all ports of an array that differ only in their numbers.

    Attributes:
        name: with a letter for each number of an array.
        counts: number of elements for each letter, from 0 on.
        is_input: seen from the component.
        bits: of one port.
        values: names of its values, "" without.
        fields: lowest first; empty if it is one value.
    """

    name: str
    counts: tuple[int, ...]
    is_input: bool
    bits: int
    values: str
    fields: tuple[PortField, ...]


def ports_of(component: "wiring.Component[Any]") -> tuple[PortRow, ...]:
    """The ports of ``component`` as emission names them, without clock and reset."""
    ports: dict[str, PortRow] = {}
    for path, member, signal in component.signature.flatten(component):
        indices = [step for step in path if isinstance(step, int)]
        letters = iter(_LETTERS)
        name = "__".join(next(letters) if isinstance(step, int) else str(step) for step in path)
        counts = tuple(index + 1 for index in indices)
        listed = ports.get(name)
        if listed is not None:
            counts = tuple(map(max, counts, listed.counts))
        ports[name] = PortRow(
            name=name,
            counts=counts,
            is_input=member.flow == wiring.In,
            bits=len(Value.cast(signal)),
            values=_values(member.shape),
            fields=tuple(_fields(member.shape, "", 0)),
        )
    return tuple(ports.values())


def _fields(shape: Any, prefix: str, low: int) -> Iterator[PortField]:
    if not isinstance(shape, data.Layout):
        return
    for name, field in shape:
        inner = list(_fields(field.shape, f"{prefix}{name}.", low + field.offset))
        if inner:
            yield from inner
        else:
            cast = Shape.cast(field.shape)
            values = _values(field.shape)
            start = low + field.offset
            yield PortField(f"{prefix}{name}", start, cast.width, cast.signed, values)


def _values(shape: Any) -> str:
    if not (isinstance(shape, type) and issubclass(shape, Enum)):
        return ""
    return ", ".join(f"{item.value} {item.name}" for item in shape)


def port_table(
    component: "wiring.Component[Any]", clocks: Sequence[str] = CLOCK_PORTS[ENGINE_DOMAIN]
) -> str:
    """Markdown table with a row per port, ``clocks`` first, each followed by one row per field."""
    rows = [
        "| port | direction | bits | meaning of bits |",
        "|---|---|---|---|",
        *(f"| `{name}` | in | 1 | |" for name in clocks),
    ]
    for port in ports_of(component):
        direction = "in" if port.is_input else "out"
        numbers = ", ".join(
            f"{letter} = 0..{count - 1}"
            for letter, count in zip(_LETTERS, port.counts, strict=False)
        )
        label = f"`{port.name}`" + (f", {numbers}" if numbers else "")
        rows.append(f"| {label} | {direction} | {port.bits} | {port.values} |")
        for field in port.fields:
            high = field.low + field.bits - 1
            bits = f"{high}:{field.low}" if field.bits > 1 else str(field.low)
            kind = "signed; " if field.signed else ""
            meaning = f"{kind}{field.values}".rstrip("; ")
            rows.append(f"| &nbsp;&nbsp;.{field.name} | | `[{bits}]` | {meaning} |")
    return "\n".join(rows) + "\n"


def verilog_names(port: PortRow) -> list[str]:
    """The names that ``port`` stands for."""
    names = [port.name]
    for letter, count in zip(_LETTERS, port.counts, strict=False):
        place = re.compile(rf"(?<=__){letter}(?=__|$)")
        names = [place.sub(str(index), name, count=1) for name in names for index in range(count)]
    return names
