"""Markov random fields of the user: cycles of a message, full HD, the bound of TRW-S."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from microkernels.bp.choice import Form
from microkernels.bp.golden import energy, iterate, labels
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem, EdgeWeights
from microkernels.bp.smoothness import smoothness_costs
from microkernels.bp.trws.golden import TrwsField
from microkernels.bp.trws.jobs import trws_job
from microkernels.data.stereo import motorcycle
from microkernels.graphs.jobs import graph_job
from microkernels.graphs.problem import Edge, Graph
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import bp_job_on, run_on
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset, preset, tile_preset

from .belief import FULL_HD
from .harness.experiment import Measurement, experiment
from .harness.runs import exact, launch_runs

#: Element widths, and the divisor of costs for 8 bits: they then fit; 5 % of the sums on full HD
#: saturate.
WIDTHS = (16, 8)

DIVISOR = 4

_FULL_HD_LABELS = 16

#: Iterations after which energies are compared.
_ENERGY_ITERATIONS = 5


def _full_hd_problem(bits: int, width: int, height: int) -> BpProblem:
    problem = motorcycle(width, height, _FULL_HD_LABELS).problem
    costs, smoothness = problem.data_costs, problem.smoothness
    if bits < problem.bits:
        costs, smoothness = ((part + DIVISOR // 2) // DIVISOR for part in (costs, smoothness))
    return BpProblem(costs, smoothness, bits)


def full_hd_shifts_job(
    bits: int, config: ChipConfig, *, width: int = FULL_HD[0], height: int = FULL_HD[1]
) -> KernelJob:
    """The job with elements of ``bits`` bits, one of :data:`WIDTHS`, for a chip; ``width`` and
    ``height`` are the image's pixels.

    Raises:
        KernelError: tiles that don't fit their vault.
    """
    return bp_job_on(_full_hd_problem(bits, width, height), 1, config, form="shifts")


@lru_cache(maxsize=4)
def full_hd_energy(bits: int, *, width: int = FULL_HD[0], height: int = FULL_HD[1]) -> int:
    """Energy of the labels after five iterations of the golden model with elements of ``bits``
    bits, by the costs of 16 bits."""
    solved = _full_hd_problem(bits, width, height)
    chosen = labels(solved, iterate(solved, _ENERGY_ITERATIONS))
    return energy(_full_hd_problem(WIDTHS[0], width, height), chosen)


_ENGINE, _VAULT, _CHIP = "pe", "vault", "thesis"

_SMOOTH, _WEIGHT = "linear:2", 5

#: Iterations of TRW-S at full size, and the labels that the pair's disparities allow.
_ITERATIONS, _LABELS, _SIZE = 30, 54, (741, 500)

_SMALL = (185, 125)

_SMALL_LABELS = 16

#: Bytes per cycle of a vault's bus.
_BUS_BYTES = 8


def _messages_job(
    pes: int,
    *,
    labels: int = 16,
    bits: int = 16,
    form: Form = "shifts",
    trws: bool = False,
    weighted: bool = False,
    damping: int = 0,
) -> KernelJob:
    """One iteration of BP-M or TRW-S on random data costs."""
    width, height = (60, 34) if pes > 1 else (64, 48)
    if trws:
        width, height = _SMALL
    limit = 1 << bits - 3
    rng = np.random.default_rng(1)
    costs = rng.integers(0, limit, (height, width, labels))
    smoothness = smoothness_costs(labels, _SMOOTH, _WEIGHT if bits > 8 else 1)
    if trws:
        # Its numbers have fraction bits.
        costs >>= 4
        return trws_job(
            BpProblem(costs, smoothness, bits), 1, engines=ChipEngines(pes=pes), form=form
        )
    weights = None
    if weighted:
        weights = EdgeWeights(
            rng.integers(1, 3, (height, width - 1)), rng.integers(1, 3, (height - 1, width))
        )
    problem = BpProblem(costs, smoothness, bits, weights)
    return bp_job(problem, 1, engines=ChipEngines(pes=pes), form=form, damping=damping)


#: Measured messages -> what makes their job for a number of engines.
_CASES: Mapping[str, Callable[[int], KernelJob]] = {
    "bp_matrix": partial(_messages_job, form="matrix"),
    "bp_16_bits": _messages_job,
    "bp_8_bits": partial(_messages_job, bits=8),
    "bp_60_labels": partial(_messages_job, labels=60),
    "bp_2_labels": partial(_messages_job, labels=2, form="auto"),
    "bp_5_labels": partial(_messages_job, labels=5, form="auto"),
    "bp_weights": partial(_messages_job, weighted=True),
    "bp_damping": partial(_messages_job, damping=4),
    "bp_weights_damping": partial(_messages_job, weighted=True, damping=4),
    "bp_weights_matrix": partial(_messages_job, form="matrix", weighted=True),
    "bp_weights_60_labels": partial(_messages_job, labels=60, weighted=True),
    "trws_matrix": partial(_messages_job, form="matrix", trws=True),
    "trws": partial(_messages_job, trws=True),
}


#: Labels across a window of motions -> element width.
_WINDOWS = {3: 16, 5: 16, 7: 8}


def _flow_job(window: int, bits: int, pes: int) -> KernelJob:
    """An iteration of optical flow on random data costs."""
    rng = np.random.default_rng(1)
    costs = rng.integers(0, 1 << bits - 3, (34, 60, window * window))
    smoothness = smoothness_costs(window * window, "linear:3", 1, window)
    return bp_job(BpProblem(costs, smoothness, bits), 1, engines=ChipEngines(pes=pes))


def _graph_jobs() -> Iterator[tuple[str, KernelJob]]:
    """Two iterations on a graph of 40 variables of 16 labels, each with edges to four others."""
    rng = np.random.default_rng(5)
    edges = [
        Edge(n, other, rng.integers(0, 99, (16, 16)))
        for n in range(40)
        for other in ((n + 1) % 40, (n + 7) % 40)
    ]
    graph = Graph(tuple(rng.integers(0, 99, (40, 16))), tuple(edges))
    for name, soft in (("graph", False), ("graph_marginals", True)):
        yield name, graph_job(graph, 2, soft=soft)


@experiment(presets=("pe", "vault", "thesis"), tools=("amaranth", "scikit-image"), minutes=15)
def mrf() -> Iterator[Measurement]:
    """Cycles of an engine for a message of BP-M and TRW-S by shifts and by a matrix.

    Truncated linear costs, on the timing model: of one engine with ideal memory and of four engines
    of a vault. An iteration by shifts on full HD, whole, on all engines of the thesis's chip, with
    16 and with 8 bits. Every message is compared with the golden model's. And the energy of TRW-S
    above its bound on the Motorcycle pair, on the golden model.
    """
    engine, vault = preset(_ENGINE), tile_preset(_VAULT)
    for name, case in _CASES.items():
        alone = run_on(case(1), engine, on="model")
        shared = run_on(case(vault.pes), vault, on="model")
        for machine, outcome in ((_ENGINE, alone), (_VAULT, shared)):
            cycles = exact(outcome, f"{name} on {machine}").cycles_per_update
            assert cycles is not None
            yield Measurement(f"{name}_{machine}", cycles, "cycles")
    for window, bits in _WINDOWS.items():
        outcome = run_on(_flow_job(window, bits, vault.pes), vault, on="model")
        cycles = exact(outcome, f"flow of {window} x {window}").cycles_per_update
        yield Measurement(f"flow_{window * window}_labels", cycles, "cycles")
    for name, job in _graph_jobs():
        outcome = exact(run_on(job, replace(vault, pes=1), on="model"), name)
        yield Measurement(f"{name}_message", outcome.cycles_per_update, "cycles")
        bus = outcome.result.bytes_moved / _BUS_BYTES
        busy = outcome.result.counters[0]["VECTOR_BUSY"]
        for part, count in (("bus", bus), ("vector", busy)):
            yield Measurement(f"{name}_{part}", count / (job.updates or 1), "cycles")
    yield from _full_hd()
    for name, size in (("small", (*_SMALL, _SMALL_LABELS)), ("full", (*_SIZE, _LABELS))):
        field = TrwsField(motorcycle(*size).problem)
        for _ in range(_ITERATIONS):
            field.iterate()
        reached, bound = field.step()
        yield Measurement(f"trws_{name}_energy", reached, "")
        yield Measurement(f"trws_{name}_bound", bound, "", more_is_better=True)
        gap = 100 * (reached - bound) / bound
        yield Measurement(f"trws_{name}_gap", gap, "%")


def _full_hd() -> Iterator[Measurement]:
    config = chip_preset(_CHIP)
    energies = []
    for bits in WIDTHS:
        job = full_hd_shifts_job(bits, config)
        (run,) = launch_runs(job, config, job.name).values()
        prefix = f"full_hd_{bits}_bits"
        yield Measurement(f"{prefix}_cycles", run.cycles, "cycles")
        yield Measurement(f"{prefix}_ms", run.cycles * run.tck_ns / 1e6, "ms")
        yield Measurement(f"{prefix}_gb_s", run.gbs, "GB/s", more_is_better=True)
        busy = 100 * run.share("VECTOR_BUSY")
        yield Measurement(f"{prefix}_vector_busy", busy, "%", tolerance=None)
        energies.append(full_hd_energy(bits))
        yield Measurement(f"{prefix}_energy", energies[-1], "")
    yield Measurement("full_hd_energy_loss", 100 * (energies[1] / energies[0] - 1), "%")
