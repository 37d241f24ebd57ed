"""Workspaces and line buffers of several engines on the timing model: the cycles and counters of
the Verilog, and the bytes of the lowered matrices."""

import random
from dataclasses import replace

import numpy as np
import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.program import Span
from isa.run import Launch, RunResult
from isa.workspace import DESCRIPTOR_BYTES, Workspace
from pe.config import PeConfig
from sim_tb.cosim.machine import open_machine
from sim_tb.random.workspaces import random_workspace
from soc.generate.presets import tile_preset
from soc.tile.config import VaultTileConfig
from tests.isa.test_workspace import lowered

from .test_timed_chip import TINY, both_with, with_lines

DESCRIPTORS, _TABLE = 0x1000, 0x1400
_IMAGES, _WINDOWS, RESULTS = 0x10000, 0x40000, 0x80000
_IMAGE_BYTES, _WINDOW_BYTES, RESULT_BYTES = 0x2000, 0x4000, 0x2000
_LOADS, _PIECE = 60, 64

#: Each engine declares a workspace of its own, loads pieces of its window from random places, and
#: stores each of them.
PROGRAM = assemble(f"""
    sll r8, r1, #5
    add r8, r5, r8
    set.ws r8
    sll r9, r1, #4
    add r9, r9, r5
    add r9, r9, #{_TABLE - DESCRIPTORS}
    ld.reg [64-bit] r10, r9
    add r9, r9, #8
    ld.reg [64-bit] r11, r9
    sll r12, r1, #13
    li r13, #{RESULTS}
    add r12, r12, r13
    mov r17, #{_LOADS}
    add r18, r1, #77
    mov r19, #{_PIECE}
    mov r20, #0
again:
    sll r13, r18, #13
    add r18, r18, r13
    add r18, r18, #4321
    srl r13, r18, #7
    and r13, r13, r11
    add r14, r10, r13
    srl r15, r18, #17
    and r15, r15, #{_PIECE - 1}
    add r15, r15, #1
    ld.sram [8-bit] r20, r14, r15
    st.sram [8-bit] r12, r20, r19
    add r12, r12, r19
    add r20, r20, r19
    and r20, r20, #511
    sub r17, r17, #1
    bne r17, r0, again
    memfence
    halt
""")


def contents(engines: int, launches: int = 1) -> tuple[dict[int, bytes], list[bytes]]:
    """What lies in the DRAM, by address, and what each engine stores in the last of launches."""
    numbers = random.Random(engines)
    memory, results = {}, []
    for engine in range(engines):
        workspace = _workspace(numbers, engine)
        image = numbers.randbytes(workspace.image_bytes)
        mask = (1 << (workspace.window_bytes - _PIECE).bit_length() - 1) - 1
        memory[workspace.image] = image
        memory[DESCRIPTORS + DESCRIPTOR_BYTES * engine] = workspace.pack()
        memory[_TABLE + 16 * engine] = b"".join(
            value.to_bytes(8, "little") for value in (workspace.window, mask)
        )
        matrix = lowered(workspace, np.frombuffer(image, np.uint8))
        results.append(_stored(matrix, mask, 77 + engine, launches))
    return memory, results


def _workspace(numbers: random.Random, engine: int) -> Workspace:
    while True:
        found = random_workspace(
            numbers,
            image=Span(_IMAGES + _IMAGE_BYTES * engine, _IMAGE_BYTES),
            window=Span(_WINDOWS + _WINDOW_BYTES * engine, _WINDOW_BYTES),
        )
        if found.window_bytes >= 4 * _PIECE:
            return found


def _stored(matrix: bytes, mask: int, first: int, launches: int) -> bytes:
    """What an engine stores of its lowered matrix, as :data:`PROGRAM` says. A launch finds in the
    scratchpad what the one before it left there."""
    scratchpad, found = bytearray(512), b""
    for _ in range(launches):
        seed, found, place = first, b"", 0
        for _ in range(_LOADS):
            seed = (seed * ((1 << 13) + 1) + 4321) % (1 << 64)
            start, length = seed >> 7 & mask, (seed >> 17 & _PIECE - 1) + 1
            scratchpad[place : place + length] = matrix[start : start + length]
            found += bytes(scratchpad[place : place + _PIECE])
            place = (place + _PIECE) % 512
    return found


def engine_with_workspace(engine: PeConfig) -> PeConfig:
    return replace(engine, instructions=engine.instructions | {"set.ws"})


def vault_of(engines: int, lines: int) -> VaultTileConfig:
    small = tile_preset("vault-small")
    return replace(
        small,
        pe=engine_with_workspace(small.pe),
        vault=replace(small.dram, tag_bits=4 + (engines - 1).bit_length()),
        pes=engines,
        line_buffer=lines,
    )


def on_vault(config: VaultTileConfig, machine: str) -> tuple[RunResult, list[bytes]]:
    memory, _ = contents(config.pes)
    with DramImage(config.vault.size_bytes) as image, open_machine(config, machine) as vault:
        for address, content in memory.items():
            image.write(address, content)
        result = vault.run(
            Launch(program=PROGRAM, max_cycles=1_000_000, parameters=DESCRIPTORS), image
        )
        stored = [
            image.read(RESULTS + RESULT_BYTES * engine, _LOADS * _PIECE)
            for engine in range(config.pes)
        ]
    return result, stored


@pytest.mark.parametrize(("engines", "lines"), [(1, 0), (4, 0), (4, 16), (8, 0), (8, 64)])
def test_engines_load_from_their_windows(engines: int, lines: int) -> None:
    result, stored = on_vault(vault_of(engines, lines), "model")
    assert stored == contents(engines)[1]
    assert len({pe.cycles for pe in result.engines}) > engines // 2
    if lines:
        assert result.vaults[0]["LINE_HITS"] + result.vaults[0]["LINE_MERGED"] > 50


@pytest.mark.slow
@pytest.mark.parametrize(("engines", "lines"), [(4, 0), (4, 16), (8, 16)])
def test_vaults_take_the_cycles_of_the_verilog(engines: int, lines: int) -> None:
    config = vault_of(engines, lines)
    (model, mine), (verilog, theirs) = (on_vault(config, on) for on in ("model", "rtl"))
    assert mine == theirs == contents(engines)[1]
    assert model.engines == verilog.engines
    assert model.latencies == verilog.latencies
    assert model.windows == verilog.windows
    late = ("CYCLES", "REFRESHES", "REFRESH_BLOCKED")
    assert {name: value for name, value in model.vaults[0].items() if name not in late} == {
        name: value for name, value in verilog.vaults[0].items() if name not in late
    }


@pytest.mark.slow
@pytest.mark.parametrize("lines", [0, 8])
def test_a_chip_takes_the_cycles_of_the_verilog(lines: int) -> None:
    """Images and windows lie in the first vault, so most accesses cross the network."""
    base = with_lines(lines) if lines else TINY
    config = replace(base, tile=replace(base.tile, pe=engine_with_workspace(base.tile.pe)))
    memory, expected = contents(config.pes)
    (result,), dram = both_with(config, memory, (PROGRAM, DESCRIPTORS))
    assert result.remote_share > 0.5
    for engine, stored in enumerate(expected):
        start = RESULTS + RESULT_BYTES * engine
        assert dram[start : start + len(stored)] == stored
