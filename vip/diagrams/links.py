"""Units of a module and the bits that go from one to another, from its Verilog."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hdl.emission import Emission
from hdl.yosys import run_yosys
from soc.generate.designs import Configuration
from support.errors import Shown, VipError
from support.files import write_file
from support.scratch import scratch_folder

#: Names of a chip's tiles. Each has its own ports of the chip, so they keep their numbers.
TILE = re.compile(r"tile_(\d+)")

#: Clocks and resets go to every unit.
_EVERYWHERE = re.compile(r"(clk|rst)(_\w+)?")


class DiagramError(VipError):
    """A module that can't be drawn; one line."""


@dataclass(frozen=True, kw_only=True)
class Diagram(Shown):
    """The blocks of a module and the links between them, and their picture.

    Attributes:
        module: Verilog module.
        blocks: name -> its Verilog module; "" for a bundle of the module's ports. The name is that
            of the instance, without the number where there are several.
        numbers: block of several equal units -> how many they are.
        links: by names of blocks, sorted, the bits, 1 or more, that the first (or each of several)
            drives and the second reads, through gates or not. They are counted at the reader; each
            bit of the result of an operator between units counts for all units that it reads.
        config: of the design. path: of the picture. None: it is not drawn.
        least_bits: links of fewer are not drawn.
    """

    module: str
    blocks: Mapping[str, str]
    numbers: Mapping[str, int]
    links: Mapping[tuple[str, str], int]
    config: Configuration | None = None
    path: Path | None = None
    least_bits: int = 1

    @property
    def drawn(self) -> dict[tuple[str, str], int]:
        """The links that are drawn."""
        return {ends: bits for ends, bits in self.links.items() if bits >= self.least_bits}

    def neighbours(self, name: str) -> set[str]:
        """Blocks that have a link with the block ``name``."""
        return {target for source, target in self.links if source == name} | {
            source for source, target in self.links if target == name
        }

    def to_json(self) -> dict[str, object]:
        """The module's blocks and all its links as plain JSON data."""
        return {
            "module": self.module,
            "blocks": [
                {"name": name, "module": module, "number": self.numbers.get(name, 1)}
                for name, module in self.blocks.items()
            ],
            "links": [
                {"source": source, "target": target, "bits": bits}
                for (source, target), bits in self.links.items()
            ],
            "least_bits": self.least_bits,
        }


def find_links(emission: Emission, module: str | None = None) -> Diagram:
    """The units of a module and the links between them.

    Parameters:
        emission: of the design. module: of it; None: the top module.

    Raises:
        DiagramError: the design has no such module, or the module has no units.
        YosysError: Yosys failed.
        MissingExtraError: Yosys is not installed.
    """
    name = emission.top if module is None else module
    if name not in emission.modules:
        names = ", ".join(one for one in emission.modules if emission.instances[one])
        raise DiagramError(f"no module {name!r:.60}; modules with units are: {names}")
    if not emission.instances[name]:
        raise DiagramError(f"module {name} has no units")
    netlist = _netlist(emission, name)
    cells = {
        key: cell["type"]
        for key, cell in netlist["cells"].items()
        if not cell["type"].startswith("$")
    }
    bits = _bits(netlist, cells)
    return _joined(name, cells, bits)


def _netlist(emission: Emission, name: str) -> Any:
    with scratch_folder("links") as folder:
        write_file(folder / "design.v", "\n".join(emission.modules.values()))
        commands = [
            "read_verilog design.v",
            f"hierarchy -top {name}",
            f"select {name}",
            "proc",
            "opt_clean",
            "write_json -selected module.json",
        ]
        run_yosys(commands, purpose=f"links of {name}", folder=folder)
        result = (folder / "module.json").read_text(encoding="utf-8")
        return json.loads(result)["modules"][name]


