"""Synthesis targets: the flow of each, and the measures of its cells."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hdl.clock_gate import ALWAYS
from hdl.config import SramKind
from pe.config import PeConfig
from support.errors import unknown
from synth.errors import SynthesisError
from synth.timing.cell_library import CellLibrary

from .asic import (
    FLOPS_PREFIX,
    LIBERTY_PREFIX,
    NANGATE45,
    REGISTER_RULE,
    RESET_RULES,
    asic_recipes,
    drive_text,
    library_of,
    register_rule,
    reset_rules,
)
from .yosys import CellCount

#: A gate equivalent: the area of its two-input NAND gate, NAND2_X1, in square micrometres.
GATE_EQUIVALENT_UM2 = 0.798

#: A small library of generic standard cells: name -> area in square micrometres, function. Areas
#: are of the smallest drive strengths in the datasheet of the Nangate 45 nm Open Cell Library; the
#: ratios are typical, so counts are comparable with published ones. There is no full adder because
#: Yosys rarely finds a use for one, and adders come out smaller from gates.
CELLS: Mapping[str, tuple[float, str]] = {
    "BUF": (0.798, "A"),
    "INV": (0.532, "!A"),
    "NAND2": (0.798, "!(A & B)"),
    "NAND3": (1.064, "!(A & B & C)"),
    "NAND4": (1.330, "!(A & B & C & D)"),
    "NOR2": (0.798, "!(A | B)"),
    "NOR3": (1.064, "!(A | B | C)"),
    "NOR4": (1.330, "!(A | B | C | D)"),
    "AND2": (1.064, "(A & B)"),
    "AND3": (1.330, "(A & B & C)"),
    "AND4": (1.596, "(A & B & C & D)"),
    "OR2": (1.064, "(A | B)"),
    "OR3": (1.330, "(A | B | C)"),
    "OR4": (1.596, "(A | B | C | D)"),
    "XOR2": (1.596, "(A ^ B)"),
    "XNOR2": (1.596, "!(A ^ B)"),
    "MUX2": (1.862, "((A & !S) | (B & S))"),
    "AOI21": (1.064, "!((A & B) | C)"),
    "AOI22": (1.330, "!((A & B) | (C & D))"),
    "AOI211": (1.330, "!((A & B) | C | D)"),
    "AOI221": (1.596, "!((A & B) | (C & D) | E)"),
    "AOI222": (2.128, "!((A & B) | (C & D) | (E & F))"),
    "OAI21": (1.064, "!((A | B) & C)"),
    "OAI22": (1.330, "!((A | B) & (C | D))"),
    "OAI211": (1.330, "!((A | B) & C & D)"),
    "OAI221": (1.596, "!((A | B) & (C | D) & E)"),
    "OAI222": (2.128, "!((A | B) & (C | D) & (E | F))"),
}
#: The rising-edge flip-flop and its area; gates in front of it implement enable and reset.
FLIP_FLOP = "DFF"
_FLIP_FLOP_UM2 = 4.522


def liberty_text() -> str:
    """The library as Liberty text, areas in gate equivalents."""
    lines = ["library(vip_generic) {"]
    for name, (area, function) in CELLS.items():
        inputs = "".join(
            f" pin({pin}) {{ direction : input; }}"
            for pin in sorted(set(re.findall(r"[A-Z]", function)))
        )
        lines.append(
            f"  cell({name}) {{ area : {area / GATE_EQUIVALENT_UM2:.4f};{inputs}"
            f' pin(Y) {{ direction : output; function : "{function}"; }} }}'
        )
    lines.append(
        f"  cell({FLIP_FLOP}) {{ area : {_FLIP_FLOP_UM2 / GATE_EQUIVALENT_UM2:.4f};"
        ' ff(IQ, IQN) { clocked_on : "C"; next_state : "D"; }'
        " pin(C) { direction : input; clock : true; } pin(D) { direction : input; }"
        ' pin(Q) { direction : output; function : "IQ"; } }'
    )
    return "\n".join([*lines, "}"]) + "\n"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A target.

    Attributes:
        name: on the command line.
        summary: one line of description.
        sram: implementation of memories.
        recipes: commands of one flow or of several, of which each unit of standard cells gets one.
        files, liberty: of the flows; see :class:`synth.physical.yosys.Run`.
        aim_ns: longest path, with the library's wires, for which recipes are chosen.
        measures: keys of :meth:`count`, in the order of reports.
        types: measure -> prefix of a cell type's name -> contribution of one such cell.
        area: measure that is the area from the Liberty file, or "".
        free: cell types that don't count.
        library: standard cells, for area in units of their NAND gate and for timing; None for
            generic gates and FPGAs.
    """

    name: str
    summary: str
    sram: SramKind
    recipes: tuple[tuple[str, ...], ...]
    measures: tuple[str, ...]
    types: Mapping[str, Mapping[str, float]]
    files: Mapping[str, str] = field(default_factory=dict)
    liberty: str = ""
    area: str = ""
    free: tuple[str, ...] = ()
    library: CellLibrary | None = None
    aim_ns: float = 0.0

    def count(self, result: CellCount, boxes: frozenset[str]) -> dict[str, float]:
        """Each measure of a result; cells of types in ``boxes`` are counted elsewhere.

        Raises:
            SynthesisError: the target does not know how to count a cell.
        """
        total = dict.fromkeys(self.measures, 0.0)
        if self.area:
            unit = self.library.gate_um2 if self.library is not None else 1.0
            total[self.area] = result.area / unit
        for cell, number in result.cells.items():
            if cell in boxes or cell in self.free:
                continue
            counted = bool(self.area) and not cell.startswith("$")
            for measure, types in self.types.items():
                if cell in types:
                    total[measure] += types[cell] * number
                    counted = True
            if not counted:
                raise SynthesisError(f"target {self.name}: unknown cell type {cell}")
        return total


