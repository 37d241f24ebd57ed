"""Engines with a load history on the timing model: the cycles and counters of the Verilog."""

import json
import random
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.run import Launch
from isa.workspace import DESCRIPTOR_BYTES, Workspace
from pe.config import PeConfig
from pe.interface import HistoryCounter
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.kernels import run_on
from sim_tb.workloads.tiles import declared_job, with_engines, with_history
from soc.generate.presets import tile_preset
from soc.tile.config import VaultTileConfig
from tests.sim_tb.cosim.test_cosim import CONFIG, SMALL

from .test_timed_chip import TINY, both_with, with_lines
from .test_timed_model import Run, results_of_both, results_of_random
from .test_timed_workspace import (
    DESCRIPTORS,
    PROGRAM,
    RESULT_BYTES,
    RESULTS,
    contents,
    on_vault,
    vault_of,
)

RECORD = Path(__file__).parents[3] / "bench" / "results" / "history.json"
_DESCRIPTOR, _IMAGE, _TARGET = 0x400, 0x800, 0x1000
_STORED = 128


def test_random_programs_take_the_cycles_of_the_verilog() -> None:
    total: Counter[str] = Counter()
    for found in results_of_random(with_history(CONFIG, 32, 4), 150):
        total.update(found.counters)
    assert all(total[item.name] > 400 for item in HistoryCounter)


def overwriting(start: int, delay: int, image: DramImage) -> Run:
    """A column of the declared image lies at bytes 8..39 of the scratchpad: in three units of the
    array range check. Its copy waits until a store has read its words; ``delay`` instructions after
    it, an instruction is dispatched that overwrites the unit from ``start`` on."""
    waits = delay * "add r18, r18, #1\n"
    program = assemble(f"""
        set.ws r5
        mov r8, #32
        mov r9, #{_IMAGE}
        mov r10, #8
        ld.sram [8-bit] r10, r9, r8
        mov r11, #256
        mov r12, #{start}
        mov r13, #512
        mov r14, #1024
        mov r15, #{_STORED}
        mov r16, #{_TARGET}
        mov r17, #16
        set.vl r17
        v.v.add [8-bit] r11, r10, r10
        v.drain
        st.sram [8-bit] r16, r14, r15
        ld.sram [8-bit] r13, r9, r8
        {waits}
        v.v.add [8-bit] r12, r11, r11
        halt
    """)
    workspace = Workspace(
        image=_IMAGE,
        window=_TARGET + _STORED,
        width=32,
        height=1,
        pixel_bytes=1,
        output_width=1,
        output_height=1,
        kernel=1,
    )
    image.write(_DESCRIPTOR, workspace.pack())
    image.write(_IMAGE, bytes(range(32)))
    launch = Launch(program=program, max_cycles=10_000, parameters=_DESCRIPTOR)
    return launch, {"scratchpad": bytes(CONFIG.scratchpad_bytes)}


def test_a_source_is_overwritten_before_it_is_copied() -> None:
    """In each of its units, and in the one after them: a copy ends there, or is done before."""
    starts = (0, 16, 32, 48)
    cases = list(product(starts, range(24)))
    jobs = (partial(overwriting, *case) for case in cases)
    results = results_of_both(with_history(CONFIG, 32, 4), jobs)
    found = {
        (start, result.counters["HISTORY_HITS"])
        for (start, _), result in zip(cases, results, strict=True)
    }
    assert found == set(product(starts, (0, 1)))


def loading_again(seed: int, image: DramImage) -> Run:
    """Pieces of a declared image of 64 columns, loaded anywhere in the scratchpad, often again
    after one or two other loads; small loads of other bytes overwrite some of them meanwhile."""
    rng = random.Random(seed)
    size = 2048
    descriptor = rng.randrange(64, (1 << CONFIG.address_bits) - 4 * size) // 32 * 32
    workspace = Workspace(
        image=descriptor + 64,
        window=descriptor + 64 + size,
        width=64,
        height=size // 64,
        pixel_bytes=1,
        output_width=1,
        output_height=1,
        kernel=1,
    )
    pieces: list[tuple[int, int]] = []
    places = [0]
    lines = ["set.ws r5"]
    for _ in range(90):
        kind = rng.random()
        place = rng.randrange(CONFIG.scratchpad_bytes - 128)
        if kind < 0.3:
            # Within two units before or after what a load wrote.
            start, count = 64 + 2 * size, rng.randint(1, 12)
            place = max(0, rng.choice(places[-6:]) + rng.randint(-20, 44))
        elif kind < 0.7 and pieces:
            start, count = rng.choice(pieces[-40:])
        else:
            count = rng.choice((rng.randint(1, 32), 32, 64, 128))
            start = 64 + rng.randrange(size - count)
            if count >= 32:
                start = start // 32 * 32
            pieces.append((start, count))
        places.append(place)
        lines += [
            f"mov r8, #{place}",
            f"add r9, r5, #{start}",
            f"mov r10, #{count}",
            "ld.sram [8-bit] r8, r9, r10",
        ]
    image.write(descriptor, workspace.pack())
    image.write(descriptor + 64, rng.randbytes(4 * size - 64))
    program = assemble("\n".join([*lines, "memfence", "halt"]))
    launch = Launch(program=program, max_cycles=100_000, parameters=descriptor)
    memory = MemoryBehaviour(latency=rng.randint(1, 30), out_of_order=True, seed=seed)
    return launch, {"memory": memory, "scratchpad": bytes(CONFIG.scratchpad_bytes)}


