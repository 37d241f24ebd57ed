"""32-byte accesses directly to a vault's controller, in the variants of thesis 7.2.3."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hdl.ports import COLUMN_BYTES
from memory.config import VaultConfig
from memory.controller.starvation import starvation_bound
from sim_tb.cosim.machine import Timed
from sim_tb.dut.memory import ports_of
from sim_tb.harness.traffic import Pattern, TrafficJob, TrafficResult, Walk
from sim_tb.harness.traffic_runs import run_traffic
from sim_tb.timed.vault.vault_model import run_traffic_model

#: Bytes accessed: many rows of every bank, so that random accesses rarely collide.
_SPAN = 8 << 20

#: Requesters of the variant with a crossbar: four engines, the network and the host.
_REQUESTERS = 6

#: Slow traffic makes this many times fewer accesses.
_SLOW = 16


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A configuration to measure.

    Attributes:
        name: of the row. text: difference from the thesis's vault (7.2.3).
        config: of the vault.
        requesters: at the crossbar, which share the accesses; 0: one directly at the controller.
        jobs: its own, where it has some.
    """

    name: str
    text: str
    config: VaultConfig
    requesters: int = 0
    jobs: tuple[TrafficJob, ...] = ()


def _variants() -> tuple[Variant, ...]:
    base = VaultConfig()
    # The size of a vault remains the same when the shape of its banks changes.
    wider = replace(base, row_bytes=4 * base.row_bytes, rows=base.rows // 4)
    narrower = replace(base, row_bytes=base.row_bytes // 4, rows=4 * base.rows)
    fewer = replace(base, banks=base.banks // 4, rows=4 * base.rows)
    many_banks = replace(base, banks=4 * base.banks, rows=base.rows // 4)
    modes = {mode: replace(base, timing=base.timing.refresh_mode(mode)) for mode in (1, 2)}
    rows = (
        ("open-page", "the thesis's vault: open page, 16 banks, 256 B rows, refresh 4x", base),
        ("closed-page", "closed page", replace(base, page_policy="closed")),
        ("adaptive-page", "a page closes when none waits", replace(base, page_policy="adaptive")),
        ("rows-wider", "rows of 1 KiB", wider),
        ("rows-narrower", "rows of 64 B", narrower),
        ("banks-fewer", "4 banks", fewer),
        ("banks-more", "64 banks", many_banks),
        ("refresh-2x", "refresh half as often, twice as long", modes[2]),
        ("refresh-1x", "refresh a quarter as often, four times as long", modes[1]),
    )
    single = [Variant(name=name, text=text, config=config) for name, text, config in rows]
    crossbar = Variant(
        name="crossbar",
        text=f"{_REQUESTERS} requesters at a crossbar",
        config=base,
        requesters=_REQUESTERS,
    )
    return (*single, crossbar)


#: The thesis's vault first.
VARIANTS: tuple[Variant, ...] = _variants()


def _hot(config: VaultConfig, pattern: Pattern) -> Pattern:
    return replace(pattern, walk=Walk.HOT, hot=config.columns)


def _strided(config: VaultConfig, pattern: Pattern) -> Pattern:
    # From row to row of one bank: the worst possible address pattern.
    stride = config.columns * config.banks
    accesses = max(1, pattern.accesses // _SLOW)
    return replace(pattern, walk=Walk.STRIDED, stride=stride, accesses=accesses)


#: Kind of traffic -> a requester's pattern, from the configuration and a pattern with the number of
#: accesses and the seed.
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
        accesses: 32-byte accesses of each kind of traffic, 1000 or more.
        seed: of everything random.
        on: the Verilog or the timing model.

    Raises:
        TrafficError: the memory misbehaved, or a request waited for longer than
            :func:`memory.controller.starvation.starvation_bound` promises.
        sim_tb.runner.build.BuildError: the simulator can't be built.
        support.native.CompilerError: the timing model can't be built.
    """
    config = variant.config
    ports = ports_of(variant.requesters)
    patterns = [Pattern(accesses=accesses // ports, seed=seed + number) for number in range(ports)]
    # Each port waits that long until its next request is accepted, and then once more.
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