# Mapping for area: `amap` beats ABC's default by 10 % on this design, and Booth multipliers beat
# arrays by 30 %. Written inline (a comma is a space), since ABC can't open paths with spaces.
_MAPPING = "+strash;&get,-n;&fraig,-x;&put;scorr;dc2;dc2;dch,-f;amap,-m"
_LIBRARY = "generic.lib"
_ALWAYS = "always.v"
_DRIVE = "drive.constr"

_GENERIC = Target(
    name="generic",
    summary="gate equivalents (two-input NAND gates), memories apart",
    sram="macro",
    recipes=(
        (
            # Otherwise shared between all runs of this user, by file name.
            "libcache -scl -disable",
            # There are no clock gates.
            f"techmap -map {_ALWAYS}",
            "synth -top {top} -flatten -booth",
            f"dfflibmap -liberty {_LIBRARY}",
            f"abc -liberty {_LIBRARY} -script {_MAPPING}",
            "opt_clean",
        ),
    ),
    files={_LIBRARY: liberty_text(), _ALWAYS: ALWAYS},
    liberty=_LIBRARY,
    measures=("logic_ge", "ffs"),
    types={"ffs": {FLIP_FLOP: 1}},
    area="logic_ge",
)

_XC7 = Target(
    name="xc7",
    summary="Xilinx 7-series: LUTs (also those used as memory), flip-flops, DSP and 36 Kbit RAMs",
    sram="fpga",
    recipes=(
        (
            # Without cells that only users instantiate, which take half of the reading time.
            "read_verilog -lib -specify +/xilinx/cells_sim.v",
            "synth_xilinx -family xc7 -top {top} -flatten -noiopad -noclkbuf -run prepare:check",
        ),
    ),
    measures=("luts", "ffs", "dsps", "brams"),
    types={
        "luts": {
            **{f"LUT{inputs}": 1 for inputs in range(1, 7)},
            # An inverter that Yosys did not merge into a LUT needs one.
            "INV": 1,
            "SRL16E": 1,
            "SRLC32E": 1,
            "RAM32X1S": 1,
            "RAM64X1S": 1,
            "RAM32X1D": 2,
            "RAM64X1D": 2,
            "RAM128X1S": 2,
            "RAM128X1D": 4,
            "RAM256X1S": 4,
            "RAM32M": 4,
            "RAM64M": 4,
        },
        "ffs": dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), 1),
        "dsps": {"DSP48E1": 1},
        "brams": {"RAMB18E1": 0.5, "RAMB36E1": 1},
    },
    free=("CARRY4", "MUXF7", "MUXF8"),
)


#: Delay of a wire between lookup tables of ECP5 after routing, in ps. With a smaller value, mapping
#: regards block RAMs and carries as the longest paths, and saves area on paths of lookup tables.
_WIRE_PS = 1200


def ecp5_commands(period_ps: int = 0) -> tuple[str, ...]:
    """Yosys commands that map the module ``{top}`` to ECP5, flat and without pads.

    They are those of ``synth_ecp5``, except for the wire delay, which is 300 ps there.

    Parameters:
        period_ps: area is saved on paths of less; 0: on those shorter than the longest.
    """
    # Reading a word written in the same cycle gives an undefined value (hdl/sram.py), so the block
    # RAMs need no logic for that.
    synth = "synth_ecp5 -top {top} -no-rw-check"
    return (
        f"{synth} -run begin:map_luts",
        "techmap -map +/lattice/latches_map.v",
        f"abc9 -W {_WIRE_PS}" + (f" -D {period_ps}" if period_ps else ""),
        "clean",
        f"{synth} -run map_cells:json",
    )


_ECP5 = Target(
    name="ecp5",
    summary="Lattice ECP5: LUTs (also for carries and memory), flip-flops, DSP and 18 Kbit RAMs",
    sram="fpga",
    recipes=(ecp5_commands(),),
    measures=("luts", "ffs", "dsps", "brams"),
    types={
        # A carry cell is both lookup tables of a slice; a RAM of 16 x 4 is two slices and takes
        # the lookup tables of a third for its write port.
        "luts": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6},
        "ffs": {"TRELLIS_FF": 1},
        "dsps": {"MULT18X18D": 1},
        "brams": {"DP16KD": 1},
    },
    free=("PFUMX", "L6MUX21"),
)

