"""The host's data port on the timing model of a chip takes the cycles of the Verilog, with the same
data, while the engines rest and while they run."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.program import Program
from memory.controller.counters import VaultCounter
from microkernels.data.stereo import motorcycle
from sim_tb.cosim.chip import ChipSession, ChipSimulation
from sim_tb.cosim.kernels import bp_job_on, run_on
from sim_tb.timed.chip.chip_model import ChipModel
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset
from soc.host.driver import Host
from soc.host.transport import Blocking, BusError, run
from tests.sim_tb.cosim.test_chip_windows import PROGRAM as WINDOWED_PROGRAM

from .test_timed_chip import (
    ENDLESS,
    TINY,
    WINDOWED,
    grid,
    image_of,
    on_axi,
    same,
    traffic,
    with_lines,
)

#: Bytes of an access: within a word, a column, a burst, and over several bursts.
_LENGTHS = (1, 3, 8, 31, 64, 100, 2048, 4100, 9000)

Access = tuple[int, int, bytes | None]


def accesses(config: ChipConfig, count: int) -> Iterator[Access]:
    """Address, length, and the bytes to write, or None: of random accesses in all vaults."""
    numbers = random.Random(count)
    for _ in range(count):
        length = numbers.choice(_LENGTHS)
        address = numbers.randrange(config.memory_bytes - length)
        yield address, length, numbers.randbytes(length) if numbers.random() < 0.5 else None


def performed(chip: ChipSession, given: Iterator[Access]) -> list[tuple[int, bytes]]:
    """The cycle in which each access ends, and what was read."""
    found = []
    for address, length, content in given:
        data = b""
        if content is None:
            data = chip.read_memory(address, length)
        else:
            chip.write_memory(address, content)
        found.append((chip.cycles, data))
    return found


def observed(
    machine: type[ChipSession], config: ChipConfig, program: Program, *, count: int, **more: Any
) -> dict[str, Any]:
    """What the host sees of accesses before and while a program runs on all engines, and the DRAM
    after it."""
    with DramImage(config.memory_bytes) as image, machine(config, image, **more) as chip:
        for address, content in image_of(config).items():
            image.write(address, content)
        host = Host(Blocking(chip))
        rests = performed(chip, accesses(config, count))
        run(host.load(program))
        run(host.launch(parameters=77))
        runs = performed(chip, accesses(config, count + 1))
        run(host.stop())
        run(host.wait(timeout=1e-3))
        counters = [run(host.counters(pe)) for pe in range(config.pes)]
        vaults = [run(host.vault_counters(vault)) for vault in range(config.vaults)]
        chip.settle()
        return {
            "before": rests,
            "while": runs,
            "engines": counters,
            "columns": [(each[VaultCounter.READS], each[VaultCounter.WRITES]) for each in vaults],
            "cycles": chip.cycles,
            "memory": image.read(0, config.memory_bytes),
        }


def compare(config: ChipConfig, program: Program, count: int = 12) -> None:
    model = observed(ChipModel, config, program, count=count)
    verilog = observed(ChipSimulation, config, program, count=count)
    for name, value in verilog.items():
        assert model[name] == value, name
    assert any(data for _, data in model["while"])


def endless_traffic(config: ChipConfig) -> Program:
    return traffic(config, vaults=config.vaults, transfers=1 << 18)


def test_accesses_while_engines_run() -> None:
    compare(TINY, endless_traffic(TINY))


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        chip_preset("small"),
        grid(3, 2),
        grid(1, 1),
        on_axi(64, 8),
        on_axi(256, 32),
        with_lines(8),
    ],
)
def test_accesses_on_other_chips(config: ChipConfig) -> None:
    compare(config, endless_traffic(config), 40)


def test_accesses_from_vault_to_vault_without_a_network() -> None:
    compare(WINDOWED, WINDOWED_PROGRAM)


def test_accesses_outside_of_the_memory() -> None:
    """A burst that begins there is refused, and every other is served."""
    end = TINY.memory_bytes
    found = []
    for machine in (ChipModel, ChipSimulation):
        with DramImage(end) as image, machine(TINY, image) as chip:
            for address in (end, end - 2048, 1 << 47):
                with pytest.raises(BusError, match="DECERR"):
                    chip.read_memory(address, 4096)
                with pytest.raises(BusError, match="DECERR"):
                    chip.write_memory(address, bytes(range(1, 129)) * 32)
            found.append((chip.cycles, chip.read_memory(end - 2048, 2048)))
    assert found[0] == found[1]
    assert found[0][1] == bytes(range(1, 129)) * 16


def test_job_writes_and_reads_through_the_port() -> None:
    job = bp_job_on(motorcycle(12, 8, 8).problem, 1, TINY)
    model, verilog = (run_on(job, TINY, on=on) for on in ("model", "rtl"))
    assert model.match
    same(model.result, verilog.result)


def test_accesses_do_not_depend_on_threads() -> None:
    program = endless_traffic(TINY)
    one, two = (observed(ChipModel, TINY, program, count=20, threads=n) for n in (1, 2))
    assert one == two


def test_writes_are_seen_by_engines_that_run() -> None:
    """Engines wait for a word that the host writes."""
    program = assemble("""
        mov r8, #512
        mov r10, #8
    again:
        ld.reg [64-bit] r9, r8
        beq r9, r0, again
        add r8, r8, r10
        st.reg [64-bit] r8, r9
        memfence
        halt
    """)
    with DramImage(TINY.memory_bytes) as image, ChipModel(TINY, image) as chip:
        host = Host(Blocking(chip))
        run(host.load(program))
        run(host.launch())
        chip.run(2000)
        assert run(host.running()) == (0, 1, 2, 3)
        chip.write_memory(512, (4711).to_bytes(8, "little"))
        run(host.wait(timeout=1e-3))
        assert chip.read_memory(520, 8) == (4711).to_bytes(8, "little")
        run(host.load(ENDLESS))
