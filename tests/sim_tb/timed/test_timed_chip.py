"""The timing model of a chip takes the cycles of the Verilog, in every counter."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.program import Program
from isa.run import Launch, RunResult
from memory.axi.layout import AxiConfig
from microkernels.data.stereo import motorcycle
from pe.interface import PeCounter
from sim_tb.cosim.chip import AXI_LATENCY, ChipSession, ChipSimulation, run_launch
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import bp_job_on, run_on
from sim_tb.cosim.machine import open_machine
from sim_tb.timed.chip import chip_model
from sim_tb.timed.chip.chip_model import ChipModel, Workers
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset
from soc.host.driver import Host
from soc.host.transport import Blocking, BusError, run
from tests.sim_tb.cosim.test_chip_cosim import EXCHANGE, FAULT, PARAMETERS
from tests.sim_tb.cosim.test_chip_windows import CONFIG as WINDOWED
from tests.sim_tb.cosim.test_chip_windows import PROGRAM as WINDOWED_PROGRAM
from tests.sim_tb.cosim.test_chip_windows import WINDOWS

TINY = chip_preset("tiny")
#: Counters that the host reads in the Verilog up to 34 cycles after the events.
_BY_TIME = {"CYCLES", "REFRESHES", "REFRESH_BLOCKED"}
ENDLESS = assemble("loop: jmp loop\n")


def grid(columns: int, rows: int, base: ChipConfig = TINY, **network: Any) -> ChipConfig:
    return replace(base, network=replace(base.network, columns=columns, rows=rows, **network))


def traffic(config: ChipConfig, *, vaults: int, transfers: int) -> Program:
    """Loads and stores of random lengths between random addresses of all vaults and of the
    scratchpad, up to the vault ``vaults - 1``, existing or not."""
    bits = config.network.address_bits
    return assemble(f"""
        add r8, r1, r5
        mov r9, #{transfers}
        mov r21, #{vaults}
        mov r22, #{bits}
    again:
        sll r20, r8, #13
        add r8, r8, r20
        add r8, r8, #4321
        srl r10, r8, #4
        and r10, r10, #{(1 << (vaults - 1).bit_length()) - 1}
        blt r10, r21, there
        mov r10, #0
    there:
        sll r10, r10, r22
        srl r11, r8, #9
        and r11, r11, #8190
        add r10, r10, r11
        srl r12, r8, #7
        and r12, r12, #126
        add r12, r12, #1
        srl r13, r8, #17
        and r13, r13, #1023
        srl r14, r8, #29
        and r14, r14, #1
        beq r14, r0, store
        ld.sram [8-bit] r13, r10, r12
        jmp next
    store:
        st.sram [8-bit] r10, r13, r12
    next:
        sub r9, r9, #1
        bne r9, r0, again
        memfence
        halt
    """)


def on_axi(data_bits: int, outstanding: int, base: ChipConfig = TINY) -> ChipConfig:
    bus = AxiConfig(address_bits=20, tag_bits=6, data_bits=data_bits, outstanding=outstanding)
    return replace(base, tile=replace(base.tile, vault=bus))


def without_time(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in counters.items() if name not in _BY_TIME}


def same(model: RunResult, verilog: RunResult) -> None:
    assert model.faults == verilog.faults
    assert model.counters == verilog.counters
    assert (model.host_cycles, model.simulated_cycles) == (
        verilog.host_cycles,
        verilog.simulated_cycles,
    )
    for name in ("vaults", "network"):
        ours, theirs = (map(without_time, getattr(each, name)) for each in (model, verilog))
        assert list(ours) == list(theirs)


def both(
    config: ChipConfig, *runs: tuple[Program, int], axi_latency: int = AXI_LATENCY
) -> list[RunResult]:
    """Runs of programs with their parameters on both machines, after each other; the model's."""
    return both_with(config, image_of(config), *runs, axi_latency=axi_latency)[0]


