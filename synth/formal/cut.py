"""A design cut at its registers, leaving only combinational logic.

Every register becomes an input (its value) and an output (its next value), as does every
synchronous read port of a memory. The contents of memories are not part of the cut.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

from amaranth.back import rtlil  # type: ignore[attr-defined]
from amaranth.lib import wiring

from hdl.yosys import YosysError, run_yosys
from support.files import write_file
from support.scratch import scratch_folder
from synth.errors import SynthesisError


class ProofError(SynthesisError):
    """A proof can't be set up or run; the message says what and why."""


#: Held while a design is elaborated: Amaranth is not thread-safe.
elaborating = Lock()
#: Prefixes of the ports that the cut adds.
NOW, NEXT, PROBE = "now:", "next:", "probe:"


class CutRegister(NamedTuple):
    """A register: its width in bits and the value after power-up and reset."""

    width: int
    init: int


class BitSlice(NamedTuple):
    """A member of a register or wire: name of the parent, lowest bit, width, and signedness."""

    parent: str
    low: int
    width: int
    signed: bool


class MemoryAccess(NamedTuple):
    """A memory's read or write port: its memory, and the widths of address and word. It has the
    ports ``name:enable`` (one bit) and ``name:address``; a read port also has ``now:name``, its
    current word, and a write port ``name:data``."""

    memory: str
    address: int
    width: int


@dataclass(frozen=True)
class CutDesign:
    """A design without its registers and memories.

    Attributes:
        text: RTLIL of one module named ``name``.
        name: of the module.
        inputs, outputs: of the design itself: port -> width.
        states: registers. reads, writes: memory ports. probes: internal wires exposed as outputs.
        fields: members of registers and wires.
    """

    text: str
    name: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    states: Mapping[str, CutRegister]
    reads: Mapping[str, MemoryAccess]
    writes: Mapping[str, MemoryAccess]
    probes: Mapping[str, int]
    fields: Mapping[str, BitSlice]

    def leaves(self, parent: str) -> dict[str, BitSlice]:
        """Innermost members of ``parent`` by name relative to it; itself ("") if it has none.
        Members of a union overlap."""
        inner = {name: field for name, field in self.fields.items() if field.parent == parent}
        prefixes = {name.rsplit(mark, 1)[0] for name in inner for mark in ".[" if mark in name}
        members = {
            name.removeprefix(parent).removeprefix("."): field
            for name, field in inner.items()
            if name not in prefixes
        }
        return members or {"": BitSlice(parent, 0, self.width(parent), False)}

    def given(self) -> dict[str, int]:
        """Outputs of the cut design -> their widths."""
        widths = {NEXT + name: state.width for name, state in self.states.items()}
        widths |= self.outputs
        widths |= {PROBE + name: width for name, width in self.probes.items()}
        for name, port in {**self.reads, **self.writes}.items():
            widths |= {f"{name}:enable": 1, f"{name}:address": port.address}
        return widths | {f"{name}:data": write.width for name, write in self.writes.items()}

    def width(self, name: str) -> int:
        """Bits of a register, of the word at a read port, or of a port."""
        if name in self.states:
            return self.states[name].width
        if name in self.reads:
            return self.reads[name].width
        return self.inputs[name] if name in self.inputs else self.outputs[name]


def cut(
    component: "wiring.Component[Any]",
    name: str,
    *,
    probes: tuple[str, ...] = (),
) -> CutDesign:
    """Elaborate ``component`` and cut it.

    Parameters:
        component: to cut. name: of its module.
        probes: names of wires to expose; those that the design lacks are ignored.

    Raises:
        ProofError: the component contains something that can't be cut.
    """
    with elaborating:
        text = rtlil.convert(component, name, emit_src=False)
    text = _MEMORY_INIT.sub("", text)
    with scratch_folder("cut") as folder:
        write_file(folder / "design.il", text)
        commands = [
            "read_rtlil design.il",
            f"hierarchy -top {name}",
            "proc -noopt -norom",
            "flatten -noscopeinfo",
            "write_rtlil flat.il",
        ]
        try:
            run_yosys(commands, purpose=f"flattening {name}", folder=folder)
        except YosysError as error:
            raise ProofError(str(error)) from error
        cutter = _Cutter((folder / "flat.il").read_text(encoding="utf-8"), name)
        return cutter.finish(probes)


