"""Bandwidth and latency of a vault's memory under 32-byte accesses straight into its controller."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hdl.ports import COLUMN_BYTES
from memory.config import VaultConfig
from memory.controller.counters import VaultCounter
from memory.controller.starvation import starvation_bound
from memory.timing import BURST_CLOCKS
from sim_tb.cosim.machine import Timed
from sim_tb.dut.memory import ports_of
from sim_tb.harness.traffic import Pattern, TrafficJob, TrafficResult, Walk
from sim_tb.harness.traffic_runs import run_traffic
from sim_tb.timed.vault.traffic_model import run_traffic_model

__all__ = [
    "TRAFFICS",
    "VARIANTS",
    "Variant",
    "VaultFigures",
    "VaultReport",
    "measure",
    "measure_variant",
    "run_variant",
]

#: Bytes that the accesses go to: many rows of every bank, so that random ones rarely meet.
_SPAN = 8 << 20
#: Requesters of the variant with a crossbar: four engines, the network and the host.
_REQUESTERS = 6
#: Traffic that can't be fast makes so many times fewer accesses.
_SLOW = 16


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One configuration that is measured.

    Attributes:
        name: of the row. what: difference from the thesis's vault (7.2.3).
        config: of the vault.
        requesters: at the crossbar, which divide the accesses among them; 0: one straight at the
            controller.
    """

    name: str
    what: str
    config: VaultConfig
    requesters: int = 0


