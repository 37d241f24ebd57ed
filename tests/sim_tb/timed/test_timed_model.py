"""The timing model takes the cycles of the Verilog, in every counter."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.run import EngineEnd, Launch
from memory.timing import DramTiming
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import ChipEngines
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError, MemoryBehaviour, PeSimulation, TooLong
from sim_tb.cosim.kernels import run_on, run_work
from sim_tb.cosim.machine import open_machine
from sim_tb.random.programs import random_config, random_program
from sim_tb.random.random_program import RandomProgram
from sim_tb.timed.engine.pe_model import PeModel
from sim_tb.timed.vault.vault_model import VaultModel
from soc.generate.presets import tile_preset
from soc.tile.config import VaultTileConfig
from tests.sim_tb.cosim.computing import waiting_program
from tests.sim_tb.cosim.test_cosim import SMALL
from vip.cli.app import main

#: What a result says of the cycles, and what it leaves.
_SAME = ("state", "cause", "memory_error", "cycles", "counters", "registers", "scratchpad")
SHARED = PeConfig(scratchpad_banks=16)
SMALL_SHARED = replace(SMALL, scratchpad_banks=16, instructions=SMALL.instructions - {"set.ws"})
ENDLESS = assemble("loop: jmp loop\n")


#: A launch of an engine, and the keyword arguments of its run.
Run = tuple[Launch, dict[str, Any]]


def run_of(program: RandomProgram, image: DramImage) -> Run:
    for address, content in program.windows:
        image.write(address, content)
    return program.launch, {
        "memory": program.memory,
        "reset": program.reset,
        "scratchpad": program.scratchpad,
    }


def differing(expected: EngineEnd, found: EngineEnd) -> list[str]:
    names = [name for name in _SAME if getattr(expected, name) != getattr(found, name)]
    if expected.cause and expected.pc != found.pc:
        names.append("pc")
    return names


def results_of_both(
    config: PeConfig, runs: Iterable[Callable[[DramImage], Run]]
) -> Iterator[EngineEnd]:
    """Ends of runs, each of them made for an image, one after the other on the Verilog and on the
    model: equal, with equal images after each."""
    size = 1 << config.address_bits
    with (
        PeSimulation(config) as verilog,
        PeModel(config) as model,
        DramImage(size) as first,
        DramImage(size) as second,
    ):
        for number, run in enumerate(runs):
            expected, found = (
                machine.run(launch, image, **options).engine
                for machine, image in ((verilog, first), (model, second))
                for launch, options in (run(image),)
            )
            assert differing(expected, found) == [], number
            assert next(first.differences(second), None) is None, number
            yield found


def results_of_random(config: PeConfig, programs: int) -> Iterator[EngineEnd]:
    """The same of random programs, some of them without a reset before."""
    made = (random_program(seed, config, disturbed=0.3) for seed in range(programs))
    return results_of_both(config, (partial(run_of, program) for program in made))


@pytest.mark.parametrize(
    ("config", "programs"),
    [
        (PeConfig(), 400),
        (SMALL, 200),
        (SMALL_SHARED, 24),
        pytest.param(SHARED, 400, marks=pytest.mark.slow),
        pytest.param(SMALL_SHARED, 200, marks=pytest.mark.slow),
    ],
    ids=["full", "small", "small-shared-few", "full-shared", "small-shared"],
)
def test_random_programs_take_the_cycles_of_the_verilog(config: PeConfig, programs: int) -> None:
    ends = {(found.cause, found.memory_error) for found in results_of_random(config, programs)}
    # Faults of most kinds, with memory errors and without; an engine of few instructions has fewer.
    assert len(ends) > (6 if len(config.rows) == len(PeConfig().rows) else 2)


@pytest.mark.parametrize("config", [SMALL, pytest.param(SMALL_SHARED, marks=pytest.mark.slow)])
def test_programs_that_wait_take_the_cycles_of_the_verilog(config: PeConfig) -> None:
    runs = (partial(run_of, waiting_program(seed, config)) for seed in range(100))
    states = Counter(end.state for end in results_of_both(config, runs))
    assert min(states["halted"], states["faulted"]) > 20


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 7, 8, 9, 13, 18, 21, 23, 24, 30, 31])
def test_random_engines(number: int) -> None:
    config = replace(random_config(number), sram="behavioural")
    test_random_programs_take_the_cycles_of_the_verilog(config, 300)


def test_a_kernel_takes_the_cycles_of_the_verilog() -> None:
    job = bp_job(motorcycle(16, 12, 16).problem, 1)
    memory = MemoryBehaviour(latency=60, stall=0.1, out_of_order=True)
    calls: list[int] = []
    with open_machine(PeConfig(), "model") as machine:
        found = run_work(job, machine, memory=memory, progress=calls.append)
    expected = run_on(job, PeConfig(), memory=memory)
    assert found.match
    assert found.result.engine.counters == expected.result.engine.counters
    assert found.result.cycles == expected.result.cycles
    assert found.result.elapsed_cycles == expected.result.elapsed_cycles


#: Of a vault's counters those that are read at other times than in the Verilog.
_BY_TIME = {"CYCLES", "REFRESHES", "REFRESH_BLOCKED"}


def same_on_vault(config: VaultTileConfig, *, width: int, height: int, iterations: int) -> None:
    job = bp_job(
        motorcycle(width, height, 8).problem,
        iterations,
        engines=ChipEngines(pes=config.pes, scratchpad_bytes=config.pe.scratchpad_bytes),
    )
    found, expected = (run_on(job, config, on=on) for on in ("model", "rtl"))
    assert found.match
    assert found.result.engines == expected.result.engines
    assert found.result.latencies == expected.result.latencies
    mine, theirs = found.result.windows, expected.result.windows
    assert sum(map(sum, mine)) == sum(map(sum, theirs)) > 0
    assert mine[: len(theirs)] == theirs[: len(mine)]
    for name, value in expected.result.vaults[0].items():
        if name not in _BY_TIME:
            assert found.result.vaults[0][name] == value, name


def test_a_vault_takes_the_cycles_of_the_verilog() -> None:
    same_on_vault(tile_preset("vault-small"), width=12, height=9, iterations=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"page_policy": "closed"},
        {"page_policy": "adaptive", "scheduler": "in-order", "address_map": "row-column-bank"},
        {
            "transaction_queue": 4,
            "command_queue": 2,
            "banks": 8,
            "timing": DramTiming(
                trrd_ns=6.0, tfaw_ns=40.0, turnaround_clocks=4, tcl_ns=20.0, tcwl_ns=9.0
            ),
        },
        {
            "address_map": "bank-row-column",
            "timing": DramTiming(trefi_ns=500.0, trfc_ns=60.0),
        },
    ],
)
def test_vaults_of_all_policies(changes: dict[str, Any]) -> None:
    base = tile_preset("vault-small")
    vault = replace(base.dram, **changes)
    # An engine that reaches less than the vault has a window for itself.
    pe = replace(base.pe, address_bits=vault.request_address_bits)
    config = replace(base, vault=vault, pe=pe)
    same_on_vault(config, width=10, height=8, iterations=2)


def test_a_program_on_a_vault_that_does_not_end() -> None:
    config = tile_preset("vault-small")
    with DramImage(config.vault.size_bytes) as image:
        message = r"^engine 0: <assembly>:.*: still running after 5,000 cycles"
        with pytest.raises(TooLong, match=message):
            VaultModel(config).run(Launch(program=ENDLESS, max_cycles=5000), image)
        fault = assemble("beq r3, r0, loop\nst.reg [64-bit] r1, r0\nloop: jmp loop\n")
        message = r"engine 1: <assembly>:2: st\.reg .*; engine 0: <assembly>:3: jmp loop: still"
        with pytest.raises(TooLong, match=message):
            VaultModel(config).run(Launch(program=fault, max_cycles=5000), image)


def test_jobs_that_do_not_fit(image: DramImage) -> None:
    endless = Launch(program=ENDLESS, max_cycles=9)
    with pytest.raises(CosimError, match=r"max_cycles must be from 1 .* not -1"):
        PeModel(PeConfig()).run(replace(endless, max_cycles=-1), image)
    with pytest.raises(CosimError, match="scratchpad contents of 3 bytes given for one of 4096"):
        PeModel(PeConfig()).run(endless, image, scratchpad=b"abc")
    config = tile_preset("vault-small")
    with pytest.raises(CosimError, match="3 engines can't be launched in a vault of 2"):
        VaultModel(config).run(endless, image, engines=3)
    with pytest.raises(CosimError, match="max_cycles must be from 1"):
        VaultModel(config).run(replace(endless, max_cycles=0), image)


def test_vaults_that_the_model_does_not_cover() -> None:
    with DramImage(1 << 20) as image, pytest.raises(CosimError, match="has no AXI back end"):
        VaultModel(tile_preset("vault-axi")).run(Launch(program=ENDLESS, max_cycles=100), image)


@pytest.fixture
def image() -> Iterator[DramImage]:
    with DramImage(1 << PeConfig().address_bits) as made:
        yield made


def test_a_program_that_does_not_end(image: DramImage) -> None:
    calls: list[int] = []
    launch = Launch(program=ENDLESS, max_cycles=3_000_000)
    with (
        PeModel(PeConfig()) as model,
        pytest.raises(TooLong, match="still running after 3,000,000 cycles"),
    ):
        model.run(launch, image, progress=calls.append)
    assert calls == [1 << 20, 2 << 20]
    # The host stops it.
    result = PeModel(PeConfig()).run(replace(launch, stop_after=500), image)
    assert result.elapsed_cycles < 700


def test_what_the_model_does_not_cover(tmp_path: Path, image: DramImage) -> None:
    with pytest.raises(CosimError, match="has registers of 64 bits, not of 40"):
        PeModel(PeConfig(register_width=40))
    with pytest.raises(CosimError, match="no built-in program"):
        PeModel(PeConfig(program=ENDLESS.words))
    with pytest.raises(CosimError, match=r"wave\.vcd: the timing model writes no waveforms"):
        open_machine(PeConfig(), "model", trace=tmp_path / "wave.vcd")
    launch = Launch(program=ENDLESS, max_cycles=100, limits=(1, 1))
    with pytest.raises(CosimError, match="limits can only be given to a watched engine"):
        PeModel(PeConfig()).run(launch, image)


def test_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def call(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["vip", "cosim", "bp", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    found = []
    for on in ("rtl", "model"):
        report = tmp_path / f"{on}.json"
        size = ["--width", "8", "--height", "6", "--iterations", "1"]
        assert call("--on", on, *size, "--json", str(report)) == 0
        assert ("the timing model" in capsys.readouterr().out) == (on == "model")
        found.append(json.loads(report.read_text()))
    assert [each.pop("machine") for each in found] == ["rtl", "model"]
    for each in found:
        each.pop("provenance")  # has the command
        each.pop("simulation_seconds")
        each.pop("simulated_cycles_per_second")
    assert found[0] == found[1]
    assert call("--preset", "fpga", "--on", "model", *size) == 0
    assert "the timing model" in capsys.readouterr().out


def test_command_on_a_chip(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source, memory, report = tmp_path / "s.s", tmp_path / "m", tmp_path / "r.json"
    source.write_text("ld.reg [64-bit] r9, r5\nadd r9, r9, r4\nst.reg [64-bit] r5, r9\nhalt\n")
    memory.write_bytes(bytes(64) + (40).to_bytes(8, "little"))
    found = []
    for on in ("rtl", "model"):
        dump = tmp_path / f"{on}.bin"
        words = ["--on", on, "--preset", "tiny", "--parameters", "64", "--memory", str(memory)]
        words += ["--dump", "64", "8", str(dump), "--json", str(report)]
        monkeypatch.setattr("sys.argv", ["vip", "cosim", "program", str(source), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (None, 0)
        assert ("the timing model" in capsys.readouterr().out) == (on == "model")
        results = json.loads(report.read_text())
        assert results["machine"] == on
        found.append((dump.read_bytes(), results["flits"]))
    assert found[0] == found[1]
    assert int.from_bytes(found[0][0], "little") > 40
