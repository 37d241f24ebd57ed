"""Vector registers against memory-memory vectors: exact outputs, and beats as calculated."""

import pytest

from bench.ablation import _estimate, _SeveralUnits, ablation
from bench.harness.record import values
from isa.assembly.disassembler import disassemble
from isa.table import BY_KEY
from isa.timing import VECTOR_LATENCY
from microkernels.common.errors import KernelError
from microkernels.common.schedule import ScheduleModel
from microkernels.runtime.job import simulate
from microkernels.suite import suite
from microkernels.vector_registers.belief import _Registers, belief_job
from microkernels.vector_registers.machine import MACHINES

#: Beats of a message by hand: sums; totals, minima and packing, matrix, subtraction and its moves.
BELIEF = (12 + 64 + 4, 12 + 4 + 16 * 5 + 64 / 4 + 12, 12 + 16 * 9 - 4 + 64 / 4 + 8)
#: Beats of a pixel: products, packing, sums.
CONVOLUTION = (3 * (96 + 2), 3 * (96 + 8 + 2), 144 * 8 * 65 / 128)


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


def test_two_units_work_beside_each_other_and_wait_for_operands() -> None:
    """Two independent additions of 32 beats, and one that reads the sum of the first."""
    row = BY_KEY["v.v.add[16]"]
    cycles = {}
    for units in (1, 2):
        model = _SeveralUnits(units, 4096)
        for target, first in ((0, 1024), (256, 1280), (512, 0)):
            model.step(0, row, (1, 2, 3), (target, first, first), 128, 1, False)
        model.step(0, BY_KEY["halt"], (), (), 128, 1, False)
        cycles[units] = model.cycles
    # One unit needs 96 beats. Two need 64, as the third waits for a unit.
    assert cycles == {1: 1 + 96 + VECTOR_LATENCY, 2: 1 + 64 + VECTOR_LATENCY}


def test_one_unit_of_the_model_is_that_of_schedules() -> None:
    job = suite()["matrix-multiplication"].jobs[0]
    usual = _estimate(job, ScheduleModel)
    assert usual == pytest.approx(_estimate(job, lambda: _SeveralUnits(1, 4096)), rel=0.02)
    assert _estimate(job, lambda: _SeveralUnits(2, 4096)) < 0.6 * usual