def test_columns_are_overwritten_and_loaded_again() -> None:
    """In all sets and ways, at places of all alignments and in all of the memory."""
    total: Counter[str] = Counter()
    runs = (partial(loading_again, seed) for seed in range(30))
    for found in results_of_both(with_history(CONFIG, 32, 4), runs):
        assert found.cause == FaultCause.NONE
        total.update(found.counters)
    assert total["HISTORY_HITS"] > 500
    assert total["WORKSPACE_COLUMNS"] > 500


def test_workspaces_are_declared_after_descriptors_that_failed() -> None:
    """Their answers ended after one beat, or more."""
    fine = partial(overwriting, 32, 5)

    def failing(seed: int, image: DramImage) -> Run:
        errors = (_DESCRIPTOR, _DESCRIPTOR + DESCRIPTOR_BYTES)
        memory = MemoryBehaviour(latency=1 + seed, seed=seed, errors=errors)
        return fine(image)[0], {"memory": memory, "reset": False}

    def again(image: DramImage) -> Run:
        return fine(image)[0], {"reset": False}

    jobs = [fine, *(job for seed in range(8) for job in (partial(failing, seed), again))]
    results = list(results_of_both(with_history(CONFIG, 32, 4), jobs))
    assert {found.cause for found in results[1::2]} == {FaultCause.MEMORY_ERROR}
    assert {found.cause for found in results[::2]} == {FaultCause.NONE}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "entries", "ways"),
    [
        *((SMALL, entries, ways) for entries in (8, 16) for ways in (0, 1, 2, 4)),
        *((CONFIG, entries, ways) for entries in (8, 64) for ways in (0, 1, 4)),
    ],
)
def test_histories_of_all_sizes(config: PeConfig, entries: int, ways: int) -> None:
    assert len(list(results_of_random(with_history(config, entries, ways), 300))) == 300


def with_entries(config: VaultTileConfig, entries: int) -> VaultTileConfig:
    return replace(config, pe=replace(config.pe, load_history=entries))


def recorded(name: str) -> float:
    return float(json.loads(RECORD.read_text(encoding="utf-8"))["results"][name]["value"])


@pytest.mark.parametrize(("kernel", "lines"), [("conv5_1", 0)])
def test_a_convolution_takes_the_cycles_of_the_verilog(kernel: str, lines: int) -> None:
    """Eight engines of a vault, as the benchmark has recorded the Verilog."""
    _check(kernel, 8, lines)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [0, 64])
@pytest.mark.parametrize("pes", [4, 8])
@pytest.mark.parametrize("kernel", ["conv1_1", "conv3_2", "conv5_1"])
def test_convolutions_take_the_cycles_of_the_verilog(kernel: str, pes: int, lines: int) -> None:
    _check(kernel, pes, lines)


def _check(kernel: str, pes: int, lines: int) -> None:
    tile = with_engines(tile_preset("vault"), pes)
    config = replace(tile, line_buffer=lines, pe=with_history(tile.pe, 32, 4))
    outcome = run_on(declared_job(kernel, pes), config, on="model")
    prefix = f"{kernel}_{pes}_engines_32_entries_{lines}_lines"
    assert outcome.match
    assert outcome.cycles == recorded(f"{prefix}_cycles")
    assert outcome.result.vaults[0]["READS"] == recorded(f"{prefix}_columns")


@pytest.mark.parametrize(("engines", "lines"), [(4, 0), (8, 16)])
def test_engines_copy_from_their_windows(engines: int, lines: int) -> None:
    config = vault_of(engines, lines)
    without, _ = on_vault(config, "model")
    result, stored = on_vault(with_entries(config, 16), "model")
    assert stored == contents(engines)[1]
    asked = [
        sum(run.vaults[0].get(name, 0) for name in ("READS", "LINE_HITS", "LINE_MERGED"))
        for run in (result, without)
    ]
    assert asked[0] < 0.9 * asked[1]


@pytest.mark.slow
@pytest.mark.parametrize(("engines", "lines"), [(4, 0), (8, 16)])
def test_vaults_take_the_cycles_of_the_verilog(engines: int, lines: int) -> None:
    config = with_entries(vault_of(engines, lines), 16)
    (model, mine), (verilog, theirs) = (on_vault(config, on) for on in ("model", "rtl"))
    assert mine == theirs
    assert model.engines == verilog.engines
    assert model.latencies == verilog.latencies


@pytest.mark.slow
@pytest.mark.parametrize("lines", [0, 8])
def test_a_chip_takes_the_cycles_of_the_verilog(lines: int) -> None:
    """Twice, as the history keeps whose turn it is from launch to launch."""
    base = with_lines(lines) if lines else TINY
    config = replace(base, tile=replace(base.tile, pe=with_history(base.tile.pe, 8, 2)))
    launches = 2 * [(PROGRAM, DESCRIPTORS)]
    memory, expected = contents(config.pes, len(launches))
    _, dram = both_with(config, memory, *launches)
    for engine, stored in enumerate(expected):
        start = RESULTS + RESULT_BYTES * engine
        assert dram[start : start + len(stored)] == stored
