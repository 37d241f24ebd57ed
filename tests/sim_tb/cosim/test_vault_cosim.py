"""Programs on the Verilog of a vault with its engines."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.program import Program
from isa.run import Launch, RunResult
from memory.controller.counters import LAG_CYCLES
from memory.line_buffer.layout import LineCounter
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.engine import CosimError, TooLong
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.vault import VaultSimulation
from soc.generate.presets import tile_preset
from vip.cli.app import main

SMALL = tile_preset("vault-small")
ROOM = SMALL.pe.scratchpad_bytes

#: Each engine writes its start registers to a row of its own, reads them back and adds them up.
SELF = assemble("""
    mov r8, #8
    sll r9, r3, #12
    add r9, r9, r5
    mov r10, r9
    st.reg [64-bit] r10, r1
    add r10, r10, r8
    st.reg [64-bit] r10, r2
    add r10, r10, r8
    st.reg [64-bit] r10, r3
    add r10, r10, r8
    st.reg [64-bit] r10, r4
    memfence
    ld.reg [64-bit] r11, r9
    ld.reg [64-bit] r12, r10
    add r11, r11, r12
    add r10, r10, r8
    st.reg [64-bit] r10, r11
    halt
""")
#: The engine in slot 1 leaves the memory; the others go on.
FAULT = assemble("""
    mov r8, #1
    mov r9, #200
    bne r3, r8, wait
    sll r10, r8, #40
    ld.reg [64-bit] r11, r10
    halt
wait:
    sub r9, r9, r8
    bne r9, r3, wait
    halt