def _bits(netlist: Any, cells: Mapping[str, str]) -> Counter[tuple[str, str]]:
    """Bits by driver and reader; ports are ``.name``."""
    numbered = any(map(TILE.fullmatch, cells))
    sources = _sources(netlist, cells, numbered)
    counted: Counter[tuple[str, str]] = Counter()

    def count(reader: str, port: str, bits: Iterable[int | str]) -> None:
        if _EVERYWHERE.fullmatch(port):
            return
        for bit in bits:
            for source in sources.get(bit, frozenset()) - {reader}:
                if not _EVERYWHERE.fullmatch(source[1:]):
                    counted[source, reader] += 1

    for name in cells:
        cell = netlist["cells"][name]
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                count(name, port, bits)
    for port, bits_of_port in netlist["ports"].items():
        if bits_of_port["direction"] == "output":
            count(_bundle(port, numbered), port, bits_of_port["bits"])
    return counted


def _sources(
    netlist: Any, cells: Mapping[str, str], numbered: bool
) -> dict[int | str, frozenset[str]]:
    """The units and ports on which each bit depends without a unit between."""
    drivers: dict[str, list[int]] = defaultdict(list)
    readers: dict[int, list[str]] = defaultdict(list)
    outputs: dict[str, list[int]] = {}
    for name, cell in netlist["cells"].items():
        ways = cell["port_directions"]
        ends: dict[str, list[int]] = {"input": [], "output": [], "inout": []}
        for port, bits in cell["connections"].items():
            ends[ways[port]] += [bit for bit in bits if isinstance(bit, int)]
        if name in cells:
            drivers[name] = ends["output"]
        else:
            outputs[name] = ends["output"]
            for bit in ends["input"]:
                readers[bit].append(name)
    for port, description in netlist["ports"].items():
        if description["direction"] == "input":
            drivers[_bundle(port, numbered)] += description["bits"]
    sources: dict[int | str, set[str]] = defaultdict(set)
    for source, driven in drivers.items():
        pending = list(driven)
        passed: set[str] = set()
        while pending:
            bit = pending.pop()
            if source not in sources[bit]:
                sources[bit].add(source)
                for cell in readers[bit]:
                    if cell not in passed:
                        passed.add(cell)
                        pending += outputs[cell]
    return {bit: frozenset(drivers) for bit, drivers in sources.items()}


def _bundle(port: str, numbered: bool) -> str:
    """The bundle of a port: ``control__stop`` is of ``.control``; with numbers ``dram__0__bank`` is
    of ``.dram_0``."""
    name, *rest = port.split("__")
    return f".{name}_{rest[0]}" if numbered and rest and rest[0].isdigit() else f".{name}"


def _joined(module: str, cells: Mapping[str, str], bits: Mapping[tuple[str, str], int]) -> Diagram:
    """Equal units as one block: of one module, with the same links, and none to each other."""
    kinds: dict[tuple[str, tuple[object, ...]], list[str]] = {}
    for name, kind in cells.items():
        away = sorted((to, n) for (source, to), n in bits.items() if source == name)
        back = sorted((source, n) for (source, to), n in bits.items() if to == name)
        kinds.setdefault((kind, (*away, None, *back)), []).append(name)
    new: dict[str, str] = {}
    blocks: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for (kind, _), names in kinds.items():
        apart = not any((one, other) in bits for one in names for other in names)
        groups = [names] if len(names) > 1 and apart else [[name] for name in names]
        for group in groups:
            stem = re.sub(r"_\d+$", "", group[0]) if len(group) > 1 else group[0]
            if stem in blocks:
                stem = group[0]
            blocks[stem] = kind
            if len(group) > 1:
                numbers[stem] = len(group)
            new |= dict.fromkeys(group, stem)
    for name in sorted({one for pair in bits for one in pair if one.startswith(".")}):
        stem = name[1:] if name[1:] not in blocks else f"port {name[1:]}"
        blocks[stem] = ""
        new[name] = stem
    renamed = {(new[source], new[target]): n for (source, target), n in bits.items()}
    links = dict(sorted(renamed.items()))
    return Diagram(module=module, blocks=blocks, numbers=numbers, links=links)