def bits_of(name: str, width: int) -> list[str]:
    """Names of the bits of a port in a graph."""
    return [name] if width == 1 else [f"{name}[{bit}]" for bit in range(width)]


_MEMORY_INIT = re.compile(r"^  cell \$meminit_v2 .*?^  end\n", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"^  cell \\?(\$\w+) (\S+)\n(.*?)^  end\n", re.MULTILINE | re.DOTALL)
_CONNECT = re.compile(r"^    connect \\(\w+) (.*)$", re.MULTILINE)
_PARAMETER = re.compile(r"^    parameter (?:signed )?\\(\w+) (.*)$", re.MULTILINE)
_WIRE = re.compile(
    r"((?:^  attribute .*\n)*)^  wire(?: width (\d+))?((?: \w+)*?)((?: (?:input|output) \d+)?)"
    r"((?: signed)?) (\S+)\n",
    re.MULTILINE,
)
_INIT = re.compile(r"attribute \\init (\d+)'([01x]+|\S+)")
_ALIAS = re.compile(r"^  connect \\(\S+) \\(\S+)(?: \[(\d+)(?::(\d+))?\])?$", re.MULTILINE)
_WHOLE = re.compile(r"^  connect \\(\S+) \\(\S+)$", re.MULTILINE)
_INITIAL = re.compile(r"^  attribute \\init .*\n", re.MULTILINE)
_MEMORY = re.compile(r"^  memory .*\n", re.MULTILINE)


