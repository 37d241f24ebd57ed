"""A trimmed engine in cosimulation: same answer, same cycles, and faults on what is gone."""

import numpy as np
import pytest

from hdl.config import PeConfig
from hdl.ports import PeState
from isa.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from sim_tb.cosim import CosimResult, MemoryBehaviour, run_pe
from soc.presets import preset
from synth.trim import trim

FULL = preset("pe-small")
INPUT, OUTPUT, ELEMENTS = 0x1000, 0x2000, 32

#: Sums of products of neighbours, block by block, with loops, loads, stores and a fence.
PROGRAM = assemble(
    """
        mov.imm r6, #32        ; elements
        set.vl r6
        mov.imm r7, #0         ; in the scratchpad: first, second, result
        mov.imm r8, #64
        mov.imm r9, #128
        mov.imm r10, #0x1000
        mov.imm r11, #0x2000
        mov.imm r12, #0
        mov.imm r13, #5
    top: ld.sram [16-bit] r7, r10, r6
        ld.sram [16-bit] r8, r10, r6
        v.v.add [16-bit] r9, r7, r8
        v.drain
        v.s.max [16-bit] r9, r9, r7
        v.drain
        st.sram [16-bit] r11, r9, r6
        add r10, r10, #64
        add r11, r11, #64
        add r12, r12, #1
        blt r12, r13, top
        memfence
        halt
    """
)
#: The same beginning, then an instruction that the program above has not.
INTRUDER = assemble("mov.imm r6, #1\nset.vl r6\nv.v.mul [16-bit] r6, r6, r6\nhalt\n")


def outcome(config: PeConfig, program=PROGRAM) -> tuple[CosimResult, bytes]:
    values = np.random.default_rng(7).integers(-30000, 30000, 5 * ELEMENTS, dtype=np.int16)
    with DramImage(1 << FULL.address_bits) as image:
        image.array(INPUT, len(values), np.int16)[:] = values
        result = run_pe(
            program,
            image,
            config=config,
            max_cycles=20_000,
            memory=MemoryBehaviour(latency=20),
        )
        return result, bytes(image.array(OUTPUT, len(values), np.int16))


@pytest.mark.slow
def test_trimmed_engine_does_the_same_in_the_same_cycles() -> None:
    trimmed = trim(PROGRAM, FULL)
    assert len(trimmed.instructions) < 20
    before, memory_before = outcome(FULL)
    after, memory_after = outcome(trimmed)
    assert before.state is after.state is PeState.HALTED
    assert memory_before == memory_after
    assert any(memory_after)
    assert before.scratchpad == after.scratchpad
    assert before.registers[: trimmed.registers] == after.registers
    assert before.counters == after.counters
    # The launch clears a register a cycle, before the program's own cycles begin.
    assert before.cycles - after.cycles == FULL.registers - trimmed.registers


@pytest.mark.slow
def test_what_is_gone_faults() -> None:
    result, _ = outcome(trim(PROGRAM, FULL), INTRUDER)
    assert result.state is PeState.FAULTED
    assert result.cause is FaultCause.ILLEGAL_INSTRUCTION
    assert result.pc == 2
    assert outcome(FULL, INTRUDER)[0].state is PeState.HALTED
