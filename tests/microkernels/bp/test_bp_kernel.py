"""The BP-M kernel on the instruction set simulator against its golden model; its schedule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.hazards import HazardLog
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.limits import RANGE_BYTES
from isa.program import Program
from isa.timing import VECTOR_LATENCY
from microkernels.bp import golden as bp_golden
from microkernels.bp.contents import pack, unpack
from microkernels.bp.jobs import bp_job
from microkernels.bp.kernel import (
    MIN_SLOTS,
    MatrixKernel,
    MatrixPlan,
    most_labels,
)
from microkernels.bp.layout import BpLayout
from microkernels.bp.problem import BpProblem, Messages
from microkernels.common.errors import KernelError
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelOutcome
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import preset

MEMORY = 1 << 22


def random_problem(seed: int, width: int, height: int, labels: int, bits: int) -> BpProblem:
    """Values of any size: additions saturate now and then."""
    rng = np.random.default_rng(seed)
    limit = min(2 ** rng.integers(3, bits), (1 << (bits - 1)) - 1)
    return BpProblem(
        rng.integers(-limit, limit, (height, width, labels)),
        rng.integers(-limit, limit, (labels, labels)),
        bits,
    )


def random_messages(seed: int, problem: BpProblem) -> Messages:
    rng = np.random.default_rng(seed)
    return rng.integers(-90, 90, problem.no_messages().shape).astype(f"<i{problem.bits // 8}")


def run(
    problem: BpProblem,
    iterations: int,
    messages: Messages | None = None,
    *,
    slots: int = 8,
    log: HazardLog | None = None,
) -> Messages:
    plan = MatrixPlan(labels=problem.labels, bits=problem.bits, slots=slots)
    layout = BpLayout.of(problem, plan, base=4096)
    program = plan.builder(None).program("bp.s")
    with DramImage(MEMORY) as memory:
        pack(problem, layout, memory, iterations=iterations, messages=messages)
        before = memory.read(0, MEMORY)
        simulator = Simulator(
            program,
            memory,
            parameters=layout.parameters,
            observer=None if log is None else log.observer(),
        )
        assert simulator.run().state == "halted"
        result = unpack(layout, memory)
        # Nothing but messages and flags has changed.
        after = memory.read(0, MEMORY)
        pack(problem, layout, memory, iterations=iterations, messages=result)
        assert (
            memory.read(layout.flags.end, MEMORY - layout.flags.end) == (after[layout.flags.end :])
        )
        assert before[: layout.flags.base] == after[: layout.flags.base]
        assert before[layout.flags.end : layout.tile] == after[layout.flags.end : layout.tile]
        return result


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1 << 20),
    width=st.integers(1, 9),
    height=st.integers(1, 9),
    labels=st.integers(1, 20),
    bits=st.sampled_from([8, 16, 32]),
    iterations=st.integers(0, 2),
    slots=st.sampled_from([4, 6, 8, 10]),
)
def test_equals_the_golden_model(
    seed: int, width: int, height: int, labels: int, bits: int, iterations: int, slots: int
) -> None:
    problem = random_problem(seed, width, height, labels, bits)
    messages = random_messages(seed, problem)
    log = HazardLog()
    result = run(problem, iterations, messages, slots=slots, log=log)
    assert (result == bp_golden.iterate(problem, iterations, messages)).all()
    assert [str(hazard) for hazard in log.hazards] == []


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_the_most_labels_that_fit(bits: int) -> None:
    labels = most_labels(bits, 4096)
    assert labels == {8: 52, 16: 34, 32: 22}[bits]
    problem = random_problem(bits, 4, 3, labels, bits)
    log = HazardLog()
    result = run(problem, 1, log=log)
    assert (result == bp_golden.iterate(problem, 1)).all()
    assert log.hazards == []


@pytest.mark.parametrize("labels", [1, 2, 4, 8, 9, 12, 16, 17, 24, 32])
def test_no_hazard_at_any_vector_length(labels: int) -> None:
    problem = random_problem(labels, 5, 7, labels, 16)
    log = HazardLog()
    result = run(problem, 1, log=log)
    assert (result == bp_golden.iterate(problem, 1)).all()
    assert [str(hazard) for hazard in log.hazards] == []


@pytest.mark.parametrize("left_out", range(4))
def test_the_spacing_is_needed(monkeypatch: pytest.MonkeyPatch, left_out: int) -> None:
    """Without the pads after so many instructions the model must find hazards: it is not blind."""
    space = MatrixKernel.space

    def less(self: MatrixKernel, between: int) -> None:
        if between != left_out:
            space(self, between)

    monkeypatch.setattr(MatrixKernel, "space", less)
    log = HazardLog()
    run(random_problem(1, 5, 5, 2, 16), 1, log=log)
    assert log.hazards


@pytest.mark.parametrize(
    ("size", "latency", "limit"),
    # The real tile may lose one cycle an update to line ends, start and end; a small one more.
    [((64, 48), 60, 81.0), ((24, 16), 300, 84.0)],
)
def test_an_update_takes_80_cycles(size: tuple[int, int], latency: int, limit: float) -> None:
    """16 labels of 16 bits, line ends, start and end included."""
    problem = motorcycle(*size, 16).problem
    outcome = on_model(problem, latency)
    assert outcome.result.engine.counters["VECTOR_BUSY"] >= 80 * problem.updates
    assert outcome.cycles_per_update <= limit


def on_model(problem: BpProblem, latency: int = 60) -> KernelOutcome:
    """An iteration on the timing model of an engine."""
    job = bp_job(problem, sums=False)
    outcome = run_on(job, preset("pe"), on="model", memory=MemoryBehaviour(latency=latency))
    assert outcome.match
    return outcome


def test_a_lone_line_waits_for_the_vector_unit_three_times_an_update() -> None:
    """84 cycles with a latency of 8, 96 with one of 9 to 12."""
    outcome = on_model(random_problem(3, 200, 1, 16, 16))
    beats = 4
    fillers = 3 * (-(-VECTOR_LATENCY // beats) - 1)
    assert outcome.cycles_per_update <= 64 + (fillers + 2) * beats + 4


def program(**options: int) -> Program:
    return MatrixPlan(**options).program(None)


def test_programs_fit_and_are_the_same_every_time() -> None:
    for labels in (1, 4, 16, 34):
        builders = (MatrixPlan(labels=labels).builder(None) for _ in range(2))
        program, again = (builder.program("bp.s") for builder in builders)
        assert len(program.words) <= 608
        assert program.words == again.words


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: program(labels=35), "1 to 34 fit"),
        (lambda: program(labels=0), "labels must be at least 1"),
        (lambda: program(labels=53, bits=8), "1 to 52 fit"),
        (lambda: program(labels=16, bits=64), "8, 16, 32 bits, not 64"),
        (lambda: program(labels=16, slots=5), "even number of at least 4, not 5"),
        (lambda: program(labels=16, slots=2), "even number of at least 4, not 2"),
        (lambda: program(labels=16, scratchpad_bytes=512), "512 bytes; 1 to "),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message: str) -> None:
    with pytest.raises(KernelError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_fewer_slots_when_they_do_not_fit() -> None:
    assert "ring of 4 slots" in MatrixPlan(labels=34).builder(None).text()
    assert "ring of 8 slots" in MatrixPlan(labels=16).builder(None).text()


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_slots_share_no_range(bits: int) -> None:
    """Else an instruction next to a load waits for it, with most odd numbers of labels."""
    for labels in range(2, most_labels(bits, 4096) + 1):
        places = MatrixPlan(labels=labels, bits=bits, slots=MIN_SLOTS).pad
        assert places.ring % RANGE_BYTES == places.slot % RANGE_BYTES == 0
