"""A vault's memory: bandwidth and latency, belief propagation in its variants, random vaults."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import typer

from memory.controller.counters import LATENCY_LIMITS
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from sim_tb.cosim.kernels import run_on
from sim_tb.workloads.stress import run_stress
from sim_tb.workloads.traffic import VARIANTS, Variant, run_variant
from soc.generate.presets import tile_preset
from vip.cli.commands.option_groups.machine import TimedOption

from .harness.experiment import SIMULATION, Measurement, experiment, figure, say
from .harness.options import NamesOption, SeedOption, chosen
from .harness.runs import exact

_TILE = "vault"
#: The thesis's tile (6.1) and labels, one iteration.
_WIDTH, _HEIGHT, _LABELS = 60, 34, 16
#: Cycles of waiting for the column command from which a request counts as late.
_LATE = 128


def _variants(only: list[str] | None) -> list[Variant]:
    variants = {variant.name: variant for variant in VARIANTS}
    return [variants[name] for name in chosen(only, variants)]


@experiment(tools=SIMULATION, minutes=10)
def vault(
    accesses: Annotated[
        int, typer.Option(help="32-byte accesses per traffic.", min=1000, max=100_000_000)
    ] = 200_000,
    seed: SeedOption = 1,
    only: NamesOption = None,
    on: TimedOption = "rtl",
) -> Iterator[Measurement]:
    """Bandwidth of a vault's memory, and of the variants in section 7.2.3 of the thesis.

    32-byte accesses go straight to the controller of a DRAM that checks every command. Figures are
    GB/s, of at most 10, and the cycles of a lone random read.

    Example: vip bench vault --only open-page --only closed-page --json vault.json
    """
    for variant in _variants(only):
        say(variant.name)
        tck_ns = variant.config.timing.tck_ns
        for traffic, result in run_variant(variant, accesses=accesses, seed=seed, on=on).items():
            key = figure(variant.name, traffic)
            if traffic == "idle_random_read":
                yield Measurement(key, round(result.mean, 1), "cycles", 0.01)
            else:
                gbs = round(result.bytes / result.cycles / tck_ns, 4)
                yield Measurement(key, gbs, "GB/s", 0.01, True)


@experiment(presets=("vault",), tools=SIMULATION, minutes=20)
def vault_bp(only: NamesOption = None) -> Iterator[Measurement]:
    """BP-M on a vault's engines, with each variant of its memory (Figure 7.2 of the thesis).

    60 x 34 pixels, one iteration, on Verilog. Variants that differ only in their requesters are
    skipped, as the requesters here are the engines. Late requests waited 128 cycles or more for
    their column command.

    Example: vip bench vault_bp --only open-page
    """
    variants = _variants(only)
    tile = tile_preset(_TILE)
    problem = motorcycle(_WIDTH, _HEIGHT, _LABELS).problem
    # The program with the most memory traffic.
    job = bp_job(problem, pes=tile.pes, scratchpad_bytes=tile.pe.scratchpad_bytes, sums=False)
    for variant in variants:
        if variant.requesters:
            continue
        say(variant.name)
        outcome = exact(run_on(job, replace(tile, vault=variant.config)), variant.name)
        result, cycles = outcome.result, outcome.cycles_per_update
        assert cycles is not None
        late = sum(result.latencies[LATENCY_LIMITS.index(_LATE) + 1 :]) / sum(result.latencies)
        blocked = round(result.vaults[0]["REFRESH_BLOCKED"] / result.cycles, 4)
        key = figure(variant.name)
        yield Measurement(f"{key}_gbs", round(result.gbs, 3), "GB/s", 0.01, True)
        yield Measurement(f"{key}_cycles_per_update", round(cycles, 3), "cycles", 0.01)
        yield Measurement(f"{key}_row_hits", round(result.row_hits, 4), "fraction", 0.02, True)
        yield Measurement(f"{key}_late", round(late, 4), "fraction", 0.05)
        yield Measurement(f"{key}_refresh_blocked", blocked, "banks", 0.05)


@experiment(tools=SIMULATION, minutes=60)
def vault_stress(
    accesses: Annotated[int, typer.Option(help="Accesses to all vaults.", min=1)] = 10_000_000,
    vaults: Annotated[int, typer.Option(help="Random vaults to build.", min=1)] = 16,
    seed: SeedOption = 1,
) -> Iterator[Measurement]:
    """Random accesses to random vaults, every one checked.

    Timing violations and lost, wrong, reordered or starved accesses are errors.

    Example: vip bench vault_stress --vaults 3 --accesses 100000 --seed 17
    """
    report = run_stress(accesses=accesses, vaults=vaults, seed=seed, progress=say)
    yield Measurement("vaults", report.vaults, "configurations", 0.0, True)
    for name in ("accesses", "reads", "writes"):
        yield Measurement(name, getattr(report, name), "accesses", 0.0, True)
    yield Measurement("cycles", report.cycles, "cycles", 0.05)
    yield Measurement("longest", report.longest, "cycles", 0.05)
    yield Measurement("bound_of_the_longest", report.bound, "cycles", 0.05)
