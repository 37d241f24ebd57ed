"""Pipeline logs and traces of events, compared with counters and the instruction set simulator."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import vip
from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.timing import VECTOR_LATENCY
from memory.controller.dram_port import DramCommand
from pe.interface import PeCounter
from sim_tb.cosim.engine import PeSimulation
from sim_tb.random.programs import random_program
from sim_tb.random.reference import simulator_of
from sim_tb.waves.cycles import read_cycles, signal_names
from sim_tb.waves.konata import konata_log
from sim_tb.waves.pipeline import CycleSpan, Follower, TracedInstruction
from sim_tb.waves.record import WINDOW, TraceError, read_record, trace_events
from sim_tb.waves.trace_events import TraceEvents
from soc.generate.presets import preset
from tests.sim_tb.waves.kanata import read_kanata
from tests.sim_tb.waves.trace_format import read_trace

GUIDE = Path(__file__).parents[3] / "docs" / "looking_at_runs.md"

VCD = """$timescale 1ps $end
$scope module top $end
 $var wire 1 ! clk $end
 $scope module unit $end
  $var wire 4 " many[0].part [3:0] $end
  $var wire 1 # one $end
 $upscope $end
$upscope $end
$enddefinitions $end
#0
0!
b0000 "
1#
#1
1!
b1010 "
#2
0!
0#
#3
1!
bx1x0 "
#4
0!
"""


def test_values_before_each_edge(tmp_path: Path) -> None:
    path = tmp_path / "a.vcd"
    path.write_text(VCD)
    assert list(signal_names(path)) == ["top.clk", "top.unit.many[0].part", "top.unit.one"]
    names = ["top.unit.many[0].part", "top.unit.one", "top.none"]
    assert list(map(list, read_cycles(path, "top.clk", names))) == [[0, 1, 0], [10, 0, 0]]


@pytest.mark.parametrize("text", ["", "no waveform\n", VCD])
def test_files_without_an_engine(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.vcd"
    path.write_text(text)
    with pytest.raises(TraceError, match=r"a\.vcd: n"):
        read_record(path)


def traced(pc: int, *stages: tuple[str, int], end: int, retired: bool = True) -> TracedInstruction:
    found = TracedInstruction(pc)
    for name, start in stages:
        found.enter(name, start)
    found.leave(end)
    found.end, found.retired = end, retired
    return found


def test_a_log_says_what_it_is_given() -> None:
    program = assemble("start: mov r9, #1\nadd r9, r9, r9\nhalt\n")
    engine = Follower()
    first = traced(0, ("F", 5), ("O", 6), ("I", 9), end=10)
    for cycle in (6, 7, 8):
        first.stall("register" if cycle < 8 else "arc", cycle)
    engine.found = [first, traced(1, ("F", 6), ("O", 9), end=10, retired=False)]
    one, two = read_kanata(konata_log(program, [engine]))
    assert one.left == "0: mov r9, #1"
    assert one.lanes[0] == [("F", 5, 6), ("O", 6, 9), ("I", 9, 10)]
    assert one.lanes[1] == [("register", 6, 8), ("arc", 8, 9)]
    assert "2 cycles for register; 1 cycles for arc" in one.hover
    assert (one.flushed, two.flushed, two.end) == (False, True, 10)


def test_a_trace_says_what_it_is_given() -> None:
    events = TraceEvents()
    process = events.process("engine")
    track = events.track(process, "unit")
    events.slice(process, track, CycleSpan("outer", 3, 9), {"pc": 1})
    events.slice(process, track, CycleSpan("inner", 4, 9))
    events.overlapping(process, "all", [CycleSpan("a", 1, 5), CycleSpan("a", 2, 4)])
    events.counter(process, "level", [(0, 0), (7, 3)])
    trace = read_trace(events.text())
    assert trace.slices["engine", "unit"] == [("outer", 3, 6), ("inner", 4, 5)]
    assert trace.overlapping["engine", "all"] == [("a", 1, 5), ("a", 2, 4)]
    assert trace.counters["engine", "level"] == [(0, 0), (7, 3)]


def test_the_format_refuses_slices_that_cross() -> None:
    events = TraceEvents()
    process = events.process("engine")
    track = events.track(process, "unit")
    events.slice(process, track, CycleSpan("first", 3, 9))
    events.slice(process, track, CycleSpan("second", 4, 10))
    with pytest.raises(AssertionError):
        read_trace(events.text())


def test_the_model_is_refused(tmp_path: Path) -> None:
    program = assemble("halt\n")
    for option, name in (
        ("pipeline", "a.log"),
        ("trace", "a.json"),
        ("trace", "a.fst"),
        ("trace", "a.vcd"),
    ):
        with pytest.raises(ValueError, match=f"{name}: the timing model writes no waveforms"):
            vip.cosim(program, on="model", **{option: tmp_path / name})


@dataclass
class Run:
    bp: Any
    log: str
    trace: str
    wave: Path


def run(folder: Path, config: str, **size: int) -> Run:
    """Belief propagation on the Verilog of ``config``, with all views."""
    scene = vip.stereo_pair(config=config, **size)
    paths = [folder / name for name in ("bp.log", "bp.json", "bp.vcd")]
    memory = vip.MemoryBehaviour(latency=60) if config == "pe" else None
    bp = vip.cosim_bp(
        config, scene, iterations=1, behaviour=memory, trace=paths[2], pipeline=paths[0]
    )
    record = read_record(paths[2])
    text = trace_events(record, bp.outcome.job.program, 102)
    assert bp.match
    return Run(bp, paths[0].read_text(), text, paths[2])


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("engine"), "pe", width=8, height=6)


@pytest.mark.slow
def test_stalls_are_those_of_the_counters(engine: Run) -> None:
    record = read_record(engine.wave)
    (follower,) = record.engines.values()
    counters = engine.bp.outcome.result.engine.counters
    for counter, cycles in follower.events.items():
        if counter.name.startswith(("ISSUED", "STALL")):
            assert cycles == counters[counter.name], counter.name
    found = engine.bp.to_json()["activity"]
    for name, windows in found["engines"]["pe"].items():
        assert sum(windows) == counters[name.upper().replace(" ", "_")]
    for parts in zip(*found["engines"]["pe"].values(), strict=True):
        assert sum(parts) <= found["interval_cycles"]
    trace = read_trace(engine.trace)
    issue = Counter[str]()
    for name, _, duration in trace.slices["pe", "issue"]:
        issue[name] += int(duration)
    assert sum(issue.values()) == counters["CYCLES"]
    assert issue["stall vector"] == counters["STALL_VECTOR"]
    busy = sum(duration for _, _, duration in trace.slices["pe", "vector unit"])
    assert busy == counters["VECTOR_BUSY"]
    flight = [value for _, value in trace.counters["pe", "requests in flight"]]
    assert flight[-1] == 0 < max(flight) <= preset("pe").load_store_queue


@pytest.mark.slow
def test_retired_instructions_are_those_of_the_simulator(engine: Run) -> None:
    job = engine.bp.outcome.job
    with DramImage(1 << 33) as memory:
        job.prepare(memory)
        simulator = Simulator(job.program, memory, parameters=job.parameters)
        path = [0]
        while simulator.step().state == "running":
            path.append(simulator.pc)
        assert simulator.run().cause is FaultCause.NONE
    log = read_kanata(engine.log)
    assert [int(each.left.split(":")[0]) for each in log if not each.flushed] == path
    stages = Counter("".join(name for name, _, _ in each.lanes[0]) for each in log)
    # Flushed ones end anywhere; a unit that is idle takes an instruction without a queue.
    retired = {"FOI", "FOIDVW", "FOIDQVW", "FOIDLM", "FOIDQLM", "FOID"}
    assert {
        "".join(name for name, _, _ in each.lanes[0]) for each in log if not each.flushed
    } <= retired
    assert stages["FOIDQVW"] > 100
    for each in log:
        for (_, _, end), (_, start, _) in pairwise(each.lanes[0]):
            assert start == end
        if each.lanes[0][-1][0] == "W":
            assert each.lanes[0][-1][2] - each.lanes[0][-1][1] == VECTOR_LATENCY - 1
    fetched = [each.lanes[0][0][1] for each in log]
    assert fetched == sorted(fetched)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    """Stalls and retired instructions, with faults at each stage."""
    config = preset("pe")
    program = random_program(seed, config)
    wave = tmp_path / "wave.vcd"
    with DramImage(1 << config.address_bits) as image:
        for address, content in program.windows:
            image.write(address, content)
        launch = program.launch
        with PeSimulation(config, trace=wave) as simulation:
            result = simulation.run(
                launch,
                image,
                memory=program.memory,
                scratchpad=program.scratchpad,
                identity=program.identity,
            ).engine
    (follower,) = read_record(wave).engines.values()
    for counter, cycles in follower.events.items():
        if counter.name.startswith(("ISSUED", "STALL")):
            assert cycles == result.counters[counter.name], counter.name
    path = []
    with DramImage(1 << config.address_bits) as image:
        for address, content in program.windows:
            image.write(address, content)
        simulator = simulator_of(program, config, image)
        done = 0
        while (outcome := simulator.run(0)).state == "running":
            pc = simulator.pc
            outcome = simulator.step()
            path += [pc] * (outcome.executed - done)
            done = outcome.executed
    assert [each.pc for each in follower.found if each.retired] == path


@pytest.mark.slow
def test_what_the_guide_says_of_the_log(engine: Run) -> None:
    guide = " ".join(GUIDE.read_text().split())
    log = read_kanata(engine.log)
    beats = sorted(stage[1:] for each in log for stage in each.lanes[0] if stage[0] == "V")
    pairs = pairwise(beats)
    gaps = sorted((late[0] - early[1] for early, late in pairs if late[0] > early[1]), reverse=True)
    assert f"no work for {sum(gaps)} cycles in {len(gaps)} gaps" in guide
    assert f"gaps, {gaps[0]}, {gaps[1]} and {gaps[2]} cycles" in guide
    drained = sum(
        end - start for each in log for name, start, end in each.lanes.get(1, ()) if name == "drain"
    )
    assert f"{drained} cycles of `drain`" in guide
    loads = [
        stage[2] - stage[1]
        for each in log
        for stage in each.lanes[0]
        if stage[0] == "M" and "ld.sram" in each.left
    ]
    assert f"have {min(loads)} to {max(loads)} cycles of `M`" in guide
    arc = [each for each in log if any(name == "arc" for name, _, _ in each.lanes.get(1, ()))]
    assert len(arc) == 1
    flight = read_trace(engine.trace).counters["pe", "requests in flight"]
    assert f"at or below {max(value for _, value in flight):.0f} here" in guide


@pytest.mark.slow
def test_a_vault(tmp_path: Path) -> None:
    found = run(tmp_path, "vault", width=12, height=8)
    record = read_record(found.wave)
    result = found.bp.outcome.result
    assert len(record.engines) == 4
    for engine, pe in zip(record.engines.values(), result.engines, strict=True):
        for counter in (PeCounter.STALL_REGISTER, PeCounter.STALL_ARC_CONFLICT):
            assert engine.events[counter] == pe.counters[counter.name]
    (vault,) = record.vaults.values()
    # The model counts on for a while after the last engine's end.
    for command in (DramCommand.ACT, DramCommand.READ, DramCommand.WRITE):
        assert vault.commands[command] == result.commands[command.name.lower()]
    trace = read_trace(found.trace)
    banks = [track for track in trace.slices if track[1].startswith("bank")]
    reads = sum(name == "read" for track in banks for name, _, _ in trace.slices[track])
    assert reads == result.commands["read"]
    assert {each.thread for each in read_kanata(found.log)} == {0, 1, 2, 3}
    guide = " ".join(GUIDE.read_text().split())
    columns = vault.commands[DramCommand.READ] + vault.commands[DramCommand.WRITE]
    assert f"{vault.commands[DramCommand.ACT]} rows are opened for {columns:,} columns" in guide


@pytest.mark.slow
def test_links_of_a_chip(tmp_path: Path) -> None:
    found = run(tmp_path, "tiny", width=8, height=8)
    record = read_record(found.wave)
    assert len(record.links) == 4 * found.bp.config.vaults
    assert all(len(counts) == -(-record.cycles // WINDOW) for counts in record.links.values())
    assert sum(map(sum, record.links.values())) >= found.bp.outcome.result.flits > 0
    assert read_trace(found.trace).counters
