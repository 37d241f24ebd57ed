"""A vault's memory falls behind its tile in the chip's model: chips with random vaults."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.run import Launch
from sim_tb.cosim.chip import ChipSimulation, run_launch
from sim_tb.timed.chip.chip_model import ChipModel
from sim_tb.workloads.stress import random_case
from soc.chip.config import ChipConfig
from soc.host.driver import Host
from soc.host.transport import Blocking, run
from tests.sim_tb.timed.test_timed_chip import TINY, both, traffic

CYCLES = 12_000
#: What is random of a vault's memory.
VARIED = (
    "timing",
    "page_policy",
    "address_map",
    "scheduler",
    "transaction_queue",
    "command_queue",
)


def random_chip(seed: int) -> ChipConfig:
    other = random_case(seed, 1).config
    vault = replace(TINY.tile.vault, **{name: getattr(other, name) for name in VARIED})
    return replace(TINY, tile=replace(TINY.tile, pes=1 + seed % 2, vault=vault))


def after(config: ChipConfig, step: Callable[[], int]) -> tuple[Any, ...]:
    """All counters and the memory of a chip after steps of so many cycles."""
    program = traffic(config, vaults=config.vaults, transfers=1000)
    with DramImage(config.memory_bytes) as image, ChipModel(config, image) as chip:
        host = Host(Blocking(chip))
        run(host.load(program))
        run(host.launch(parameters=5))
        end = chip.cycles + CYCLES
        while (left := end - chip.cycles) > 0:
            cycles = min(step(), left)
            # One of them is that of the host's operation.
            chip.run((cycles if left - cycles != 1 else left) - 1)
        assert chip.cycles == end
        assert len(run(host.running())) == config.pes
        return (
            chip.cycles,
            [run(host.counters(pe)) for pe in range(config.pes)],
            [run(host.vault_counters(vault)) for vault in range(config.vaults)],
            [run(host.network_counters(vault)) for vault in range(config.vaults)],
            image.read(0, config.memory_bytes),
        )


@pytest.mark.parametrize("seed", range(14))
def test_looks_at_the_memory_change_nothing(seed: int) -> None:
    config, rng = random_chip(seed), Random(seed)
    assert after(config, lambda: CYCLES) == after(config, lambda: rng.randint(2, 7))


@pytest.mark.parametrize("resets", [False, True])
def test_the_dram_has_the_words_of_columns_on_their_way(resets: bool) -> None:
    program = assemble("""
        mov r10, #1024
        mov r13, #128
        mov r12, #32
    again:
        add r10, r10, #32
        st.sram [8-bit] r10, r13, r12
        jmp again
    """)
    nothing = bytes(range(1, 33)) * 128
    found = []
    for machine in (ChipModel, ChipSimulation):
        with DramImage(TINY.memory_bytes) as image, machine(TINY, image) as chip:
            counts = []
            for cycles in range(400, 413):
                image.write(1024, nothing)
                host = Host(Blocking(chip))
                run(host.load(program, [0]))
                run(host.launch([0]))
                chip.run(cycles)
                if not resets:
                    counts.append(image.read(1024, len(nothing)))
                chip.reset()
                counts.append(image.read(1024, len(nothing)))
            found.append(counts)
    assert found[0] == found[1]
    # Columns in part are among them.
    assert len({content.count(0) % 32 for content in found[0]}) > 2


def test_threads_that_wait_for_each_other_change_nothing() -> None:
    """Which tile waits for which depends on the processors. A tile's promise forgot a flit behind
    another one, which one of five runs met."""
    config = random_chip(0)
    program = traffic(config, vaults=config.vaults, transfers=400)
    found = set()
    for _ in range(20):
        with DramImage(config.memory_bytes) as image, ChipModel(config, image, threads=2) as chip:
            result = run_launch(chip, Launch(program=program, max_cycles=100_000, parameters=7))
            found.add((result.host_cycles, repr(result.counters), repr(result.network)))
    assert len(found) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 3, 5, 8, 9])
def test_random_vaults_take_the_cycles_of_the_verilog(seed: int) -> None:
    config = random_chip(seed)
    programs = [traffic(config, vaults=config.vaults, transfers=count) for count in (400, 200)]
    both(config, (programs[0], 7), (programs[1], 1 << 12))