_GOWIN = Target(
    name="gowin",
    summary="Gowin GW2A: LUTs (also for carries and memory), flip-flops, DSP and 18 Kbit RAMs",
    sram="fpga",
    # As for ECP5, reading a word written in the same cycle needs no logic. Pads are of boards.
    recipes=(("synth_gowin -top {top} -family gw2a -no-rw-check -noiopads -run begin:vout",),),
    measures=("luts", "ffs", "dsps", "brams"),
    types={
        # A RAM of 16 x 4 is four lookup tables, and takes two for its write port.
        "luts": {**{f"LUT{inputs}": 1 for inputs in range(1, 5)}, "ALU": 1, "RAM16SDP4": 6},
        "ffs": {f"DFF{kind}": 1 for kind in ("", "C", "CE", "E", "P", "PE", "R", "RE", "S", "SE")},
        "dsps": {"MULT9X9": 0.5, "MULT18X18": 1, "MULT36X36": 4},
        "brams": dict.fromkeys(("SP", "SPX9", "SDPB", "SDPX9B", "DPB", "DPX9B"), 1),
    },
    free=("GND", "VCC", *(f"MUX2_LUT{inputs}" for inputs in range(5, 9))),
)

#: Default targets of a report.
DEFAULT_TARGETS = ("generic", "xc7")

#: Name -> target.
TARGETS: Mapping[str, Target] = {target.name: target for target in (_GENERIC, _XC7, _ECP5, _GOWIN)}


def default_targets(config: PeConfig) -> tuple[str, ...]:
    """Those of :data:`DEFAULT_TARGETS` whose memories an engine can have."""
    return tuple(
        name for name in DEFAULT_TARGETS if TARGETS[name].sram != "fpga" or not config.shared_ports
    )


def check_target(name: str, devices: Sequence[str] = ()) -> None:
    """Refuse ``name`` unless it is one of :data:`TARGETS`, ``nangate45``, ``liberty:PATH``, one of
    those with macros after ``flops:``, or one of ``devices``.

    Raises:
        SynthesisError: the message names all.
    """
    names = (*TARGETS, NANGATE45)
    cells = name.removeprefix(FLOPS_PREFIX)
    if cells != name and cells in TARGETS and TARGETS[cells].sram != "macro":
        raise SynthesisError(f"target {name}: memories of {cells} are not made of flip-flops")
    if cells not in names and name not in devices and not cells.startswith(LIBERTY_PREFIX):
        what = "target or device" if devices else "target"
        shown = (*names, f"{LIBERTY_PREFIX}PATH", f"{FLOPS_PREFIX}TARGET", *devices)
        raise SynthesisError(unknown(what, name, shown))


def find_target(name: str) -> Target:
    """The target called ``name``: of :data:`TARGETS`, ``nangate45`` or ``liberty:PATH``; after
    ``flops:``, one with memories of flip-flops.

    Raises:
        SynthesisError: the target is unknown (the message names all), or the Liberty file unusable.
    """
    check_target(name)
    cells = name.removeprefix(FLOPS_PREFIX)
    target = TARGETS[cells] if cells in TARGETS else _asic(cells)
    return target if cells == name else replace(target, name=name, sram="behavioural")


def find_cells(name: str) -> tuple[Target, CellLibrary]:
    """The target of standard cells called ``name``, and its library; see :func:`find_target`.

    Raises:
        SynthesisError: the target is unknown, or has no standard cells.
    """
    target = find_target(name)
    if target.library is None:
        names = f"{NANGATE45}, {LIBERTY_PREFIX}PATH"
        raise SynthesisError(f"target {name!r} has no standard cells; there are: {names}")
    return target, target.library


#: Clock for which standard cells are mapped, with the library's wires.
AIM_MHZ = 1000.0


def _asic(name: str) -> Target:
    library, text = library_of(name)
    files = {_LIBRARY: text, _DRIVE: drive_text(library)}
    gates = any(cell.gates_clock and cell.usable for cell in library.cells.values())
    if gates:
        files[RESET_RULES] = reset_rules()
    rule = register_rule(library)
    if rule:
        files[REGISTER_RULE] = rule
    return Target(
        name=name,
        summary=f"standard cells of {library.name}: area and the longest paths",
        sram="macro",
        recipes=asic_recipes(_LIBRARY, _DRIVE, gate_clocks=gates, own_register=bool(rule)),
        files=files,
        liberty=_LIBRARY,
        measures=("logic_ge", "ffs"),
        types={"ffs": dict.fromkeys(library.flip_flops(), 1)},
        area="logic_ge",
        library=library,
        aim_ns=1000 / AIM_MHZ,
    )