""")
ENDLESS = assemble("here:\n    jmp here\n")


def run(
    program: Program, image: DramImage, *, engines: int | None = None, **launch: int
) -> RunResult:
    """A launch on engines of the small vault."""
    with VaultSimulation(SMALL) as simulation:
        return simulation.run(Launch(program=program, **launch), image, engines=engines)


@pytest.fixture
def image() -> Iterator[DramImage]:
    with DramImage(SMALL.vault.size_bytes) as made:
        yield made


def words(image: DramImage, address: int, count: int) -> list[int]:
    data = image.read(address, 8 * count)
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def test_engines_know_themselves_and_share_the_memory(image: DramImage) -> None:
    result = run(SELF, image, max_cycles=20_000, parameters=0x8000)
    assert [pe.slot for pe in result.engines] == [0, 1]
    for pe in result.engines:
        assert pe.halted
        assert pe.counters["BYTES_STORED"] == 40
        assert pe.counters["CYCLES"] == pe.cycles < pe.elapsed_cycles <= result.elapsed_cycles
        index = pe.slot
        found = words(image, 0x8000 + 0x1000 * index, 5)
        assert found == [index, 0, index, SMALL.pes, index + SMALL.pes]
    served = result.vaults[0]["READS"] + result.vaults[0]["WRITES"]
    kinds = [result.vaults[0][f"ROW_{kind}"] for kind in ("HITS", "MISSES", "CONFLICTS")]
    assert served == sum(kinds) == sum(result.latencies.values()) == 2 * 7
    assert (result.commands["read"], result.commands["write"]) == (4, 10)
    assert result.vaults[0]["BUS_BUSY"] == 4 * served
    assert result.bytes_moved == 32 * served
    # The counters are those of the run, without the loading of the program.
    elapsed = result.elapsed_cycles
    assert elapsed <= result.vaults[0]["CYCLES"] <= elapsed + 3 * LAG_CYCLES
    assert sum(map(sum, result.windows)) == served
    assert sum(writes for _, writes in result.windows) == result.vaults[0]["WRITES"]
    assert result.gbs == pytest.approx(32 * served / (0.8 * result.elapsed_cycles))
    assert 0 < result.row_hits < 1


def test_engines_that_are_not_launched_stay_idle(image: DramImage) -> None:
    result = run(SELF, image, max_cycles=20_000, parameters=0x8000, engines=1)
    assert [pe.slot for pe in result.engines] == [0]
    assert words(image, 0x8000, 5) == [0, 0, 0, 2, 2]
    assert words(image, 0x9000, 5) == [0] * 5


def test_fault_of_one_engine_stops_that_one_only(image: DramImage) -> None:
    first, second = run(FAULT, image, max_cycles=20_000).engines
    assert (first.state, first.cause) == ("halted", FaultCause.NONE)
    assert first.counters["ISSUED_SCALAR"] >= 400
    assert (second.state, second.cause, second.pc) == ("faulted", FaultCause.DRAM_RANGE, 4)
    assert second.cycles < first.cycles


def test_what_can_not_be_run_is_refused(image: DramImage) -> None:
    with pytest.raises(TooLong, match=r"^engine 0: .*still running after 500 cycles, perhaps"):
        run(ENDLESS, image, max_cycles=500)
    with pytest.raises(CosimError, match="3 engines can't be launched in a vault of 2"):
        run(SELF, image, max_cycles=500, engines=3)
    long = assemble("halt\n" * (SMALL.pe.instruction_words + 1))
    with pytest.raises(CosimError, match="513 words does not fit the instruction buffer of 512"):
        run(long, image, max_cycles=500)
    with pytest.raises(CosimError, match="parameters must be from 0"):
        run(SELF, image, max_cycles=500, parameters=-1)


def test_waiting_for_an_engine_that_faulted_blames_the_fault(image: DramImage) -> None:
    text = (
        "mov r8, #1\nbne r3, r8, here\nsll r9, r8, #40\nst.reg [64-bit] r9, r8\nhere:\njmp here\n"
    )
    with pytest.raises(TooLong, match=r"^engine 1: .*:4: st\.reg .*; engine 0: .*still running"):
        run(assemble(text), image, max_cycles=500)


def test_counters_begin_at_the_launch(image: DramImage) -> None:
    """A longer program takes longer to load, and counts no more."""
    short, long = (
        run(assemble(text), image, max_cycles=20_000)
        for text in ("halt\n", "halt\n" + "mov r8, #0\n" * 500)
    )
    assert long.elapsed_cycles == short.elapsed_cycles
    assert long.commands["cycles"] > short.commands["cycles"] + 400
    for result in (short, long):
        elapsed = result.elapsed_cycles
        assert elapsed <= result.vaults[0]["CYCLES"] <= elapsed + 3 * LAG_CYCLES


@pytest.mark.parametrize("gap", [100, 300, 777, 781])
def test_lone_write_waits_for_its_bank_alone(image: DramImage, gap: int) -> None:
    """The time that a fence waits: for opening the row, and for a refresh in between (gaps of 777
    and more end in one); not for the time in which the controller waits for more writes."""
    text = f"""
        mov r8, #1
        mov r9, #{gap}
    wait:
        sub r9, r9, r8
        bne r9, r0, wait
        st.reg [64-bit] r5, r8
        memfence
        halt
    """
    result = run(assemble(text), image, max_cycles=20_000, parameters=0x8000)
    timing = SMALL.dram.timing
    waited = result.engines[0].counters["STALL_FENCE"]
    refresh = timing.trfc if gap > 700 else 0
    assert timing.trcd < waited <= timing.trcd + 26 + refresh


@pytest.mark.parametrize(("pes", "limit"), [(1, 110), (2, 150)])
def test_small_tile_is_exact(pes: int, limit: float) -> None:
    job = bp_job(
        motorcycle(8, 6, 16).problem, 2, engines=ChipEngines(pes=pes, scratchpad_bytes=ROOM)
    )
    outcome = run_on(job, SMALL)
    assert outcome.match
    assert outcome.pes == len(outcome.result.engines) == pes
    assert 80 <= outcome.cycles_per_update < limit
    assert outcome.result.bytes_moved >= outcome.updates * 128


def test_tiles_that_do_not_fit_are_refused() -> None:
    large = bp_job(
        motorcycle(60, 300, 16).problem, engines=ChipEngines(pes=1, scratchpad_bytes=ROOM)
    )
    with pytest.raises(CosimError, match=r"bytes, the vault has 1048576$"):
        run_on(large, SMALL)
    with pytest.raises(CosimError, match="3 engines can't work in a vault of 2"):
        run_on(
            bp_job(motorcycle(8, 6, 16).problem, engines=ChipEngines(pes=3, scratchpad_bytes=ROOM)),
            SMALL,
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "vault-small", "--latency", "9"], "--latency can't be used"),
        (["--preset", "vault-small", "--out-of-order"], "--out-of-order can't be used"),
        (["--engines", "2"], "--engines can't be used: preset 'pe' is one engine"),
        (["--traffic", "x.png"], "--traffic can't be used: preset 'pe'"),
        (["--preset", "vault-axi"], "the vault has an AXI back end; a vault with a DRAM"),
        (["--preset", "vault-small", "--engines", "5"], "5 engines can't work in a vault of 2"),
    ],
)
def test_options_for_another_kind_of_preset(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["vip", "cosim", "bp", "--width", "4", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_thesis_vault_on_the_thesis_tile(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "bp.json"
    arguments = ["--preset", "vault", "--iterations", "1", "--json", str(target)]
    monkeypatch.setattr("sys.argv", ["vip", "cosim", "bp", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    report = json.loads(target.read_text())
    assert report["match"] is True
    assert (report["width"], report["height"], report["labels"]) == (60, 34, 16)
    assert 76 <= report["cycles_per_update"] <= 80
    assert report["pes"] == len(report["counters"]) == 4
    # With sums one axis ahead, a first visit reads one vector and writes one; a second reads three,
    # and writes one or two.
    assert 3 * 32 * report["updates"] <= report["bytes"] <= 3.5 * 32 * report["updates"]
    assert 0.2 < report["row_hit_rate"] < 1
    assert 6 < report["bandwidth_gbs"] <= 10


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "merges"), [(8, 2), (16, 4), (128, 16)])
def test_kernels_through_a_line_buffer(lines: int, merges: int) -> None:
    config = replace(SMALL, line_buffer=lines, line_merges=merges)
    job = bp_job(
        motorcycle(9, 7, 8).problem, 2, engines=ChipEngines(pes=SMALL.pes, scratchpad_bytes=ROOM)
    )
    plain = run_on(job, SMALL)
    outcome = run_on(job, config)
    assert outcome.match
    counters = outcome.result.vaults[0]
    # Flags and smoothness costs are read by both engines.
    assert counters["LINE_HITS"] + counters["LINE_MERGED"] > 0
    assert counters["READS"] == counters["LINE_FILLS"] + counters["LINE_PASSED"]
    assert counters["READS"] < plain.result.vaults[0]["READS"]
    assert counters["WRITES"] == plain.result.vaults[0]["WRITES"]
    assert "LINE_HITS" not in plain.result.vaults[0]
    model = run_on(job, config, on="model")
    assert model.match
    assert model.result.engines == outcome.result.engines
    assert model.result.latencies == outcome.result.latencies
    for counter in LineCounter:
        assert model.result.vaults[0][counter.name] == counters[counter.name]


def test_a_vault_without_a_host_has_no_preload_memory() -> None:
    config = replace(SMALL, vault=replace(SMALL.dram, preload_bytes=1024))
    job = bp_job(
        motorcycle(9, 7, 8).problem, 1, engines=ChipEngines(pes=SMALL.pes, scratchpad_bytes=ROOM)
    )
    for machine in ("rtl", "model"):
        with pytest.raises(CosimError, match=r"host of a chip fills a preload memory"):
            run_on(job, config, on=machine)
