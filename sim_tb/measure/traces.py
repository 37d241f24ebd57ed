"""Mixes of applications on one vault: each requester replays what an engine did that ran alone."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from isa.image import DramImage
from isa.run import Launch
from microkernels.runtime.job import KernelJob
from pe.config import SPECIAL_INSTRUCTIONS
from sim_tb.harness.trace import joined, parted
from sim_tb.harness.traffic import Pattern
from sim_tb.timed.vault.trace_model import record_trace
from soc.generate.presets import tile_preset
from soc.tile.config import VaultTileConfig

from .belief import belief_job
from .kernels import layer_jobs
from .lstm_ese import ese_job
from .reuse.column_reuse import layer_job
from .vgg import FULLY_CONNECTED

__all__ = [
    "APPLICATIONS",
    "TRACED_MIXES",
    "application_trace",
    "traced_launch",
    "traced_patterns",
    "traced_vault",
]

#: Cycles that are recorded, and accesses at most.
_CYCLES, _MOST = 150_000, 60_000

#: Bytes by which data of a requester begin later in its part of the memory than those of the one
#: before: rows of five banks, for parts begin at the same bank, and arrays of engines don't.
_SHIFT = 5 * 256

#: Applications by requester; "hasty" ones make their accesses as fast as the memory takes them.
TRACED_MIXES: Mapping[str, tuple[str, ...]] = {
    "applications": ("bp_m", "conv3_2", "fc7", "lstm"),
    "bp_and_fc7": ("bp_m", "bp_m", "fc7", "fc7"),
    "conv3_2_hasty": 4 * ("hasty conv3_2",),
    "bp_m": 4 * ("bp_m",),
}


def _fc7(tile: VaultTileConfig) -> KernelJob:
    layer = next(layer for layer in FULLY_CONNECTED if layer.name == "fc7")
    (job, _), *_ = layer_jobs(layer, pes=tile.pes)
    return job


#: Belief propagation, one round of filters of a convolution, a fully connected layer, and a step
#: of ESE's LSTM.
_JOBS: Mapping[str, Callable[[VaultTileConfig], KernelJob]] = {
    "bp_m": lambda tile: belief_job("bp_m", tile),
    "conv3_2": lambda tile: layer_job("conv3_2", tile.pes, reuse=False),
    "fc7": _fc7,
    "lstm": lambda tile: ese_job(tile.pes),
}
APPLICATIONS = tuple(_JOBS)


def traced_vault() -> VaultTileConfig:
    """The vault of whose engine traces are: the thesis's, with one engine."""
    tile = tile_preset("vault")
    return replace(tile, pes=1, pe=replace(tile.pe, instructions=SPECIAL_INSTRUCTIONS))


def traced_launch(name: str) -> tuple[KernelJob, Launch]:
    """The job of an application for one engine, and its launch that is recorded: the last one. Of
    belief propagation, those before prepare messages; addresses don't depend on data.

    Parameters:
        name: one of :data:`APPLICATIONS`.
    """
    job = _JOBS[name](traced_vault())
    *_, launch = job.launches
    return job, launch


@cache
def application_trace(name: str) -> bytes:
    """The accesses of one engine, alone in the thesis's vault, in the first 150,000 cycles of an
    application's launch, with addresses from 0 on (:func:`sim_tb.harness.trace.joined`).

    Parameters:
        name: one of :data:`APPLICATIONS`.

    Raises:
        KeyError: another name.
        sim_tb.cosim.engine.CosimError: the timing model does not have the vault.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    job, launch = traced_launch(name)
    tile = traced_vault()
    with DramImage(tile.vault.size_bytes) as image:
        job.prepare(image)
        return record_trace(replace(launch, max_cycles=_CYCLES), image, config=tile, accesses=_MOST)


@cache
def traced_patterns(mix: str) -> tuple[Pattern, ...]:
    """The requesters of one of :data:`TRACED_MIXES`, each with its whole trace.

    Raises:
        KeyError: another mix; else as :func:`application_trace`.
    """
    return tuple(_pattern(member, number) for number, member in enumerate(TRACED_MIXES[mix]))


def _pattern(member: str, number: int) -> Pattern:
    *hasty, name = member.split()
    accesses = [
        replace(access, address=access.address + _SHIFT * number, gap=0 if hasty else access.gap)
        for access in parted(application_trace(name))
    ]
    return Pattern(trace=joined(accesses), accesses=len(accesses))
