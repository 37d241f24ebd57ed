"""The golden model against the equations, computed label by label in plain Python."""

import numpy as np
import pytest

from microkernels.bp import golden as bp_golden
from microkernels.bp.problem import BpProblem, MessageDirection
from microkernels.common.errors import KernelError

STEP = {
    MessageDirection.RIGHT: (1, 0),
    MessageDirection.LEFT: (-1, 0),
    MessageDirection.DOWN: (0, 1),
    MessageDirection.UP: (0, -1),
}


def random_problem(seed: int, width: int, height: int, labels: int, bits: int = 32) -> BpProblem:
    rng = np.random.default_rng(seed)
    return BpProblem(
        rng.integers(0, 100, (height, width, labels)),
        rng.integers(0, 40, (labels, labels)),
        bits,
    )


def edge_cost(problem: BpProblem, v: tuple[int, int], lv: int, w: tuple[int, int], lw: int) -> int:
    """theta_{v,w}(lv, lw): the right or lower pixel's label comes first."""
    return int(problem.smoothness[lv, lw] if v > w else problem.smoothness[lw, lv])


def brute_force(problem: BpProblem, iterations: int) -> dict:
    """Equation 2.10 in floating point; messages as ``[direction, (x, y)] -> list``."""
    pixels = [(x, y) for y in range(problem.height) for x in range(problem.width)]
    label_range = range(problem.labels)
    message = {(d, p): [0.0] * problem.labels for d in MessageDirection for p in pixels}
    for _ in range(iterations):
        for direction in MessageDirection:
            dx, dy = STEP[direction]
            for x, y in sorted(pixels, key=lambda p: p[0] * dx + p[1] * dy):
                target = (x + dx, y + dy)
                if target not in pixels:
                    continue
                # The message that arrives from the receiver moves against the sweep.
                incoming = [d for d in MessageDirection if STEP[d] != (-dx, -dy)]
                new = []
                for label_w in label_range:
                    new.append(
                        min(
                            edge_cost(problem, (x, y), label_v, target, label_w)
                            + float(problem.data_costs[y, x, label_v])
                            + sum(message[d, (x, y)][label_v] for d in incoming)
                            for label_v in label_range
                        )
                    )
                message[direction, target] = [value - new[0] for value in new]
    return message


@pytest.mark.parametrize(
    ("width", "height", "labels", "iterations"),
    [(4, 3, 3, 2), (3, 5, 4, 1), (1, 4, 2, 2), (5, 1, 3, 2), (1, 1, 3, 1), (3, 3, 1, 1)],
)
def test_messages_follow_equation_2_10(
    width: int, height: int, labels: int, iterations: int
) -> None:
    problem = random_problem(width + 10 * height, width, height, labels)
    expected = brute_force(problem, iterations)
    messages = bp_golden.iterate(problem, iterations)
    for (direction, (x, y)), values in expected.items():
        assert messages[direction, y, x].tolist() == values


def test_labels_follow_equation_2_11() -> None:
    problem = random_problem(3, 4, 3, 5)
    messages = bp_golden.iterate(problem, 2)
    chosen = bp_golden.labels(problem, messages)
    for y in range(3):
        for x in range(4):
            total = [
                int(problem.data_costs[y, x, label]) + int(messages[:, y, x, label].sum())
                for label in range(5)
            ]
            assert chosen[y, x] == total.index(min(total))


def test_a_tie_gives_the_lowest_label() -> None:
    problem = BpProblem(np.full((1, 1, 3), 7), np.zeros((3, 3), int))
    assert bp_golden.labels(problem, problem.no_messages())[0, 0] == 0


def test_one_line_is_solved_exactly() -> None:
    """On a tree, min-sum belief propagation finds the least energy."""
    problem = random_problem(11, 6, 1, 3)
    chosen = bp_golden.labels(problem, bp_golden.iterate(problem, 1))
    every = np.stack(np.meshgrid(*[range(3)] * 6, indexing="ij"), axis=-1).reshape(-1, 1, 6)
    least = min(bp_golden.energy(problem, labelling) for labelling in every)
    assert bp_golden.energy(problem, chosen) == least


def test_iterations_lower_the_energy() -> None:
    problem = random_problem(5, 12, 10, 4)
    first = bp_golden.labels(problem, problem.no_messages())
    last = bp_golden.labels(problem, bp_golden.iterate(problem, 4))
    assert bp_golden.energy(problem, last) < bp_golden.energy(problem, first)


def test_every_addition_saturates_in_its_order() -> None:
    """Values chosen so that another order of additions gives another message."""
    costs = np.array([[[0, 100], [0, 0]]])
    problem = BpProblem(costs, np.array([[0, 127], [127, 0]]), 8)
    messages = problem.no_messages()
    messages[MessageDirection.UP, 0, 0] = [0, 100]
    messages[MessageDirection.DOWN, 0, 0] = [0, 100]
    messages[MessageDirection.RIGHT, 0, 0] = [100, -120]
    bp_golden.sweep(problem, messages, MessageDirection.RIGHT)
    # t = [100, ((100 + 100) + 100) - 120] = [100, 127 - 120]; r = [100, 7].
    assert messages[MessageDirection.RIGHT, 0, 1].tolist() == [0, -93]


def test_start_messages_are_kept_at_borders_and_not_changed() -> None:
    problem = random_problem(2, 4, 4, 3)
    start = problem.no_messages()
    start[MessageDirection.RIGHT, :, 0] = 9
    given = start.copy()
    result = bp_golden.iterate(problem, 1, start)
    assert (start == given).all()
    assert (result[MessageDirection.RIGHT, :, 0] == 9).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BpProblem(np.zeros((3, 4), int), np.zeros((2, 2), int)), "shape (height"),
        (lambda: BpProblem(np.zeros((0, 4, 2), int), np.zeros((2, 2), int)), "shape (height"),
        (lambda: BpProblem(np.zeros((3, 4, 2), int), np.zeros((2, 3), int)), "(2, 2)"),
        (lambda: BpProblem(np.zeros((3, 4, 2)), np.zeros((2, 2), int)), "whole numbers"),
        (lambda: BpProblem(np.full((1, 1, 2), 40000), np.zeros((2, 2), int)), "40000"),
        (lambda: BpProblem(np.zeros((1, 1, 2), int), np.zeros((2, 2), int), 24), "8, 16, 32"),
        (lambda: BpProblem(np.zeros((1, 1, 257), int), np.zeros((257, 257), int)), "256"),
        (lambda: bp_golden.iterate(random_problem(1, 2, 2, 2), -1), "0 or more"),
        (
            lambda: bp_golden.iterate(random_problem(1, 2, 2, 2), 1, np.zeros((4, 2, 2, 3), int)),
            "(4, 2, 2, 2)",
        ),
        (lambda: bp_golden.energy(random_problem(1, 2, 2, 2), np.full((2, 2), 2)), "0 to 1"),
        (lambda: bp_golden.energy(random_problem(1, 2, 2, 2), np.zeros((2, 3), int)), "(2, 2)"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message: str) -> None:
    with pytest.raises(KernelError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)
