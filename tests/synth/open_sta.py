"""The longest path of a mapped netlist according to OpenSTA, as a check of :mod:`synth.timing.sta`.

OpenSTA is optional: it runs if its command ``sta`` is installed. It gets the netlist with
flip-flops at the ports, the library's file, and a library of memories with the times of
:mod:`synth.sram`, so that both analyses time the same design.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath

from hdl.sram_macro import SramGeometry
from support.files import write_file
from support.processes import run_tool
from support.scratch import scratch_folder
from synth.errors import SynthesisError
from synth.layout import exchange
from synth.layout.clock_tree import clock_times
from synth.layout.parasitics import routed
from synth.layout.routing import Routes
from synth.netlist import CLOCK, Gate, Netlist
from synth.physical.targets import Target
from synth.sram import SramTimes
from synth.timing.cell_library import CellLibrary
from synth.timing.registers import RegisterCell, port_register
from synth.timing.sta import Path
from synth.timing.timer import CLOCK_SLEW_NS

#: Its command.
OPEN_STA = "sta"

_TOP = "vip_timing"
_CELLS, _MEMORIES, _NETLIST, _SCRIPT = "cells.lib", "memories.lib", "netlist.v", "timing.tcl"
_SPEF = "wires.spef"
#: The clock of registers at ports, where the other one has a tree.
_PORTS = "ports_clk"
#: A clock period in ns that is longer than any path; the path's length follows from the slack.
_PERIOD_NS = 100.0
_MINUTES = 10
#: The second load in fF, besides 0, for the table of a memory's linear delay.
_FAR_LOAD = 100.0

_STEP = re.compile(r"^\s*-?[\d.]+\s+(-?[\d.]+)\s+[v^]\s+(\w+)/\w+\s+\((\w+)\)", re.MULTILINE)
_WIRES = re.compile(r"^\s*default_wire_load\s*:.*$", re.MULTILINE)
_THRESHOLD = re.compile(r"\b(?:slew_derate_from_library|\w+_threshold_pct_\w+)\s*:[^;]*;")
_SLACK = re.compile(r"^\s*(-?[\d.]+)\s+slack", re.MULTILINE)


def find_open_sta() -> str | None:
    """Path of OpenSTA's command, or None if it is not installed."""
    return shutil.which(OPEN_STA)


def open_sta_path(
    netlist: Netlist,
    library: CellLibrary,
    text: str,
    macros: SramTimes,
    *,
    wires: bool = False,
    earliest: bool = False,
    spef: Iterable[str] = (),
    ports_ns: float | None = None,
    command: str,
) -> Path:
    """The longest path, like :func:`synth.timing.sta.longest_path`, or the earliest after its hold
    time, like :func:`synth.timing.sta.shortest_path`.

    Parameters:
        netlist: mapped to ``library``; cells of other types must be memory macros.
        library: with delay tables. text: of its Liberty file.
        macros: times of memories.
        wires: whether nets also have the library's default wire load.
        spef: lines of a SPEF file with the netlist's wires.
        ports_ns: when the clock comes at registers of ports, if it is a port and has a tree.
        command: path of OpenSTA's command.

    Raises:
        SynthesisError: OpenSTA fails or finds no path.
    """
    register = port_register(library)
    ports = [*_port_registers(netlist)]
    gates = dict(_named(netlist, ports))
    geometries = sorted(
        {SramGeometry.parse(g.kind) for g in netlist.gates if g.kind not in library.cells}
    )
    with scratch_folder("timing") as folder:
        # OpenSTA applies a library's default wire load unasked.
        used = text if wires else _WIRES.sub("", text)
        write_file(folder / _CELLS, used)
        data = register.cell.pins[register.data]
        write_file(folder / _MEMORIES, _memory_library(geometries, macros, data.edge_loads, text))
        write_file(folder / _NETLIST, "\n".join(_verilog(netlist, library, register, ports)))
        parasitics = "\n".join(_at_registers(spef, register, netlist))
        write_file(folder / _SPEF, parasitics)
        delay = "min" if earliest else "max"
        script = _script(bool(geometries), bool(parasitics), delay, ports_ns)
        write_file(folder / _SCRIPT, script)
        output = _run(command, folder)
    failed = [line for line in output.splitlines() if line.startswith("Error")]
    if failed or not _SLACK.search(output):
        raise SynthesisError(f"OpenSTA found no path: {' '.join(failed) or 'no message'}")
    slack, report = worst(output)
    ns = round(slack if earliest else _PERIOD_NS - slack, 4)
    # The report begins with the clock's pins, which are not a step.
    data_path = report.partition("data arrival time")[0]
    steps = []
    for time, cell, kind in _STEP.findall(data_path):
        gate = gates[cell]
        steps.append((Gate(gate.name, kind, gate.unit, gate.pins), round(float(time), 4)))
    if steps:
        steps[-1] = steps[-1][0], ns
    return Path(ns, tuple(steps))


