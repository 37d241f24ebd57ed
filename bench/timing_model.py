"""The certificate of the timing model: its cycles beside those of the Verilog."""

from collections.abc import Iterator
from dataclasses import replace

from microkernels.bp.jobs import bp_levels_job
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import VaultRing
from pe.config import SPECIAL_INSTRUCTIONS
from sim_tb.cosim.applications import applications
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.kernels import chip_bp_job, cosim_chip, cosim_engine, cosim_vault, job_key
from sim_tb.measure.belief import BELIEF, belief_job
from sim_tb.measure.kernels import LSTM, ROUNDS, layer_jobs
from sim_tb.measure.lstm_ese import ESE, ese_job
from sim_tb.measure.vgg import LAYERS
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset, preset, tile_preset
from soc.tile.config import VaultTileConfig

from . import fingerprints
from .applications import made_of_layers
from .functional import model_parts
from .measurement import BenchError, Measurement
from .record import values

__all__ = ["made_of_timing_model", "timing_model"]

_TILE = "vault"
#: Of the memory beside one engine, in cycles.
_LATENCY = 40
#: Presets of chips, and pixels of the images on them.
_CHIPS = {"tiny": (24, 18), "small": (40, 24)}
_CHIP_LABELS = 8


def _vault_runs() -> Iterator[tuple[str, list[KernelJob], str, VaultTileConfig]]:
    """Rows of the record of kernels that a vault's Verilog has run, with what they run, and the
    launch that counts, "" if there is one."""
    config = tile_preset(_TILE)
    for name, kernel in BELIEF.items():
        # Construct and copy run on one vault of a ring, which the row's own module sets up.
        if kernel.phase in ("fine", "coarse"):
            yield f"{name}_batch_1", [belief_job(name, config)], kernel.phase, config
    for layer in LAYERS:
        jobs = [job for job, _ in layer_jobs(layer, rounds=ROUNDS, pes=config.pes)]
        yield f"{layer.name}_batch_1", jobs, "", config
    special = replace(config, pe=replace(config.pe, instructions=SPECIAL_INSTRUCTIONS))
    yield f"{LSTM}_batch_{ESE.batch}", [ese_job(config.pes)], "", special


def _chip_runs() -> Iterator[tuple[str, KernelJob, ChipConfig]]:
    """Belief propagation, flat and hierarchical, on chips whose Verilog runs it in a minute."""
    for name, (width, height) in _CHIPS.items():
        config = chip_preset(name)
        problem = motorcycle(width, height, _CHIP_LABELS).problem
        yield f"{name}_bp_m", chip_bp_job(problem, 2, config), config
        ring = VaultRing(
            columns=config.network.columns,
            rows=config.network.rows,
            address_bits=config.network.address_bits,
        )
        levels = bp_levels_job(
            problem,
            1,
            1,
            ring=ring,
            pes=config.tile.pes,
            scratchpad_bytes=config.pe.scratchpad_bytes,
        )
        yield f"{name}_levels", levels, config


def timing_model() -> Iterator[Measurement]:
    """The timing model beside the Verilog. Cycles of the rows of the record of kernels that four
    engines of a vault have run, against that record; cycles of belief propagation on chips and of
    every application of the suite on one engine, against the Verilog now. Of each set: how many are
    equal, and the largest difference as a share."""
    recorded = values("kernels")
    found = []
    for name, jobs, phase, config in _vault_runs():
        cycles = 0
        for job in jobs:
            outcome = cosim_vault(job, config, on="model")
            if not outcome.match:
                raise BenchError(f"{job.name}: outputs differ from the golden model's")
            result = outcome.results[phase] if phase else outcome.result
            cycles += max(pe.counters["CYCLES"] for pe in result.pes)
        yield Measurement(f"{name}_cycles", cycles, "cycles")
        found.append((cycles, round(recorded[f"{name}_cycles"])))
    yield from _summary("vault", found)
    found = []
    for name, job, chip in _chip_runs():
        ours, verilog = (cosim_chip(job, chip, on=on, preload=True) for on in ("model", "rtl"))
        if not (ours.match and verilog.match):
            raise BenchError(f"{job.name}: outputs differ from the golden model's")
        yield Measurement(f"{name}_cycles", ours.cycles, "cycles")
        found.append((ours.cycles, verilog.cycles))
    yield from _summary("chip", found)
    found = []
    for application in applications():
        mine, theirs = (
            sum(
                cosim_engine(
                    job, preset(application.preset), on=on, memory=MemoryBehaviour(latency=_LATENCY)
                ).cycles
                for job in application.jobs
            )
            for on in ("model", "rtl")
        )
        yield Measurement(f"{application.name.replace('-', '_')}_cycles", mine, "cycles")
        found.append((mine, theirs))
    yield from _summary("engine", found)


def _summary(name: str, found: list[tuple[int, int]]) -> Iterator[Measurement]:
    """Of pairs of cycles, the model's and the Verilog's."""
    worst = max(abs(mine - theirs) / theirs for mine, theirs in found)
    equal = sum(mine == theirs for mine, theirs in found)
    yield Measurement(f"{name}_runs", len(found), "runs", more_is_better=True)
    yield Measurement(f"{name}_equal_runs", equal, "runs", more_is_better=True)
    yield Measurement(f"{name}_largest_difference", 100 * worst, "%")


def made_of_timing_model() -> dict[str, str]:
    """The kernels and applications with their hardware, the chips, and the model."""
    found = made_of_layers()
    for name in sorted({application.preset for application in applications()}):
        found |= fingerprints.engine(name, preset(name))
    for application in applications():
        keys = [job_key(job) for job in application.jobs]
        found[f"program and data of {application.name}"] = fingerprints.data(*keys)
    for name, job, chip in _chip_runs():
        found[f"Verilog of {chip.network.columns} x {chip.network.rows} vaults"] = (
            fingerprints.hardware(chip)
        )
        found[f"program and data of {name}"] = fingerprints.data(job_key(job))
    return found | model_parts()
