"""Vector registers against memory-memory vectors: exact outputs, and beats as calculated."""

import pytest

from bench.ablation import ablation
from bench.harness.record import values
from isa.assembly.disassembler import disassemble
from microkernels.common.errors import KernelError
from microkernels.runtime.job import simulate
from microkernels.vector_registers.belief import _Registers, belief_job
from microkernels.vector_registers.machine import MACHINES

#: Beats of a message by hand: sums; totals, minima and packing, matrix, subtraction and its moves.
BELIEF = (12 + 64 + 4, 12 + 4 + 16 * 5 + 64 / 4 + 12, 12 + 16 * 9 - 4 + 64 / 4 + 8)
#: Beats of a pixel: products, packing, sums.
CONVOLUTION = (3 * (96 + 2), 3 * (96 + 8 + 2), 144 * 8 * 65 / 128)


@pytest.mark.slow
def test_beats_are_those_by_hand_and_figures_the_recorded_ones() -> None:
    """Outputs that differ from the golden model's would be an error."""
    figures = {item.name: item.value for item in ablation()}
    for work, expected in (("belief", BELIEF), ("convolution", CONVOLUTION)):
        beats = [figures[f"{work}_{machine}_beats"] for machine in MACHINES]
        # Registers are also copied to fill latencies: up to 12 beats for each 8 messages.
        assert beats == pytest.approx(expected, abs=1.6)
        assert all(
            beat < figures[f"{work}_{machine}_cycles"]
            for beat, machine in zip(beats, MACHINES, strict=True)
        )
    assert figures == pytest.approx(values("ablation"))


@pytest.mark.parametrize("machine", MACHINES)
def test_no_vector_is_read_too_early(machine: str) -> None:
    """In any order of the engines, by the rules of the vector unit."""
    job = belief_job(machine, seed=5, steps=2)
    outputs, hazards = simulate(job)
    assert job.differing(outputs) == 0
    assert not hazards


def test_registers_are_whole_and_sixteen() -> None:
    with pytest.raises(KernelError, match="not vector registers"):
        _Within(1)
    with pytest.raises(KernelError, match="17 vector registers; the machine has 16"):
        _Many(1)
    assert "m.v" not in disassemble(belief_job("no_reduction", steps=1).program)


class _Many(_Registers):
    names = (*_Registers.names, "one_more")


class _Within(_Registers):
    def step(self) -> None:
        """Add from the middle of a register."""
        self.compute("v.v.add", 16, "a", self.within("b", 16, 0), "c")
