"""Belief propagation on graphs: against enumeration, on the machine, and bad graphs."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import HIGHEST
from microkernels.graphs.jobs import graph_job
from microkernels.graphs.kernel import WINDOW
from microkernels.graphs.problem import Edge, Graph, energy, ordered, propagate, read_graph
from microkernels.graphs.soft import UNIT, probabilities, soft_minimum
from microkernels.runtime.job import simulate
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import tile_preset


def random_graph(
    seed: int, variables: int, labels: int, degree: int, *, tree: bool = False
) -> Graph:
    """Variables with 1 to ``labels`` labels, each with edges to up to ``degree`` before it."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, labels + 1, variables)
    costs = tuple(random.integers(0, 300, size) for size in sizes)
    edges = [
        Edge(first, second, random.integers(0, 200, (sizes[first], sizes[second])))
        for second in range(1, variables)
        for first in sorted(set(random.integers(0, second, 1 if tree else degree).tolist()))
    ]
    return Graph(costs, tuple(edges))


def test_on_a_tree_beliefs_are_least_energies() -> None:
    graph = random_graph(3, 7, 4, 1, tree=True)
    beliefs, _ = propagate(graph, ordered(graph, 7 * graph.steps, WINDOW))
    choices = list(product(*(range(len(costs)) for costs in graph.costs)))
    energies = np.array([energy(graph, labels) for labels in choices])
    for variable, belief in enumerate(beliefs):
        least = [
            energies[[labels[variable] == label for labels in choices]].min()
            for label in range(len(belief))
        ]
        assert (belief - belief[0]).tolist() == [int(one - least[0]) for one in least]


def test_the_soft_minimum_is_within_an_element() -> None:
    """Of the sum of two probabilities, by their logarithms, for any difference and sign."""
    first = np.array([HIGHEST, 0, -3000, -20000, 1], np.int16)[:, None]
    second = np.arange(-20000, HIGHEST + 1).astype(np.int16)
    soft = soft_minimum(*np.broadcast_arrays(first, second)).astype(int)
    exact = -UNIT * np.logaddexp(-first / UNIT, -second / UNIT)
    assert np.abs(soft - exact).max() < 1
    assert (soft[0] == second).sum() >= len(second) - 7 * UNIT


def test_on_a_tree_beliefs_are_marginals() -> None:
    graph = random_graph(3, 7, 4, 1, tree=True)
    beliefs, _ = propagate(graph, ordered(graph, 7 * graph.steps, WINDOW), soft=True)
    choices = list(product(*(range(len(costs)) for costs in graph.costs)))
    weights = np.exp(-np.array([energy(graph, labels) for labels in choices]) / UNIT)
    for variable, belief in enumerate(beliefs):
        shares = np.zeros(len(belief))
        np.add.at(shares, [labels[variable] for labels in choices], weights / weights.sum())
        assert probabilities(belief) == pytest.approx(shares, abs=0.01)
        assert 0 < shares.max() < 0.9 or len(shares) == 1


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize(("variables", "labels", "degree"), [(2, 1, 1), (9, 5, 2), (40, 16, 3)])
def test_the_engine_leaves_the_golden_models_beliefs(
    variables: int, labels: int, degree: int, soft: bool
) -> None:
    job = graph_job(random_graph(variables, variables, labels, degree), 2, soft=soft)
    outputs, hazards = simulate(job)
    assert job.differing(outputs) == 0
    assert not hazards
    assert outputs.any() or labels == 1


def test_soft_costs_need_room_and_short_rows() -> None:
    far = np.array([0, 31_000])
    graph = Graph((far, far[:1]), (Edge(0, 1, np.zeros((2, 1), int)),))
    assert graph_job(graph, 1).updates == 2
    with pytest.raises(KernelError, match="values may reach 33048"):
        graph_job(graph, 1, soft=True)
    wide = (np.zeros(17, int), np.zeros(17, int))
    graph = Graph(wide, (Edge(0, 1, np.zeros((17, 17), int)),))
    with pytest.raises(KernelError, match=r"pairs of labels, filled up, .* 1 to 512, not 544"):
        graph_job(graph, 1, soft=True, scratchpad_bytes=16384)


@pytest.mark.parametrize("soft", [False, True])
def test_cycles_are_near_the_bound(soft: bool) -> None:
    """With 16 labels everywhere, the bus moves a matrix, vectors and an item for each message. For
    soft minima the vector unit binds: 21 operations on halves of 128 to 16 elements, each of which
    the next one waits for."""
    random = np.random.default_rng(5)
    edges = [
        Edge(n, other, random.integers(0, 99, (16, 16)))
        for n in range(40)
        for other in sorted({(n + 1) % 40, (n + 7) % 40})
    ]
    job = graph_job(Graph(tuple(random.integers(0, 99, (40, 16))), tuple(edges)), 2, soft=soft)
    outcome = run_on(job, replace(tile_preset("vault"), pes=1), on="model")
    assert outcome.match
    bound = outcome.result.bytes_moved / 8
    if soft:
        bound = outcome.result.counters[0]["VECTOR_BUSY"]
    assert bound < outcome.cycles < (1.7 if soft else 1.35) * bound


