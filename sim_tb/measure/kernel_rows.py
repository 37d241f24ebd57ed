"""A line of the report of :mod:`sim_tb.measure.kernels`, made from runs on a vault."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from isa.run import RunResult

__all__ = ["KernelRow", "VaultWork", "row_of"]


@dataclass(frozen=True, kw_only=True)
class KernelRow:
    """A line of the report.

    Attributes:
        name: of the layer or total.
        batch: images, or sequences.
        limit_ms: of datapath or memory. thesis_ms: None: the thesis has no figure.
        ours_ms: from the tile's cycles.
        match: every output of the run equals the golden model's.
        cycles: that were run; 0: a sum of others.
        share: of the tile that was run.
        gbs: bandwidth of the vault's memory meanwhile, GB/s.
        gops: operations that the kernel asks for, 10**9 a second and vault.
        busy: share of the engines' cycles in which the vector unit read a beat.
        scaled: quantity by which ``ours_ms`` is scaled from the run; "": nothing but rounds.
        units: message updates or pixels that were run, 0 where ``scaled`` is "".
        whole: of them that a vault does for the kernel.
        engines: that shared the run.
    """

    name: str
    batch: int
    limit_ms: float
    thesis_ms: float | None
    ours_ms: float
    match: bool
    cycles: int = 0
    share: float = 1.0
    gbs: float = 0.0
    gops: float = 0.0
    busy: float = 0.0
    scaled: str = ""
    units: int = 0
    whole: float = 0.0
    engines: int = 0

    @property
    def cycles_per_unit(self) -> float:
        """Cycles of an engine for a message update or pixel; 0 where none are counted."""
        return self.cycles * self.engines / self.units if self.units else 0.0

    @property
    def intensity(self) -> float:
        """Operations for each byte of memory; 0 where there are none."""
        return self.gops / self.gbs if self.gbs else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "KernelRow":
        """The reverse of :meth:`to_dict`."""
        return cls(**content)


@dataclass(frozen=True, kw_only=True)
class VaultWork:
    """A run of a part of a kernel.

    Attributes:
        result: of the run.
        operations: additions, multiplications and comparisons of elements that the part asks for.
        match: outputs equal the golden model's.
        times: how often the tile has such a part.
    """

    result: RunResult
    operations: int
    match: bool
    times: float = 1.0

    @property
    def cycles(self) -> int:
        """Till the last engine ended."""
        return self.result.program_cycles


def row_of(
    name: str,
    parts: Sequence[VaultWork],
    *,
    limit_ms: float,
    thesis_ms: float | None = None,
    batch: int = 1,
    scaled: str = "",
    units: int = 0,
    whole: float = 0.0,
) -> KernelRow:
    """The line of a kernel whose parts, at least one, run one after the other.

    Parameters:
        scaled, units, whole: see :class:`KernelRow`; without ``units`` time is not scaled by them.
    """
    run = sum(part.cycles for part in parts)
    run_ns = sum(part.cycles * part.result.tck_ns for part in parts)
    tile_ns = sum(part.cycles * part.result.tck_ns * part.times for part in parts)
    rounds = whole / units if units else 1.0
    busy = sum(pe.counters["VECTOR_BUSY"] for part in parts for pe in part.result.engines)
    engine_cycles = sum(part.cycles * len(part.result.engines) for part in parts)
    return KernelRow(
        name=name,
        batch=batch,
        limit_ms=limit_ms,
        thesis_ms=thesis_ms,
        ours_ms=tile_ns * rounds * 1e-6,
        match=all(part.match for part in parts),
        cycles=run,
        share=run_ns / tile_ns,
        gbs=sum(part.result.bytes_moved for part in parts) / run_ns,
        gops=sum(part.operations for part in parts) / run_ns,
        busy=busy / engine_cycles,
        scaled=scaled,
        units=units,
        whole=whole,
        engines=len(parts[0].result.engines),
    )
