"""The compiled simulator against the one in Python, and against golden models."""

import gc
import random
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isa.assembly.assembler import assemble
from isa.compiled.simulator import CompiledSimulator
from isa.faults import FaultCause
from isa.image import DramImage, ImageError
from isa.iss.simulator import Simulator, SimulatorError
from isa.table import INSTRUCTIONS, Unit, Width
from microkernels.suite import Application, suite
from pe.config import ALL_INSTRUCTIONS, PeConfig
from sim_tb.random.programs import random_config, random_program
from sim_tb.random.random_program import RandomProgram
from sim_tb.random.reference import simulator_of
from soc.generate.presets import preset

Kind = type[Simulator]
WHOLE = PeConfig(instructions=ALL_INSTRUCTIONS)


def _end(kind: Kind, program: RandomProgram, config: PeConfig, steps: Sequence[int]) -> Any:
    """All that a program leaves, and how far it came after each of ``steps``."""
    with DramImage(1 << config.address_bits) as memory:
        for address, content in program.windows:
            memory.write(address, content)
        simulator = simulator_of(program, config, memory, kind, count_saturation=True)
        ends = [simulator.run(step) for step in steps]
        return {
            "ends": ends,
            "registers": list(simulator.registers),
            "scratchpad": simulator.scratchpad.tobytes(),
            "settings": (simulator.vl, simulator.mr, simulator.fx, simulator.pc),
            "saturated": simulator.saturated,
            "visits": simulator.visits,
            "executed": simulator.executed,
            "memory": [memory.read(start, len(content)) for start, content in program.windows],
        }


def _compare(config: PeConfig, seeds: range) -> None:
    for seed in seeds:
        program = random_program(seed, config)
        steps = (0, 1, seed % 40, 1_000_000, 5)
        expected = _end(Simulator, program, config, steps)
        assert _end(CompiledSimulator, program, config, steps) == expected, seed


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_random_programs(seed: int | None) -> None:
    _compare(WHOLE if seed is None else random_config(seed), range(100))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, *range(99)])
def test_a_hundred_thousand_random_programs(seed: int | None) -> None:
    config = WHOLE if seed is None else random_config(1000 + seed)
    _compare(config, range(5_000_000, 5_001_000))


@pytest.mark.parametrize("width", Width)
def test_extreme_elements(width: Width, rng: random.Random) -> None:
    """Each vector instruction of a width, on the largest and smallest elements and near them."""
    rows = [row for row in INSTRUCTIONS if row.unit is Unit.VECTOR and row.width is width]
    highest = (1 << (width.bits - 1)) - 1
    some = [-highest - 1, -highest, -1, 0, 1, highest - 1, highest]
    for row in rows:
        lines = ["mov r9, #2000", "mov r10, #0", "mov r11, #1024"]
        lines += ["set.vl r12", "set.mr r13", "set.fx r14"]
        operands = "r9, r10, r11" if len(row.operands) == 3 else "r9, r10"
        lines.append(f"{row.mnemonic} [{width.bits}-bit] {operands}")
        program = assemble("\n".join([*lines, "halt"]))
        for vl, mr, fx in ((1, 1, 0), (7, 3, 1), (16, 8, width.bits - 1), (16, 8, 63)):
            values = np.array(rng.choices(some, k=4096 // width.bytes), f"<i{width.bytes}")
            found = []
            for kind in (Simulator, CompiledSimulator):
                with DramImage(64) as memory:
                    simulator = kind(
                        program, memory, scratchpad=values.tobytes(), count_saturation=True
                    )
                    simulator.registers[12:15] = [vl, mr, fx]
                    end = simulator.run()
                    pad = simulator.scratchpad.tobytes()
                    found.append((end, pad, simulator.saturated))
            assert found[0] == found[1], (row.key, vl, mr, fx)
            assert found[0][0].state == "halted"


@pytest.mark.parametrize("application", suite().values(), ids=lambda item: item.name)
def test_kernels_leave_what_their_golden_models_demand(application: Application) -> None:
    config = preset(application.preset)
    for job in application.jobs:
        with DramImage(1 << config.address_bits) as memory:
            job.prepare(memory)
            simulator = CompiledSimulator(
                job.program, memory, parameters=job.parameters, **config.limits
            )
            assert simulator.run(50_000_000).state == "halted"
            assert job.differing(job.outputs(memory)) == 0


def test_a_program_of_no_words() -> None:
    with DramImage(64) as memory:
        end = CompiledSimulator((), memory).run()
    assert (end.state, end.cause, end.executed) == (
        "faulted",
        FaultCause.PC_OUT_OF_PROGRAM,
        0,
    )


def test_what_it_does_not_have_is_refused() -> None:
    with DramImage(64) as memory:
        with pytest.raises(SimulatorError, match=r"^a compiled simulator has no observer$"):
            CompiledSimulator((), memory, observer=lambda *arguments: arguments[-1])
        simulator = CompiledSimulator(assemble("st.reg [64-bit] r0, r0\nhalt\n"), memory)
    with pytest.raises(ImageError, match=r"is closed$"):
        simulator.run()


def test_a_full_file_system_is_an_error(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small))
    program = assemble(
        """
        mov r2, #4096
    again:
        st.reg [64-bit] r6, r2
        add r6, r6, r2
        jmp again
        """
    )
    with DramImage(1 << 24) as memory:
        simulator = CompiledSimulator(program, memory)
        with pytest.raises(ImageError, match=r"can't be accessed: No space left on device$"):
            simulator.run()
        # The instruction that failed has no effect, and what came before it has one.
        assert simulator.registers[6] % 4096 == 0
        assert memory.read(simulator.registers[6] - 4096, 8) == (4096).to_bytes(8, "little")


def test_a_simulator_is_freed() -> None:
    with DramImage(1 << 16) as memory:
        simulator = CompiledSimulator(assemble("halt\n"), memory)
        simulator.run()
        gone = weakref.ref(simulator)
        del simulator
        gc.collect()
        assert gone() is None
