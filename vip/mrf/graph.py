"""The verb ``solve_graph``: belief propagation on a graph of any shape."""

from dataclasses import dataclass

import numpy as np

from microkernels.common.errors import CHECK
from microkernels.graphs.jobs import graph_job
from microkernels.graphs.problem import Graph, energy
from microkernels.graphs.soft import probabilities
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.machine import Place
from soc.generate.presets import Design, design
from support.errors import Shown
from vip.progress import Progress, counting, silent


@dataclass(frozen=True, kw_only=True)
class GraphRun(Shown):
    """A solved graph.

    Attributes:
        labels: by variable, those with the least belief. energy: of these labels.
        marginals: by variable, probabilities of its labels; None: not asked for.
        updates: number of messages. cycles: that an engine took; None: no machine with cycles.
        differing: elements of beliefs and messages that differ from the golden model's.
    """

    labels: list[int]
    energy: int
    marginals: list[list[float]] | None
    updates: int
    cycles: int | None
    differing: int


def solve_graph(
    graph: Graph,
    config: Design = "pe",
    *,
    iterations: int = 5,
    marginals: bool = False,
    on: Place = "golden",
    progress: Progress = silent,
) -> GraphRun:
    """Find labels of low energy, or the probabilities of all labels, on one engine; every belief
    and message is compared with the golden model's.

    Parameters:
        graph: variables and edges. config: the engine's. on: where to compute.
        iterations: 1 or more; each has all messages, over all edges and back.
        marginals: messages are those of sum-product, by which costs are negative logarithms of
            probabilities in 256ths (:mod:`microkernels.graphs.soft`).
        progress: called with the machine's cycles.

    Raises:
        VipError: a value is out of range, an edge does not fit the scratchpad, a run faults, or a
            simulator can't be built.
    """
    CHECK.at_least("iterations", iterations, 1)
    machine = design(config)
    room = machine.pe.scratchpad_bytes
    job = graph_job(graph, iterations, soft=marginals, scratchpad_bytes=room)
    elements, cycles = job.expected, None
    if on != "golden":
        outcome = run_on(job, machine, on=on, preload=True, progress=counting(progress, "cycles"))
        elements, cycles = outcome.outputs, None if on == "iss" else outcome.cycles
    ends = np.cumsum([len(costs) for costs in graph.costs])
    beliefs = np.split(elements[: ends[-1]], ends[:-1])
    labels = [int(belief.argmin()) for belief in beliefs]
    return GraphRun(
        labels=labels,
        energy=energy(graph, labels),
        marginals=[probabilities(one).tolist() for one in beliefs] if marginals else None,
        updates=job.updates or 0,
        cycles=cycles,
        differing=job.differing(elements),
    )
