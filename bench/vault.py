"""A vault's memory: bandwidth and latency, kernels on its variants, random vaults."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from memory.config import VaultConfig
from memory.controller.counters import LATENCY_LIMITS
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from sim_tb.cosim.kernels import run_on
from sim_tb.workloads.stress import run_stress, stress_totals
from sim_tb.workloads.tiles import LAYERS, TileLayer, layer_jobs
from sim_tb.workloads.traffic import VARIANTS, Variant, run_variant
from soc.generate.presets import chip_preset, tile_preset
from support.picture import COLOURS, MARKERS, picture, tint
from vip.cli.commands.option_groups.machine import TimedOption

from .belief import measure_full_hd
from .harness.experiment import (
    AMARANTH,
    SIMULATION,
    Measurement,
    NamesOption,
    PictureOption,
    SeedOption,
    chosen,
    experiment,
    figure,
    say,
)
from .harness.runs import LaunchRun, exact

_TILE = "vault"
#: The thesis's tile (6.1) and labels, one iteration.
_WIDTH, _HEIGHT, _LABELS = 60, 34, 16
#: Vaults of the thesis's chip.
_VAULTS = 32
#: Nanoseconds by which memories beyond a link are farther.
_LINKS = (30, 100)
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


def _figure_7_2(only: list[str] | None) -> list[Variant]:
    """Variants whose requesters are engines, and memories beyond a link (thesis 5.2): data come
    later, and nothing else changes."""
    base = VARIANTS[0].config
    beyond = []
    for ns in _LINKS:
        timing = base.timing
        later = replace(timing, tcl_ns=timing.tcl_ns + ns, tcwl_ns=timing.tcwl_ns + ns)
        config = replace(base, timing=later)
        beyond.append(Variant(name=f"beyond-{ns}-ns", text=f"{ns} ns farther", config=config))
    every = {each.name: each for each in (*VARIANTS, *beyond) if not each.requesters}
    return [every[name] for name in chosen(only, every)]


def _kind(layer: TileLayer) -> str:
    if layer.dense is not None:
        return "fully_connected"
    return "pooling" if layer.conv is None else "convolution"


def _full_hd(vault: VaultConfig) -> LaunchRun:
    """An iteration of BP-M on full HD on the thesis's chip, with another memory."""
    config = chip_preset("thesis")
    vault = replace(vault, tag_bits=config.tile.dram.tag_bits)
    (run,) = measure_full_hd(
        "flat", replace(config, tile=replace(config.tile, vault=vault))
    ).values()
    return run


_INCHES = (11.0, 4.2)


def _draw(bars: Mapping[str, Sequence[tuple[float, float]]], path: Path) -> None:
    """Draw bandwidth as bars and time as points, as the thesis's Figure 7.2."""
    titles = (("BP-M", "cycles per update"), ("VGG-16", "ms"))
    with picture(*_INCHES, path) as drawing:
        for number, axis in enumerate(drawing.subplots(1, 2, sharey=True)):
            title, unit = titles[number]
            values = [pair[number] for pair in bars.values()]
            axis.barh(list(bars), [gbs for gbs, _ in values], color=tint(COLOURS[0], 0.5))
            axis.set(title=title, xlabel="GB/s of a vault (bars)")
            times = axis.twiny()
            times.plot([time for _, time in values], list(bars), MARKERS[1], color=COLOURS[3])
            times.set(xlabel=f"{unit} (squares)", xlim=(0, 1.1 * max(t for _, t in values)))
            times.spines["top"].set_visible(True)
            if not number:
                axis.invert_yaxis()