def routed_path(
    netlist: Netlist, library: CellLibrary, cells: Target, routes: Routes, wire_ff: float
) -> Path:
    """The longest path of a routed netlist with the clock's tree, from our SPEF.

    Parameters:
        library, cells: what the netlist is mapped to. wire_ff: of a wire per um.
    """
    command = find_open_sta()
    assert command
    assert cells.liberty
    wires = routed(routes, library, wire_ff)
    return open_sta_path(
        netlist,
        library,
        cells.files[cells.liberty],
        SramTimes(library.node_nm),
        spef=exchange.to_spef(routes, _TOP, wire_ff),
        ports_ns=clock_times(netlist, library, wires).means()[-1],
        command=command,
    )


def worst(output: str) -> tuple[float, str]:
    """The least slack, and the report that ends in it. There is one for each group of paths: those
    of the clock at ports, and those of its tree."""
    *groups, _ = _SLACK.split(output)
    return min(zip(map(float, groups[1::2]), groups[::2], strict=True))


def _run(command: str, folder: FilePath) -> str:
    try:
        done = run_tool(
            [command, "-no_init", "-no_splash", "-exit", _SCRIPT],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_MINUTES * 60,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SynthesisError(f"OpenSTA ({command}) could not be run: {error}") from error
    return done.stdout.decode(errors="replace")


def _at_registers(spef: Iterable[str], register: RegisterCell, netlist: Netlist) -> Iterator[str]:
    """SPEF of which the ports are the pins of their flip-flops."""
    pins = {}
    places = enumerate(_port_registers(netlist))
    for ports in (netlist.inputs, netlist.outputs):
        for name, bits in _without_clock(ports):
            for bit in range(len(bits)):
                place, (_, _, port_name) = next(places)
                pin = register.output if port_name else register.data
                pins[f"{name}[{bit}]" if len(bits) > 1 else name] = f"p{place}:{pin}"
    for line in spef:
        words = line.removeprefix("*P ").split(" ")
        words = [pins.get(word, word) for word in words]
        yield " ".join(["*I", *words] if line.startswith("*P ") else words)


def _without_clock(ports: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, tuple[int, ...]]]:
    return ((name, bits) for name, bits in ports.items() if name != CLOCK)


def _script(memories: bool, spef: bool, delay: str, ports_ns: float | None) -> str:
    lines = [f"read_liberty {_CELLS}"]
    if memories:
        lines.append(f"read_liberty {_MEMORIES}")
    lines += [
        f"read_verilog {_NETLIST}",
        f"link_design {_TOP}",
        *([f"read_parasitics {_SPEF}"] if spef else []),
        "set_cmd_units -time ns",
        f"create_clock -name {CLOCK} -period {_PERIOD_NS} [get_ports {CLOCK}]",
        f"set_clock_transition {CLOCK_SLEW_NS} [get_clocks {CLOCK}]",
        *(() if ports_ns is None else _tree(ports_ns)),
        f"report_checks -path_delay {delay} -format full -digits 6",
    ]
    return "\n".join(lines) + "\n"


def _tree(ports_ns: float) -> Iterator[str]:
    """The clock comes through its tree, and to registers of ports without it."""
    yield f"set_propagated_clock [get_clocks {CLOCK}]"
    yield f"set_input_transition {CLOCK_SLEW_NS} [get_ports {CLOCK}]"
    yield f"create_clock -name {_PORTS} -period {_PERIOD_NS} [get_ports {_PORTS}]"
    yield f"set_clock_transition {CLOCK_SLEW_NS} [get_clocks {_PORTS}]"
    yield f"set_clock_latency {ports_ns} [get_clocks {_PORTS}]"


def _port_registers(netlist: Netlist) -> Iterator[tuple[Gate, int, bool]]:
    """For each bit of a port: a gate for its flip-flop, the bit, and whether it is an input."""
    for name, bits in _without_clock(netlist.inputs):
        for bit in bits:
            yield Gate(name, "", "input", {}), bit, True
    for name, bits in netlist.outputs.items():
        for bit in bits:
            yield Gate(name, "", "output", {}), bit, False


def _named(netlist: Netlist, ports: Iterable[tuple[Gate, int, bool]]) -> Iterator[tuple[str, Gate]]:
    """Names in the Verilog, and their gates."""
    yield from ((f"g{number}", gate) for number, gate in enumerate(netlist.gates))
    yield from ((f"p{number}", gate) for number, (gate, _, _) in enumerate(ports))


