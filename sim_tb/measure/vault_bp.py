"""Belief propagation on a vault in the variants of its memory (thesis 7.2.3, Figure 7.2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from memory.controller.counters import LATENCY_LIMITS
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from soc.tile.config import VaultTileConfig

from .vault import VARIANTS, Variant

__all__ = ["BpFigures", "measure_bp"]

#: The thesis's tile (6.1) and labels, one iteration.
_WIDTH, _HEIGHT, _LABELS = 60, 34, 16
#: A request that waits longer for its column command counts as late, in cycles.
_LATE = 128


@dataclass(frozen=True, kw_only=True)
class BpFigures:
    """Figures of belief propagation on a vault.

    Attributes:
        cycles_per_update: of a PE, mean of the four directions.
        gbs: mean bandwidth of the DRAM.
        row_hits: share of the requests that found their row open, 0..1.
        late: share of the requests that waited 128 cycles or more for their column command, 0..1.
        refresh_blocked: banks, on average, at which a request waits for a refresh.
        counters: of the vault, by name.
    """

    cycles_per_update: float
    gbs: float
    row_hits: float
    late: float
    refresh_blocked: float
    counters: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return asdict(self)


def measure_bp(
    tile: VaultTileConfig,
    variants: Sequence[Variant] = VARIANTS,
    *,
    progress: Callable[[Variant], None] | None = None,
) -> dict[str, BpFigures]:
    """One BP-M iteration on the thesis's tile with each variant's memory, by the variant's name.

    A variant that differs in its requesters alone has no row: here they are the tile's.

    Parameters:
        tile: whose engines work; a variant's configuration takes the place of its memory.
        progress: called before each variant. The simulator of each is built first (two minutes).

    Raises:
        CosimError: a message differs from the golden model's, or as
            :func:`sim_tb.cosim.kernels.run_on`.
        sim_tb.runner.build.BuildError: a simulator can't be built.
    """
    job = bp_job(
        motorcycle(_WIDTH, _HEIGHT, _LABELS).problem,
        pes=tile.pes,
        scratchpad_bytes=tile.pe.scratchpad_bytes,
    )
    found = {}
    for variant in variants:
        if variant.requesters:
            continue
        if progress is not None:
            progress(variant)
        outcome = run_on(job, replace(tile, vault=variant.config))
        if not outcome.match:
            raise CosimError(
                f"{variant.name}: {outcome.differing} message elements differ from the golden "
                f"model's"
            )
        result = outcome.result
        late = sum(result.latencies[LATENCY_LIMITS.index(_LATE) + 1 :])
        found[variant.name] = BpFigures(
            cycles_per_update=round(outcome.cycles_per_update, 3),
            gbs=round(result.gbs, 3),
            row_hits=round(result.row_hits, 4),
            late=round(late / sum(result.latencies), 4),
            refresh_blocked=round(result.vaults[0]["REFRESH_BLOCKED"] / result.cycles, 4),
            counters=result.vaults[0],
        )
    return found