def _variants() -> tuple[Variant, ...]:
    base = VaultConfig()
    # A vault keeps its size when the shape of its banks changes.
    wider = replace(base, row_bytes=4 * base.row_bytes, rows=base.rows // 4)
    narrower = replace(base, row_bytes=base.row_bytes // 4, rows=4 * base.rows)
    fewer = replace(base, banks=base.banks // 4, rows=4 * base.rows)
    more = replace(base, banks=4 * base.banks, rows=base.rows // 4)
    modes = {mode: replace(base, timing=base.timing.refresh_mode(mode)) for mode in (1, 2)}
    rows = (
        ("open-page", "the thesis's vault: open page, 16 banks, 256 B rows, refresh 4x", base),
        ("closed-page", "closed page", replace(base, page_policy="closed")),
        ("adaptive-page", "a page closes when none waits", replace(base, page_policy="adaptive")),
        ("rows-wider", "rows of 1 KiB", wider),
        ("rows-narrower", "rows of 64 B", narrower),
        ("banks-fewer", "4 banks", fewer),
        ("banks-more", "64 banks", more),
        ("refresh-2x", "refresh half as often, twice as long", modes[2]),
        ("refresh-1x", "refresh a quarter as often, four times as long", modes[1]),
    )
    found = [Variant(name=name, what=what, config=config) for name, what, config in rows]
    crossbar = Variant(
        name="crossbar",
        what=f"{_REQUESTERS} requesters at a crossbar",
        config=base,
        requesters=_REQUESTERS,
    )
    return (*found, crossbar)


#: The thesis's vault first.
VARIANTS: tuple[Variant, ...] = _variants()


def _hot(config: VaultConfig, pattern: Pattern) -> Pattern:
    return replace(pattern, walk=Walk.HOT, hot=config.columns)


def _strided(config: VaultConfig, pattern: Pattern) -> Pattern:
    # From row to row of one bank: the worst that an address pattern can do.
    stride = config.columns * config.banks
    accesses = max(1, pattern.accesses // _SLOW)
    return replace(pattern, walk=Walk.STRIDED, stride=stride, accesses=accesses)


#: Traffic: a requester's pattern, from the configuration and a pattern with number and seed.
TRAFFICS: Mapping[str, Callable[[VaultConfig, Pattern], Pattern]] = {
    "sequential_read": lambda config, pattern: replace(pattern, walk=Walk.SEQUENTIAL),
    "random_read": lambda config, pattern: pattern,
    "mixed": lambda config, pattern: replace(pattern, writes=0.25),
    "sequential_write": lambda config, pattern: replace(pattern, walk=Walk.SEQUENTIAL, writes=1.0),
    "random_write": lambda config, pattern: replace(pattern, writes=1.0),
    "hot_row": _hot,
    "strided_read": _strided,
    "idle_random_read": lambda config, pattern: replace(
        pattern, window=1, accesses=max(1, pattern.accesses // _SLOW)
    ),
}


@dataclass(frozen=True, kw_only=True)
class VaultFigures:
    """Figures of one traffic.

    Attributes:
        gbs: GB/s moved at the configuration's clock.
        share: of the data bus's peak, 0..1.
        row_hits: share of accesses that found their row open, 0..1.
        mean, median, p99, longest: latency in cycles, from the first offer of a request to its last
            response beat.
        histogram: accesses by latency: [cycles below which, accesses].
        counters: of the controller, by name.
        cycles_per_second: simulated.
    """

    gbs: float
    share: float
    row_hits: float
    mean: float
    median: int
    p99: int
    longest: int
    histogram: tuple[tuple[int, int], ...]
    counters: Mapping[str, int]
    cycles_per_second: float

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, kw_only=True)
class VaultReport:
    """Figures of each variant by traffic, in the order of measurement."""

    rows: Mapping[str, Mapping[str, VaultFigures]]
    accesses: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data: the thesis's vault's figures first, then a row per variant."""
        base = self.rows.get(VARIANTS[0].name, {})
        figures = {f"{traffic}_gbs": found.gbs for traffic, found in base.items()}
        return {
            **figures,
            "accesses": self.accesses,
            "seed": self.seed,
            "variants": [
                {
                    "name": name,
                    "what": next(v.what for v in VARIANTS if v.name == name),
                    **{traffic: found.to_dict() for traffic, found in row.items()},
                }
                for name, row in self.rows.items()
            ],
        }


def _histogram(latencies: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Counts in intervals whose limits double."""
    found = []
    low, limit = 0, 16
    while low < len(latencies):
        found.append((limit, sum(latencies[low:limit])))
        low, limit = limit, 2 * limit
    return tuple(found)


def _figures(config: VaultConfig, result: TrafficResult) -> VaultFigures:
    per_cycle = result.bytes / result.cycles
    counters = {item.name: result.counters[item] for item in VaultCounter}
    accesses = result.reads + result.writes
    return VaultFigures(
        gbs=round(per_cycle / config.timing.tck_ns, 4),
        share=round(per_cycle * BURST_CLOCKS / COLUMN_BYTES, 4),
        row_hits=round(counters["ROW_HITS"] / accesses, 4),
        mean=round(result.mean, 1),
        median=result.quantile(0.5),
        p99=result.quantile(0.99),
        longest=result.longest,
        histogram=_histogram(result.latencies),
        counters=counters,
        cycles_per_second=round(result.total_cycles / result.wall_seconds),
    )


def run_variant(
    variant: Variant,
    *,
    accesses: int,
    seed: int,
    traffics: Sequence[str] = tuple(TRAFFICS),
    on: Timed = "rtl",
) -> dict[str, TrafficResult]:
    """Run each of ``traffics`` (keys of :data:`TRAFFICS`) on one variant.

    Parameters:
        accesses: 32-byte accesses of each traffic, 1000 or more.
        seed: of everything random.
        on: the Verilog, or the timing model.

    Raises:
        TrafficError: the memory did something wrong, or left a request waiting for longer than
            :func:`memory.controller.starvation.starvation_bound` promises.
        sim_tb.runner.build.BuildError: the simulator can't be built.
        support.native.CompilerError: the timing model can't be built.
    """
    config = variant.config
    ports = ports_of(variant.requesters)
    patterns = [Pattern(accesses=accesses // ports, seed=seed + number) for number in range(ports)]
    # Each port waits that long until one more of its requests is taken, and then once more.
    jobs = [
        TrafficJob(
            patterns=tuple(TRAFFICS[name](config, pattern) for pattern in patterns),
            begin=config.size_bytes - _SPAN,
            span=_SPAN // (ports * COLUMN_BYTES) * ports * COLUMN_BYTES,
            patience=(ports + 1) * starvation_bound(config),
            max_cycles=1000 * accesses,
        )
        for name in traffics
    ]
    run = run_traffic if on == "rtl" else run_traffic_model
    return dict(zip(traffics, run(config, variant.requesters, jobs), strict=True))


def measure_variant(
    variant: Variant, *, accesses: int, seed: int, on: Timed = "rtl"
) -> dict[str, VaultFigures]:
    """Figures of one variant for each of :data:`TRAFFICS`; parameters and errors are those of
    :func:`run_variant`."""
    results = run_variant(variant, accesses=accesses, seed=seed, on=on)
    return {name: _figures(variant.config, result) for name, result in results.items()}


def measure(
    variants: Sequence[Variant] = VARIANTS,
    *,
    accesses: int,
    seed: int,
    on: Timed = "rtl",
    progress: Callable[[Variant], None] | None = None,
) -> VaultReport:
    """Figures of ``variants``; other parameters and errors are those of :func:`run_variant`.

    Parameters:
        progress: called before each variant.
    """
    rows = {}
    for variant in variants:
        if progress is not None:
            progress(variant)
        rows[variant.name] = measure_variant(variant, accesses=accesses, seed=seed, on=on)
    return VaultReport(rows=rows, accesses=accesses, seed=seed)