def both_with(
    config: ChipConfig,
    data: Mapping[int, bytes],
    *runs: tuple[Program, int],
    axi_latency: int = AXI_LATENCY,
) -> tuple[list[RunResult], bytes]:
    """The same with ``data`` in the DRAM, by address, and what the DRAM holds afterwards."""
    found: list[list[RunResult]] = []
    contents = []
    for machine in (ChipModel, ChipSimulation):
        with (
            DramImage(config.memory_bytes) as image,
            machine(config, image, axi_latency=axi_latency) as chip,
        ):
            for address, content in data.items():
                image.write(address, content)
            found.append(
                [
                    run_launch(
                        chip, Launch(program=program, max_cycles=1_000_000, parameters=parameters)
                    )
                    for program, parameters in runs
                ]
            )
            chip.settle()
            contents.append(image.read(0, config.memory_bytes))
    for model, verilog in zip(*found, strict=True):
        same(model, verilog)
    assert contents[0] == contents[1]
    return found[0], contents[0]


def image_of(config: ChipConfig) -> dict[int, bytes]:
    """Data of engines with windows, by address; other programs bring their own."""
    if not config.tile.windows:
        return {}
    return {
        address: content
        for number, window in enumerate(WINDOWS)
        for address, content in (
            (window + 261, bytes((window // 7 + 3 * i) % 251 for i in range(300))),
            (window, number.to_bytes(8, "little")),
        )
    }


def test_engines_with_windows_on_axi_buses() -> None:
    results = both(WINDOWED, (WINDOWED_PROGRAM, 4), (WINDOWED_PROGRAM, 4))
    assert [len(result.faults) for result in results] == [1, 1]
    assert results[0].network == ()
    assert sum(vault["READS"] for vault in results[0].vaults) > 9 * 300 // 32


@pytest.mark.slow
@pytest.mark.parametrize(("data_bits", "outstanding"), [(64, 8), (128, 4), (256, 32)])
def test_memories_on_axi_buses(data_bits: int, outstanding: int) -> None:
    config = on_axi(data_bits, outstanding)
    program = traffic(config, vaults=4, transfers=300)
    for latency in (1, 25, 60):
        results = both(config, (EXCHANGE, PARAMETERS), (program, 7), axi_latency=latency)
        assert results[1].remote_share > 0.5
        assert results[1].vaults[0]["OCCUPANCY"] > results[1].vaults[0]["READS"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("base", [TINY, on_axi(64, 8)])
def test_a_single_vault(base: ChipConfig) -> None:
    config = grid(1, 1, base)
    (result,) = both(config, (traffic(config, vaults=1, transfers=300), 7))
    assert result.network[0]["LOCAL_REQUESTS"] > 300


def test_programs_and_faults_on_a_small_chip() -> None:
    results = both(
        TINY,
        (EXCHANGE, PARAMETERS),
        (FAULT, 2),
        (FAULT, 99),
        (traffic(TINY, vaults=4, transfers=150), 7),
    )
    assert [len(result.faults) for result in results] == [0, 1, 0, 0]
    assert results[3].remote_share > 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "vaults"),
    [
        (chip_preset("small"), 8),
        (grid(3, 2), 6),
        # Two of the vaults don't exist.
        (grid(3, 2), 8),
        # Rings of five have two virtual channels of each class.
        (grid(5, 1), 5),
        (grid(2, 6, packet_bytes=32, buffer_flits=16), 12),
    ],
)
def test_random_traffic(config: ChipConfig, vaults: int) -> None:
    program = traffic(config, vaults=vaults, transfers=300)
    results = both(config, (program, 3), (program, 1 << 12), (program, 77_777))
    assert all(bool(result.faults) == (vaults > config.vaults) for result in results)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "width", "height"),
    [(chip_preset("small"), 40, 24), (grid(3, 2), 20, 14), (grid(6, 1), 24, 8)],
)
def test_belief_propagation_takes_the_cycles_of_the_verilog(
    config: ChipConfig, width: int, height: int
) -> None:
    job = bp_job_on(motorcycle(width, height, 8).problem, 1, config)
    model, verilog = (run_on(job, config, on=on, preload=True) for on in ("model", "rtl"))
    assert model.match
    assert verilog.match
    same(model.result, verilog.result)


def with_lines(lines: int, base: ChipConfig = TINY, merges: int = 4) -> ChipConfig:
    return replace(base, tile=replace(base.tile, line_buffer=lines, line_merges=merges))


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [with_lines(8), with_lines(64, chip_preset("small"), 2), with_lines(16, on_axi(64, 8))],
)
def test_line_buffers(config: ChipConfig) -> None:
    vaults = config.vaults
    both(config, (EXCHANGE, PARAMETERS), (traffic(config, vaults=vaults, transfers=300), 7))