class _Cutter:
    """Reads the RTLIL of one flat module and replaces registers and memories by ports."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._added: list[str] = []
        self._connects: list[str] = []
        self._ports = 100_000
        self._states: dict[str, CutRegister] = {}
        self._reads: dict[str, MemoryAccess] = {}
        self._writes: dict[str, MemoryAccess] = {}
        self._widths: dict[str, int] = {}
        self._signed: set[str] = set()
        self._inits: dict[str, int] = {}
        self._inputs: dict[str, int] = {}
        self._outputs: dict[str, int] = {}
        for attributes, width, _, port, signed, wire in _WIRE.findall(text):
            if not wire.startswith("\\"):
                continue
            name_of_wire = wire[1:]
            self._widths[name_of_wire] = int(width or 1)
            if signed:
                self._signed.add(name_of_wire)
            if init := _INIT.search(attributes):
                self._inits[name_of_wire] = int(init[2].replace("x", "0"), 2)
            if port:
                ports = self._inputs if port.split()[0] == "input" else self._outputs
                ports[name_of_wire] = self._widths[name_of_wire]
        self._plain = self._read_plain(text)
        self._fields = self._read_fields(text)
        # No initial values remain.
        text = _MEMORY.sub("", _INITIAL.sub("", text))
        self._text = _CELL.sub(self._cell, text)

    def _read_fields(self, text: str) -> dict[str, BitSlice]:
        fields: dict[str, BitSlice] = {}
        for alias, parent, high, low in _ALIAS.findall(text):
            if alias.startswith((parent + ".", parent + "[")):
                width = self._widths[alias]
                place = int(low or high or 0)
                for register in {parent, self._plain.get(parent, parent)}:
                    name = register + alias.removeprefix(parent)
                    fields[name] = BitSlice(register, place, width, alias in self._signed)
        return fields

    def _read_plain(self, text: str) -> dict[str, str]:
        """Port of an instance -> its only other name within the instance. A register that drives
        only a port may get either name, depending on the rest of the design."""
        plain: dict[str, list[str]] = defaultdict(list)
        for alias, port in _WHOLE.findall(text):
            path, _, name = port.rpartition(".")
            if "__" in name and path == alias.rpartition(".")[0] and "__" not in alias:
                plain[port].append(alias)
        return {port: names[0] for port, names in plain.items() if len(names) == 1}

    def finish(self, probes: tuple[str, ...]) -> CutDesign:
        text = self._text
        seen = {wire: self._widths[wire] for wire in probes if wire in self._widths}
        for wire, width in seen.items():
            self._give(PROBE + wire, f"\\{wire}", width)
        place = text.rindex("\nend\n")
        text = text[:place] + "\n" + "\n".join(self._added + self._connects) + text[place:]
        return CutDesign(
            text=text,
            name=self._name,
            inputs={n: w for n, w in self._inputs.items() if n not in ("clk", "rst")},
            outputs=self._outputs,
            states=self._states,
            reads=self._reads,
            writes=self._writes,
            probes=seen,
            fields=self._fields,
        )

    def _port(self, name: str, width: int, direction: str) -> None:
        self._added.append(f"  wire width {width} {direction} {self._ports} \\{name}")
        self._ports += 1

    def _give(self, name: str, value: str, width: int) -> None:
        """Add an output ``name`` with ``value``, a signal in RTLIL."""
        self._port(name, width, "output")
        self._connects.append(f"  connect \\{name} {value}")

    def _take(self, name: str, wire: str, width: int) -> None:
        """Add an input ``name`` that drives ``wire``."""
        self._port(name, width, "input")
        self._connects.append(f"  connect {wire} \\{name}")

    def _cell(self, match: re.Match[str]) -> str:
        kind, _, body = match.groups()
        if kind not in ("$dff", "$memrd_v2", "$memwr_v2"):
            if kind.startswith(("$mem", "$dff", "$sdff", "$adff", "$dlatch")):
                raise ProofError(f"{self._name}: a cell {kind} can't be cut")
            return match[0]
        connects = dict(_CONNECT.findall(body))
        parameters = dict(_PARAMETER.findall(body))
        width = int(parameters["WIDTH"])
        if kind == "$dff":
            name = self._register(connects["Q"])
            self._states[name] = CutRegister(width, self._inits.get(name, 0))
            self._take(NOW + name, connects["Q"], width)
            self._give(NEXT + name, connects["D"], width)
            return ""
        memory = parameters["MEMID"].strip('"').removeprefix("\\\\")
        address = int(parameters["ABITS"])
        if kind == "$memrd_v2":
            name = self._wire(connects["DATA"])
            self._reads[name] = MemoryAccess(memory, address, width)
            self._take(NOW + name, connects["DATA"], width)
        else:
            name = f"{memory}:{sum(write.memory == memory for write in self._writes.values())}"
            self._writes[name] = MemoryAccess(memory, address, width)
            self._give(f"{name}:data", connects["DATA"], width)
        self._give(f"{name}:address", connects["ADDR"], address)
        self._give(f"{name}:enable", next(self._bits(connects["EN"])), 1)
        return ""

    def _register(self, signal: str) -> str:
        """The name of a register, without the number that distinguishes its wire from a port's."""
        wire = self._wire(signal)
        wire = self._plain.get(wire, wire)
        plain = re.sub(r"\$\d+$", "", wire)
        name = wire if plain in self._states else plain
        self._inits.setdefault(name, self._inits.get(wire, 0))
        return name

    def _wire(self, signal: str) -> str:
        if not re.fullmatch(r"\\\S+", signal):
            raise ProofError(f"{self._name}: a register or read port drives {signal!r}, not a wire")
        return signal[1:]

    @staticmethod
    def _bits(signal: str) -> Iterator[str]:
        """The bits of an enable, which are all one signal or constant."""
        if re.fullmatch(r"\d+'[01]+", signal):
            yield f"1'{signal[-1]}"
            return
        if not signal.startswith("{"):
            yield signal
            return
        yield from re.findall(r"\\\S+(?: \[\d+\])?|\$\S+(?: \[\d+\])?|1'[01]", signal)