def _verilog(
    netlist: Netlist,
    library: CellLibrary,
    register: RegisterCell,
    ports: list[tuple[Gate, int, bool]],
) -> Iterator[str]:
    """The netlist with a flip-flop at each bit of a port; its outer side is not timed."""
    nets = {bit: f"1'b{value}" for bit, value in netlist.constants.items()}
    ports_clock = _PORTS if CLOCK in netlist.inputs else CLOCK
    trees = {bit: name for name, bits in netlist.trees.items() for bit in bits}
    trees |= dict.fromkeys(netlist.inputs.get(CLOCK, ()), CLOCK)
    outside = [f"p{number}_d" for number, (_, _, port_name) in enumerate(ports) if port_name]
    inputs = [*dict.fromkeys((CLOCK, ports_clock, *netlist.trees)), *outside]

    def net(bit: int) -> str:
        return trees.get(bit) or nets.setdefault(bit, f"n{bit}")

    def instance(kind: str, name: str, pins: Mapping[str, str]) -> str:
        connections = ", ".join(f".{pin}({wire})" for pin, wire in pins.items())
        return f"  {kind} {name} ({connections});"

    body = []
    for number, gate in enumerate(netlist.gates):
        wide = gate.kind not in library.cells
        pins = {
            f"{pin}_{place}" if wide and pin != CLOCK else pin: net(bit)
            for pin, bits in gate.pins.items()
            for place, bit in enumerate(bits)
        }
        body.append(instance(gate.kind, f"g{number}", pins))
    for number, (_, bit, port_name) in enumerate(ports):
        pins = {register.clock: ports_clock}
        pins |= {pin: f"1'b{value}" for pin, value in register.tied.items()}
        pins[register.data] = f"p{number}_d" if port_name else net(bit)
        if port_name:
            pins[register.output] = net(bit)
        body.append(instance(register.cell.name, f"p{number}", pins))
    yield f"module {_TOP} ({', '.join(inputs)});"
    yield from (f"  input {name};" for name in inputs)
    yield from (f"  wire {wire};" for wire in nets.values() if wire.startswith("n"))
    yield from body
    yield "endmodule\n"


def _memory_library(
    geometries: Iterable[SramGeometry],
    macros: SramTimes,
    loads: tuple[float, float],
    cells: str,
) -> str:
    """Liberty text of memory macros, with a pin for each bit.

    Parameters:
        loads: of an input at both edges, in fF.
        cells: text of the cells' library, whose edge thresholds apply to memories too.
    """
    lines = [
        "library (vip_memories) {",
        "  delay_model : table_lookup;",
        '  time_unit : "1ns";',
        "  capacitive_load_unit (1, ff);",
        *(f"  {threshold[0]}" for threshold in _THRESHOLD.finditer(cells)),
        "  lu_table_template (by_load) { variable_1 : total_output_net_capacitance;"
        f' index_1 ("0, {_FAR_LOAD}"); }}',
    ]
    for geometry in geometries:
        lines.append(f"  cell ({geometry.name}) {{ area : 0;")
        lines.append(
            f"    pin ({CLOCK}) {{ direction : input; clock : true; capacitance : {max(loads)}; }}"
        )
        ends = "".join(
            f'      timing () {{ related_pin : "{CLOCK}"; timing_type : {check}_rising;'
            f' rise_constraint (scalar) {{ values ("{ns:.6f}"); }}'
            f' fall_constraint (scalar) {{ values ("{ns:.6f}"); }} }}'
            for check, ns in (("setup", macros.setup_ns(geometry)), ("hold", 0.0))
        )
        for name, width, _, output in geometry.pins:
            for bit in range(width):
                if output:
                    lines.append(f"    pin ({name}_{bit}) {{ direction : output;")
                    lines.append(f"      {_launch(macros, macros.access_ns(geometry))} }}")
                else:
                    lines.append(
                        f"    pin ({name}_{bit}) {{ direction : input; capacitance : {max(loads)};"
                        f" rise_capacitance : {loads[0]}; fall_capacitance : {loads[1]};"
                    )
                    lines.append(f"{ends} }}")
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _launch(macros: SramTimes, access: float) -> str:
    points = [macros.drive(access, load) for load in (0.0, _FAR_LOAD)]
    tables = ""
    for place, names in enumerate(
        (("cell_rise", "cell_fall"), ("rise_transition", "fall_transition"))
    ):
        values = ", ".join(f"{point[place]:.6f}" for point in points)
        tables += "".join(f' {name} (by_load) {{ values ("{values}"); }}' for name in names)
    return f'timing () {{ related_pin : "{CLOCK}"; timing_type : rising_edge;{tables} }}'