@pytest.mark.slow
def test_line_buffers_in_belief_propagation() -> None:
    config = with_lines(16)
    job = bp_job_on(motorcycle(24, 18, 8).problem, 1, config)
    model, verilog = (run_on(job, config, on=on, preload=True) for on in ("model", "rtl"))
    assert model.match
    same(model.result, verilog.result)


def test_lines_answer_reads_of_a_column_that_was_read() -> None:
    """Engines read one column forty times each: lines answer, the DRAM is read once."""
    program = assemble("""
        mov r9, #40
        mov r10, #2048
        mov r12, #32
    again:
        ld.sram [8-bit] r0, r10, r12
        sub r9, r9, #1
        bne r9, r0, again
        memfence
        halt
    """)
    lines = {}
    for config in (TINY, with_lines(8)):
        with DramImage(config.memory_bytes) as image, ChipModel(config, image) as chip:
            result = run_launch(chip, Launch(program=program, max_cycles=100_000))
            host = Host(Blocking(chip))
            lines[config.tile.line_buffer] = sum(
                sum(run(host.line_counters(vault)).values()) for vault in range(config.vaults)
            )
            columns = sum(vault["READS"] for vault in result.vaults)
            assert columns == (160 if not config.tile.line_buffer else 1)
    assert lines[0] == 0
    # Each engine's reads of vault 0: a fill, and the others from its line or waiting for it.
    assert lines[8] == 160


def test_scratchpads_stay_over_a_reset() -> None:
    into = assemble("""
        mov r8, #16
        st.reg [64-bit] r5, r1
        memfence
        ld.sram [8-bit] r8, r5, r8
        memfence
        halt
    """)
    back = assemble("""
        mov r8, #16
        add r9, r5, #256
        st.sram [8-bit] r9, r8, r8
        memfence
        halt
    """)
    found = []
    for machine in (ChipModel, ChipSimulation):
        with DramImage(TINY.memory_bytes) as image, machine(TINY, image) as chip:
            image.write(64, bytes(range(1, 17)))
            run_launch(chip, Launch(program=into, max_cycles=10_000, parameters=64), pes=[0])
            # One that runs is lost.
            host = Host(Blocking(chip))
            run(host.load(ENDLESS))
            run(host.launch([1, 2]))
            chip.reset()
            result = run_launch(
                chip, Launch(program=back, max_cycles=10_000, parameters=64), pes=[0]
            )
            chip.settle()
            found.append((result.counters, result.host_cycles, image.read(64, 512)))
    assert found[0] == found[1]
    assert found[0][2][256 + 8 : 256 + 16] == bytes(range(9, 17))


def test_results_do_not_depend_on_threads() -> None:
    program = traffic(TINY, vaults=4, transfers=300)
    found = []
    for threads in (1, 2, 3):
        with (
            DramImage(TINY.memory_bytes) as image,
            ChipModel(TINY, image, threads=threads) as chip,
        ):
            result = run_launch(chip, Launch(program=program, max_cycles=1_000_000, parameters=5))
            found.append((replace(result, seconds=0.0), image.read(0, TINY.memory_bytes)))
    assert found[0] == found[1] == found[2]


class RandomWorkers(Workers):
    """Another number of threads at each choice, at random."""

    def __init__(self, limit: int, seed: int) -> None:
        super().__init__(limit)
        self.limit = limit
        self.random = random.Random(seed)
        self.waits = 0
        self.counts: set[int] = set()

    def choose(self, now: float) -> int:
        count = self.random.randint(1, self.limit)
        self.counts.add(count)
        return count

    def waited(self, now: float, seconds: float) -> None:
        assert seconds > 0
        self.waits += 1


