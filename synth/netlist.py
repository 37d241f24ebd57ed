"""Mapped netlists, read from Yosys JSON and joined across units."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hdl.clocks import CLOCK_PORTS

#: Ports of the clock and the reset.
CLOCK, RESET = "clk", "rst"
#: Clock and reset ports of all domains.
_TREES = frozenset(name for names in CLOCK_PORTS.values() for name in names)


@dataclass(frozen=True)
class Gate:
    """A cell: its name, its type, its unit, and pin -> bits of nets."""

    name: str
    kind: str
    unit: str
    pins: Mapping[str, tuple[int, ...]]

    def outputs(self, pin: str) -> bool:
        """Whether ``pin`` of a memory macro is an output."""
        return pin.startswith("r") and pin.endswith("_data")


@dataclass(frozen=True)
class Netlist:
    """A flat netlist. Clocks and resets are not inputs: they are trees that layout builds.

    Attributes:
        inputs, outputs: port -> bits.
        gates: all cells.
        trees: clock or reset port -> bits.
        constants: net -> its constant bit.
    """

    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    gates: tuple[Gate, ...]
    trees: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    constants: Mapping[int, int] = field(default_factory=dict)


def read_module(path: Path, name: str) -> dict[str, Any]:
    """Module ``name`` of the gzipped netlist that synthesis wrote to ``path``."""
    modules = json.loads(gzip.decompress(path.read_bytes()))["modules"]
    module: dict[str, Any] = modules[name]
    return module


class _Nets:
    """Numbers of nets, which can be merged later."""

    def __init__(self) -> None:
        self.parent: list[int] = []

    def new(self) -> int:
        self.parent.append(len(self.parent))
        return self.parent[-1]

    def find(self, net: int) -> int:
        parent = self.parent
        while parent[net] != net:
            parent[net] = parent[parent[net]]
            net = parent[net]
        return net

    def unite(self, a: int, b: int) -> None:
        self.parent[self.find(a)] = self.find(b)


def join(
    top: str, module: Callable[[str], dict[str, Any] | None], unit: Callable[[str], str]
) -> Netlist:
    """Join the netlists of several modules.

    Parameters:
        top: name of the outermost module.
        module: module name -> its netlist, or None for a cell or a macro.
        unit: module name -> unit of the module's own cells.
    """
    nets = _Nets()
    # Undefined values become 0.
    constant: dict[int | str, int] = {"0": nets.new(), "1": nets.new()}
    constant |= dict.fromkeys("xz", constant["0"])
    cells: list[tuple[str, str, str, dict[str, list[int]]]] = []

    def place(name: str, body: dict[str, Any], path: str) -> Callable[[int | str], int]:
        local = dict(constant)

        def net(bit: int | str) -> int:
            if bit not in local:
                local[bit] = nets.new()
            return local[bit]

        for cell, data in body["cells"].items():
            kind = data["type"]
            if kind == "$scopeinfo":
                continue
            inner = module(kind)
            if inner is None:
                pins = {pin: list(map(net, bits)) for pin, bits in data["connections"].items()}
                cells.append((path + cell, kind, unit(name), pins))
                continue
            theirs = place(kind, inner, f"{path}{cell}.")
            for port, bits in data["connections"].items():
                for mine, other in zip(bits, inner["ports"][port]["bits"], strict=True):
                    nets.unite(net(mine), theirs(other))
        return net

    body = module(top)
    assert body is not None
    local = place(top, body, "")

    def side(direction: str, tree: bool = False) -> Iterator[tuple[str, tuple[int, ...]]]:
        for name, port in body["ports"].items():
            if port["direction"] == direction and (name in _TREES) == tree:
                yield name, tuple(nets.find(local(bit)) for bit in port["bits"])

    gates = tuple(
        Gate(name, kind, of, {pin: tuple(map(nets.find, bits)) for pin, bits in pins.items()})
        for name, kind, of, pins in cells
    )
    constants = {nets.find(constant[digit]): int(digit) for digit in "01"}
    return Netlist(
        dict(side("input")), dict(side("output")), gates, dict(side("input", True)), constants
    )
