"""A small chip in simulation: programs, faults, and what the host reads and writes, over AXI."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.run import Launch
from microkernels.data.stereo import motorcycle
from sim_tb.cosim.chip import ChipSimulation, run_launch
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import bp_job_on, run_on
from soc.generate.presets import chip_preset
from soc.host.driver import Host
from soc.host.transport import Blocking, BusError, run
from support.extras import MissingExtraError
from vip.cli.app import main

TINY = chip_preset("tiny")
VAULT = 1 << TINY.network.address_bits
VAULTS = range(TINY.vaults)
PARAMETERS = 0x8000

#: Each engine leaves a word for the next vault, and takes bytes from there to its own.
EXCHANGE = assemble(f"""
    mov r8, #{TINY.network.address_bits}
    mov r20, #8
    sll r9, r2, r8
    add r9, r9, r5
    add r10, r2, #1
    and r10, r10, #{TINY.vaults - 1}
    sll r10, r10, r8
    add r10, r10, r5
    add r11, r1, #1
    st.reg [64-bit] r9, r11
    add r12, r10, #64
    mov r13, #1000
    add r13, r13, r1
    st.reg [64-bit] r12, r13
    memfence
    ld.reg [64-bit] r14, r12
    add r14, r14, r4
    add r15, r9, #128
    st.reg [64-bit] r15, r14
    mov r16, #16
    add r17, r10, #259
    mov r18, #101
    ld.sram [8-bit] r16, r17, r18
    add r19, r9, #517
    st.sram [8-bit] r19, r16, r18
    halt
""")

#: The engine whose number is the parameter leaves the memory; every one counts first.
FAULT = assemble(f"""
    mov r8, #{TINY.network.address_bits}
    sll r9, r2, r8
    ld.reg [64-bit] r10, r9
    add r10, r10, #1
    st.reg [64-bit] r9, r10
    memfence
    bne r1, r5, go_on
    mov r11, #1
    sll r11, r11, #40
    ld.reg [64-bit] r12, r11
go_on:
    mov r13, #500
wait:
    sub r13, r13, #1
    bne r13, r0, wait
    add r10, r10, #100
    st.reg [64-bit] r9, r10
    halt