@pytest.mark.parametrize("at_once", [29, 1 << 13])
def test_results_do_not_depend_on_changes_of_threads(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where threads give up in the middle of a stretch, and the host stops an operation."""
    program = traffic(TINY, vaults=4, transfers=300)
    monkeypatch.setattr(chip_model, "_AT_ONCE", at_once)
    # Even waits of no time.
    monkeypatch.setattr(chip_model, "_PATIENCE", 0)
    outcomes = []
    for seed in (None, 1, 2):
        workers = Workers(1) if seed is None else RandomWorkers(3, seed)
        monkeypatch.setattr(chip_model, "Workers", lambda limit, workers=workers: workers)
        with (
            DramImage(TINY.memory_bytes) as image,
            ChipModel(TINY, image, threads=3) as chip,
        ):
            result = run_launch(chip, Launch(program=program, max_cycles=1_000_000, parameters=5))
            host = Host(Blocking(chip))
            run(host.load(ENDLESS))
            run(host.launch())
            for cycles in range(50, 60):
                chip.run(cycles)
                run(host.counters(cycles % 4))
            run(host.stop())
            chip.run(500)
            counters = [run(host.counters(pe)) for pe in range(4)]
            memory = image.read(0, TINY.memory_bytes)
            outcomes.append((replace(result, seconds=0.0), counters, chip.cycles, memory))
        if isinstance(workers, RandomWorkers):
            assert workers.counts == {1, 2, 3}
            assert workers.waits
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.fixture
def chip() -> Iterator[ChipModel]:
    with DramImage(TINY.memory_bytes) as image, ChipModel(TINY, image) as opened:
        yield opened


def test_host_stops_engines_that_do_not_end(chip: ChipSession) -> None:
    with pytest.raises(CosimError, match=r"PEs 0, 1, 2, 3 still run"):
        run_launch(chip, Launch(program=ENDLESS, max_cycles=20_000))
    host = Host(Blocking(chip))
    run(host.stop([1, 2]))
    chip.run(200)
    assert run(host.running()) == (0, 3)
    assert run(host.halted()) == (1, 2)
    run(host.stop())
    chip.run(200)
    assert run(host.running()) == ()
    # Only some of them are launched again.
    result = run_launch(
        chip, Launch(program=EXCHANGE, max_cycles=50_000, parameters=PARAMETERS), pes=[0, 2]
    )
    assert result.faults == ()


def test_counters_of_an_engine_that_runs(chip: ChipSession) -> None:
    with pytest.raises(CosimError, match="still run"):
        run_launch(chip, Launch(program=ENDLESS, max_cycles=5_000))
    host = Host(Blocking(chip))
    # Its first access also asks what chip it is.
    run(host.counters(0))
    before = set()
    for cycles in range(1, 41):
        chip.run(cycles)
        began = chip.cycles
        before.add(began - run(host.counters(0))[PeCounter.CYCLES])
    # They are of all cycles so far, also of those that the model puts off.
    assert len(before) == 1


def test_reading_the_counters_of_engines_that_run_changes_nothing() -> None:
    config = replace(TINY, tile=replace(TINY.tile, pes=2))
    job = bp_job_on(motorcycle(24, 16, 16).problem, 2, config)
    (launch,) = job.launches
    found = []
    for reads in (False, True):
        with DramImage(config.memory_bytes) as image, ChipModel(config, image) as chip:
            job.prepare(image)
            host = Host(Blocking(chip))
            run(host.load(launch.program))
            run(host.launch(parameters=launch.parameters))
            while run(host.running()):
                for pe in range(config.pes if reads else 0):
                    run(host.counters(pe))
                chip.run(101)
            found.append([run(host.counters(pe)) for pe in range(config.pes)])
    assert found[0] == found[1]
    assert all(counters[PeCounter.VECTOR_BUSY] for counters in found[0])


def test_registers_that_do_not_exist(chip: ChipSession) -> None:
    with pytest.raises(BusError, match="register 0xffffc was answered with DECERR"):
        chip.read32(0xFFFFC)
    with pytest.raises(BusError, match="SLVERR"):
        chip.write32(0x0, 1)
    with pytest.raises(BusError, match="SLVERR"):
        chip.write32(0x38, 0)
    assert run(Host(Blocking(chip)).identify()).pe_count == TINY.pes


def test_what_the_model_does_not_cover(chip: ChipModel) -> None:
    make = partial(ChipModel, image=chip.image)
    with pytest.raises(CosimError, match="no AXI buses for an outer host"):
        open_machine(TINY, "model", outer=True)
    with pytest.raises(CosimError, match="one chip at a time"), make(TINY):
        pass