@experiment(presets=("vault",), tools=SIMULATION, minutes=20)
def memory_variants(
    only: NamesOption = None,
    on: TimedOption = "model",
    chip: Annotated[
        bool, typer.Option("--chip", help="Also BP-M on full HD, on the thesis's whole chip.")
    ] = False,
    drawing: PictureOption = None,
) -> Iterator[Measurement]:
    """BP-M and VGG-16 with each variant of a vault's memory (Figure 7.2 of the thesis).

    On a vault's engines, every output exact. BP-M: an iteration on the thesis's tile of 60 x 34
    pixels; late requests waited 128 cycles or more for their column command. VGG-16: all launches
    of one of 32 vaults, pooling and fully connected layers included; moves between vaults are left
    out.

    Example: vip bench memory_variants --only open-page --only closed-page --picture memory.png
    """
    tile = tile_preset(_TILE)
    problem = motorcycle(_WIDTH, _HEIGHT, _LABELS).problem
    # The program with the most memory traffic.
    belief = bp_job(problem, pes=tile.pes, scratchpad_bytes=tile.pe.scratchpad_bytes, sums=False)
    layers = [(_kind(layer), job) for layer in LAYERS for job in layer_jobs(layer, pes=tile.pes)]
    bars: dict[str, list[tuple[float, float]]] = {}
    for variant in _figure_7_2(only):
        say(variant.name)
        machine = replace(tile, vault=variant.config)
        outcome = exact(run_on(belief, machine, on=on), variant.name)
        result, cycles = outcome.result, outcome.cycles_per_update
        late = sum(result.latencies[LATENCY_LIMITS.index(_LATE) + 1 :]) / sum(result.latencies)
        blocked = round(result.vaults[0]["REFRESH_BLOCKED"] / result.cycles, 4)
        key = figure(variant.name)
        yield Measurement(f"bp_{key}_gbs", round(result.gbs, 3), "GB/s", 0.01, True)
        yield Measurement(f"bp_{key}_cycles_per_update", round(cycles, 3), "cycles", 0.01)
        yield Measurement(f"bp_{key}_row_hits", round(result.row_hits, 4), "fraction", 0.02, True)
        yield Measurement(f"bp_{key}_late", round(late, 4), "fraction", 0.05)
        yield Measurement(f"bp_{key}_refresh_blocked", blocked, "banks", 0.05)
        ns, moved, kinds = 0.0, 0, Counter[str]()
        for kind, job in layers:
            run = exact(run_on(job, machine, on=on), f"{variant.name}, {job.name}").result
            ns += run.cycles * run.tck_ns
            moved += run.bytes_moved
            kinds[kind] += run.cycles
        yield Measurement(f"vgg_{key}_gbs", moved / ns, "GB/s", 0.01, True)
        yield Measurement(f"vgg_{key}_ms", ns / 1e6, "ms", 0.01)
        for kind, count in kinds.items():
            yield Measurement(f"vgg_{key}_{kind}_cycles", count, "cycles", 0.01)
        bars[variant.text] = [(result.gbs, cycles), (moved / ns, ns / 1e6)]
        if chip:
            run_of_chip = _full_hd(variant.config)
            ms = run_of_chip.cycles * run_of_chip.tck_ns / 1e6
            yield Measurement(f"chip_{key}_ms", ms, "ms", 0.01)
            yield Measurement(f"chip_{key}_gbs", run_of_chip.gbs, "GB/s", 0.01, True)
    if drawing is not None:
        _draw(bars, drawing)


#: Batches of the thesis's Table 7.3, and layers that VGG-19 has twice.
_BATCHES = (1, 16)
_TWICE = ("conv3_2", "conv4_2", "conv5_2")


@experiment(presets=("vault",), tools=AMARANTH, minutes=2)
def vgg16_layers() -> Iterator[Measurement]:
    """Time and DRAM traffic of VGG-16's layers, batches of 1 and 16 (Table 7.3 of the thesis).

    All launches of one of 32 vaults on the timing model, outputs exact; MiB are those of 32 vaults.
    Images of a batch run one after the other, but a fully connected layer reads its weights once.
    ``conv1`` to ``conv5`` include pooling. VGG-19 as the thesis counts it, by layers that it has
    twice. Moves between vaults are left out.
    """
    tile = tile_preset(_TILE)
    totals, twice = dict.fromkeys(_BATCHES, (0.0, 0.0)), 0.0
    groups: dict[str, tuple[float, float]] = {}
    for layer in LAYERS:
        say(layer.name)
        for batch in _BATCHES:
            alone = layer.dense is None
            if alone and batch > 1:
                continue
            ms = mib = 0.0
            for job in layer_jobs(layer, batch=batch, pes=tile.pes):
                run = exact(run_on(job, tile, on="model"), layer.name).result
                ms += run.cycles * run.tck_ns / 1e6
                mib += _VAULTS * run.bytes_moved / (1 << 20)
            twice += ms if layer.name in _TWICE else 0.0
            for each in _BATCHES if alone else (batch,):
                images = each if alone else 1
                name = layer.name.replace("pool", "conv").partition("_")[0]
                key = f"{name}_batch_{each}"
                before = groups.get(key, (0.0, 0.0))
                groups[key] = (before[0] + images * ms, before[1] + images * mib)
                total = totals[each]
                totals[each] = (total[0] + images * ms, total[1] + images * mib)
    for key, (ms, mib) in groups.items():
        yield Measurement(f"{key}_ms", ms, "ms", 0.01)
        yield Measurement(f"{key}_mib", mib, "MiB", 0.01)
    for batch, (ms, mib) in totals.items():
        yield Measurement(f"total_batch_{batch}_ms", ms, "ms", 0.01)
        yield Measurement(f"total_batch_{batch}_gib", mib / 1024, "GiB", 0.01)
    yield Measurement("vgg19_ms", totals[1][0] + twice, "ms", 0.01)


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
    runs = run_stress(accesses=accesses, vaults=vaults, seed=seed, progress=say)
    totals = stress_totals(runs)
    yield Measurement("vaults", vaults, "configurations", 0.0, True)
    for name in ("accesses", "reads", "writes"):
        yield Measurement(name, totals[name], "accesses", 0.0, True)
    yield Measurement("cycles", totals["cycles"], "cycles", 0.05)
    yield Measurement("longest", totals["longest"], "cycles", 0.05)
    yield Measurement("bound_of_the_longest", totals["bound"], "cycles", 0.05)
