"""Markov random fields of the user: cycles of a message, and how close TRW-S comes to its bound."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

import microkernels.bp.golden
import microkernels.bp.trws.golden
import microkernels.data.stereo
import sim_tb.measure.full_hd_shifts
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem, EdgeWeights
from microkernels.bp.shifts.choice import Form
from microkernels.bp.trws.golden import TrwsField
from microkernels.bp.trws.jobs import trws_job
from microkernels.data.stereo import motorcycle
from microkernels.mrf.smoothness import smoothness_costs
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.kernels import run_on
from sim_tb.measure.full_hd_shifts import WIDTHS, full_hd_shifts_job, measure_full_hd_shifts
from soc.generate.presets import chip_preset, preset, tile_preset

from . import fingerprints
from .functional import model_parts
from .measurement import BenchError, Measurement

__all__ = ["made_of_mrf", "mrf"]

_ENGINE, _VAULT, _CHIP = "pe", "vault", "thesis"
_SMOOTH, _WEIGHT = "linear:2", 5
#: Iterations of TRW-S at full size, and the labels that the pair's disparities allow.
_ITERATIONS, _LABELS, _SIZE = 30, 54, (741, 500)
_SMALL = (185, 125)
_SMALL_LABELS = 16


@dataclass(frozen=True, kw_only=True)
class _Case:
    """Messages that are counted: labels, element width, form, method, edge weights, damping."""

    labels: int = 16
    bits: int = 16
    form: Form = "shifts"
    trws: bool = False
    weighted: bool = False
    damping: int = 0

    def job(self, pes: int) -> KernelJob:
        """One iteration on random data costs."""
        width, height = (60, 34) if pes > 1 else (64, 48)
        if self.trws:
            width, height = _SMALL
        limit = 1 << self.bits - 3
        rng = np.random.default_rng(1)
        costs = rng.integers(0, limit, (height, width, self.labels))
        smoothness = smoothness_costs(self.labels, _SMOOTH, _WEIGHT if self.bits > 8 else 1)
        if self.trws:
            # Its numbers have fraction bits.
            costs >>= 4
            return trws_job(BpProblem(costs, smoothness, self.bits), 1, pes=pes, form=self.form)
        weights = None
        if self.weighted:
            weights = EdgeWeights(
                rng.integers(1, 3, (height, width - 1)), rng.integers(1, 3, (height - 1, width))
            )
        problem = BpProblem(costs, smoothness, self.bits, weights)
        return bp_job(problem, 1, pes=pes, form=self.form, damping=self.damping)


_CASES: Mapping[str, _Case] = {
    "bp_matrix": _Case(form="matrix"),
    "bp_16_bits": _Case(),
    "bp_8_bits": _Case(bits=8),
    "bp_60_labels": _Case(labels=60),
    "bp_weights": _Case(weighted=True),
    "bp_damping": _Case(damping=4),
    "bp_weights_damping": _Case(weighted=True, damping=4),
    "bp_weights_matrix": _Case(form="matrix", weighted=True),
    "bp_weights_60_labels": _Case(labels=60, weighted=True),
    "trws_matrix": _Case(form="matrix", trws=True),
    "trws": _Case(trws=True),
}


def mrf() -> Iterator[Measurement]:
    """Cycles of an engine for a message of BP-M and TRW-S by shifts and by a matrix, truncated
    linear costs, on the timing model: of one engine with ideal memory and of four engines of a
    vault. An iteration by shifts on full HD, whole, on all engines of the thesis's chip, with 16
    and with 8 bits. Every message is compared with the golden model's. And the energy of TRW-S
    above its bound on the Motorcycle pair, on the golden model."""
    engine, vault = preset(_ENGINE), tile_preset(_VAULT)
    for name, case in _CASES.items():
        alone = run_on(case.job(1), engine, on="model")
        shared = run_on(case.job(vault.pes), vault, on="model")
        for machine, outcome in ((_ENGINE, alone), (_VAULT, shared)):
            if not outcome.match:
                raise BenchError(f"{name}: messages of {machine} differ from the golden model's")
            cycles = outcome.cycles_per_update
            assert cycles is not None
            yield Measurement(f"{name}_{machine}", cycles, "cycles")
    yield from _full_hd()
    for label, size, labels in (("small", _SMALL, _SMALL_LABELS), ("full", _SIZE, _LABELS)):
        field = TrwsField(motorcycle(*size, labels).problem)
        for _ in range(_ITERATIONS):
            field.iterate()
        step = field.step()
        yield Measurement(f"trws_{label}_energy", step.energy, "")
        yield Measurement(f"trws_{label}_bound", step.bound, "", more_is_better=True)
        gap = 100 * (step.energy - step.bound) / step.bound
        yield Measurement(f"trws_{label}_gap", gap, "%")


def _full_hd() -> Iterator[Measurement]:
    config = chip_preset(_CHIP)
    energies = []
    for bits in WIDTHS:
        run = measure_full_hd_shifts(bits, config)
        prefix = f"full_hd_{bits}_bits"
        yield Measurement(f"{prefix}_cycles", run.cycles, "cycles")
        yield Measurement(f"{prefix}_ms", run.ms, "ms")
        yield Measurement(f"{prefix}_gb_s", run.gbs, "GB/s", more_is_better=True)
        busy = 100 * run.vector_busy
        yield Measurement(f"{prefix}_vector_busy", busy, "%", tolerance=None)
        yield Measurement(f"{prefix}_energy", run.energy, "")
        energies.append(run.energy)
    yield Measurement("full_hd_energy_loss", 100 * (energies[1] / energies[0] - 1), "%")


def made_of_mrf() -> dict[str, str]:
    """The machines, the model of them, the programs, and the golden models."""
    vault, chip = tile_preset(_VAULT), chip_preset(_CHIP)
    jobs = [case.job(pes) for case in _CASES.values() for pes in (1, vault.pes)]
    jobs += [full_hd_shifts_job(bits, chip) for bits in WIDTHS]
    return {
        "Verilog of pe": fingerprints.hardware(preset(_ENGINE)),
        "Verilog of vault": fingerprints.hardware(vault),
        "programs": fingerprints.programs(job.program for job in jobs),
        f"Verilog of {_CHIP}": fingerprints.hardware(chip),
        "golden models and pair": fingerprints.code(
            microkernels.bp.golden, microkernels.bp.trws.golden, microkernels.data.stereo
        ),
        "full HD": fingerprints.code(sim_tb.measure.full_hd_shifts),
        **model_parts(),
    }