def test_no_pass_overtakes_the_pass_ahead_at_a_belief() -> None:
    """Three variables in a line, whose messages were sent five times without those in reply."""
    graph = Graph(
        (np.array([0, 2, 7]), np.array([1, 0]), np.array([3])),
        (
            Edge(0, 1, np.array([[0, 9], [9, 0], [5, 5]])),
            Edge(1, 2, np.array([[4], [0]])),
        ),
    )
    order = [step for step in ordered(graph, 5 * graph.steps, WINDOW) if step is not None]
    for ahead, step in zip(5 * graph.steps, order, strict=True):
        assert ahead.back == step.back
    job = graph_job(graph, 5)
    assert job.expected[:6].tolist() == [0, -3, 7, 1, -2, 3]


def test_no_window_shares_a_belief_that_changes() -> None:
    graph = random_graph(8, 12, 3, 2)
    order = list(ordered(graph, 3 * graph.steps, WINDOW))
    assert sorted(step for step in order if step is not None) == sorted(3 * graph.steps)
    for start in range(len(order)):
        ends = [graph.ends(step) for step in order[start : start + WINDOW] if step is not None]
        for number, (_, target) in enumerate(ends):
            others = ends[:number] + ends[number + 1 :]
            assert all(target not in other for other in others)


TWO = (np.array([1, 2]), np.array([3, 4, 5]))


@pytest.mark.parametrize(
    ("costs", "edges", "message"),
    [
        (TWO, [(0, 2, np.ones((2, 3), int))], "edge 0: variable 2; there are 2, from 0"),
        (TWO, [(-1, 1, np.ones((2, 3), int))], "edge 0: variable -1"),
        (TWO, [(1, 1, np.ones((3, 3), int))], "edge 0: both ends are variable 1"),
        (TWO, [(0, 1, np.ones((3, 2), int))], r"must have the shape \(2, 3\), not \(3, 2\)"),
        (TWO, [(0, 1, np.diag([40_000, 0, 0])[:2])], "values may reach 80005"),
        ((np.zeros(0, int),), [], "variable 0: costs of 1 to 256 labels"),
        ((np.zeros(257, int),), [], "variable 0: costs of 1 to 256 labels"),
    ],
)
def test_graphs_that_are_none_are_refused(costs: Any, edges: Any, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        Graph(costs, tuple(Edge(*edge) for edge in edges))


def test_edges_beyond_the_scratchpad_are_refused() -> None:
    sizes = (30, 30)
    costs = tuple(np.zeros(size, int) for size in sizes)
    graph = Graph(costs, (Edge(0, 1, np.ones(sizes, int)),))
    with pytest.raises(KernelError, match="900 pairs of labels and 30 labels take 8768 bytes"):
        graph_job(graph, 1)
    assert graph_job(graph, 1, scratchpad_bytes=16384).updates == 2


FILE = {"labels": [2, 3], "costs": [1, 2, 3, 4, 5], "edges": [[0, 1]], "pairs": [0, 1, 2, 3, 4, 5]}


def test_files_have_graphs(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, **{name: np.array(part) for name, part in FILE.items()})
    graph = read_graph(path)
    assert [costs.tolist() for costs in graph.costs] == [[1, 2], [3, 4, 5]]
    assert graph.edges[0].costs.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": [[0, 2]]}, "an edge of variable 2; there are 2 variables, from 0"),
        ({"edges": [[0, 1, 1]]}, r"edges must have the shape \(edges, 2\)"),
        ({"edges": [[0.5, 1]]}, "edges must be whole numbers in 2 dimensions"),
        ({"costs": [1, 2]}, "costs must be 5 numbers, not 2"),
        ({"pairs": [1]}, "pairs must be 6 numbers, not 1"),
        ({"labels": [0, 3]}, "1 to 256 labels"),
        ({"labels": [[2, 3]]}, "labels must be whole numbers in 1 dimensions"),
    ],
)
def test_bad_files_are_one_line(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, **{name: np.array(part) for name, part in {**FILE, **change}.items()})
    with pytest.raises(KernelError, match=message) as error:
        read_graph(path)
    assert "\n" not in str(error.value)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.npz").write_bytes(b"no")
    with pytest.raises(KernelError, match=r"not a NumPy archive \(\.npz\) with the arrays labels"):
        read_graph(tmp_path / "graph.npz")