""")
FAULT_PC = 9


@pytest.fixture(scope="module")
def simulation() -> Iterator[ChipSimulation]:
    with DramImage(TINY.memory_bytes) as image, ChipSimulation(TINY, image) as chip:
        yield chip


@pytest.fixture
def chip(simulation: ChipSimulation) -> ChipSimulation:
    """The chip after a reset, driven by the model in C++, with empty memory."""
    simulation.outer = False
    simulation.reset()
    simulation.image.write(0, bytes(TINY.memory_bytes))
    return simulation


def word(content: bytes) -> int:
    return int.from_bytes(content, "little")


@pytest.mark.parametrize("outer", [False, True], ids=["model", "cocotbext-axi"])
def test_a_program_on_all_engines_reaches_every_vault(chip: ChipSimulation, outer: bool) -> None:
    chip.outer = outer
    host = Host(Blocking(chip))
    pattern = bytes((7 * index + 3) % 256 for index in range(101))
    for vault in VAULTS:
        run(host.write(vault * VAULT + PARAMETERS + 259, bytes([vault]) + pattern[1:]))
    result = run_launch(chip, Launch(program=EXCHANGE, max_cycles=50_000, parameters=PARAMETERS))
    assert not result.faults
    for vault in VAULTS:
        base = vault * VAULT + PARAMETERS
        behind = (vault - 1) % TINY.vaults
        assert word(run(host.read(base, 8))) == vault + 1
        assert word(run(host.read(base + 64, 8))) == 1000 + behind
        assert word(run(host.read(base + 128, 8))) == 1000 + vault + TINY.pes
        bulk = bytes([(vault + 1) % TINY.vaults]) + pattern[1:]
        assert run(host.read(base + 517, 101)) == bulk
        # The host reads the contents of the DRAM.
        assert chip.image.read(base + 517, 101) == bulk
    for node in result.network:
        # A word there and back, and 101 bytes from the byte 3 of a column.
        assert node["REMOTE_REQUESTS"] == 1 + 1 + 4
        assert node["SERVED_REQUESTS"] == 1 + 1 + 4
    assert result.flits > 0
    own = 2 + 101 // 32 + 2
    assert result.remote_share == pytest.approx(6 / (6 + own), rel=0.1)


def test_host_reaches_all_memory_at_any_alignment(chip: ChipSimulation) -> None:
    host = Host(Blocking(chip))
    content = bytes(range(251)) * 20
    last = TINY.memory_bytes - len(content)
    for address in (0, VAULT - 1234, 2 * VAULT + 4093, last):
        run(host.write(address, content))
        assert run(host.read(address, len(content))) == content
        assert run(host.read(address + 5, 1)) == content[5:6]
    chip.settle()
    assert chip.image.read(VAULT - 1234, len(content)) == content
    assert chip.image.read(VAULT - 1235, 1) == b"\0"


def test_a_fault_stops_its_engine_only_and_the_chip_is_launched_again(
    chip: ChipSimulation,
) -> None:
    host = Host(Blocking(chip))
    first = run_launch(chip, Launch(program=FAULT, max_cycles=50_000, parameters=2))
    (fault,) = first.faults
    assert (fault.pe, fault.vault, fault.slot) == (2, 2, 0)
    assert (fault.cause, fault.pc) == (FaultCause.DRAM_RANGE, FAULT_PC)
    assert fault.fault.endswith("a byte lies outside the memory")
    assert run(host.halted()) == (0, 1, 3)
    found = [word(run(host.read(vault * VAULT, 8))) for vault in VAULTS]
    assert found == [101, 101, 1, 101]

    # Neither the chip nor its memory is reset: all count on from where they were.
    second = run_launch(chip, Launch(program=FAULT, max_cycles=50_000, parameters=99))
    assert second.faults == ()
    assert run(host.halted()) == (0, 1, 2, 3)
    assert run(host.status(2)).halted
    found = [word(run(host.read(vault * VAULT, 8))) for vault in VAULTS]
    assert found == [202, 202, 102, 202]


def test_an_engine_that_waits_for_a_faulted_one_is_late_and_both_are_named(
    chip: ChipSimulation,
) -> None:
    endless = assemble("""
        mov r8, #1
        sll r9, r8, #40
        bne r1, r8, here
        ld.reg [64-bit] r10, r9
    here:
        jmp here
    """)
    with pytest.raises(CosimError) as error:
        run_launch(chip, Launch(program=endless, max_cycles=3_000))
    assert "PE 1 (vault 1, slot 0): <assembly>:5: ld.reg [64-bit] r10, r9: " in str(error.value)
    assert "PEs 0, 2, 3 still run" in str(error.value)
    run(Host(Blocking(chip)).stop())
    chip.run(1000)
    assert run(Host(Blocking(chip)).running()) == ()


@pytest.mark.parametrize("outer", [False, True], ids=["model", "cocotbext-axi"])
def test_accesses_that_do_not_exist_are_refused_and_hang_nothing(
    chip: ChipSimulation, outer: bool
) -> None:
    chip.outer = outer
    with pytest.raises(BusError, match=r"register 0xffffc was answered with DECERR"):
        chip.read32(0xFFFFC)
    with pytest.raises(BusError, match=r"DRAM at 0x400000 was answered with DECERR"):
        chip.read_memory(TINY.memory_bytes, 64)
    with pytest.raises(BusError, match="DECERR"):
        chip.write_memory(TINY.memory_bytes + 3, bytes(100))
    assert run(Host(Blocking(chip)).identify()).pe_count == TINY.pes


def test_belief_propagation_on_all_vaults_equals_the_golden_model() -> None:
    scene = motorcycle(11, 9, 8)
    job = bp_job_on(scene.problem, 2, TINY)
    outcome = run_on(job, TINY)
    assert outcome.match
    assert outcome.updates == 2 * scene.problem.updates
    # Engines that wait read flags in their own vault, which are not among the bytes.
    assert 0 < outcome.result.remote_share < job.remote_bytes < 0.5


def test_image_of_another_size_is_refused() -> None:
    with DramImage(4096) as image, pytest.raises(CosimError, match="has 4096 bytes, the chip's"):
        ChipSimulation(TINY, image)


def test_missing_cocotbext_axi_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.extras.find_spec", lambda name: None)
    with DramImage(TINY.memory_bytes) as image, pytest.raises(MissingExtraError, match="extra axi"):
        ChipSimulation(TINY, image, outer=True)


def test_a_program_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, memory, dump, report = (tmp_path / name for name in ("s.s", "m", "d", "r.json"))
    source.write_text(f"""
        sll r8, r2, #{TINY.network.address_bits}
        add r8, r8, r5
        ld.reg [64-bit] r9, r8
        add r9, r9, r4
        st.reg [64-bit] r8, r9
        halt
    """)
    memory.write_bytes(bytes(64) + (40).to_bytes(8, "little"))
    arguments = ["cosim", "program", source, "--preset", "tiny", "--parameters", 64]
    arguments += ["--memory", memory, "--dump", 64, 8, dump, "--json", report]
    monkeypatch.setattr("sys.argv", ["vip", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (None, 0)
    assert "halted" in capsys.readouterr().out
    assert word(dump.read_bytes()) == 40 + TINY.pes
    results = json.loads(report.read_text())
    assert results["faults"] == []
    assert len(results["counters"]) == TINY.pes
