"""A vault's memory: bandwidth and latency, kernels on its variants, random vaults."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from memory.config import VaultConfig
from memory.controller.counters import LATENCY_LIMITS
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import run_on
from sim_tb.workloads.stress import run_stress, stress_totals
from sim_tb.workloads.tiles import LAYERS, TileLayer, layer_jobs
from sim_tb.workloads.traffic import VARIANTS, Variant, run_variant
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset, tile_preset
from support.errors import counted
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
from .harness.runs import exact
from .networks import measure_by_vault, measure_network

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
    every = {variant.name: variant for variant in (*VARIANTS, *beyond) if not variant.requesters}
    return [every[name] for name in chosen(only, every)]


def _kind(layer: TileLayer) -> str:
    if layer.dense is not None:
        return "fully_connected"
    return "pooling" if layer.conv is None else "convolution"


def _chip(vault: VaultConfig) -> ChipConfig:
    """The thesis's chip with another memory."""
    config = chip_preset("thesis")
    vault = replace(vault, tag_bits=config.tile.dram.tag_bits)
    return replace(config, tile=replace(config.tile, vault=vault))


_INCHES = (11.0, 4.2)


#: Title and unit of time of a panel -> variant -> GB/s, time.
_Panels = Mapping[tuple[str, str], Mapping[str, tuple[float, float]]]


def _draw(panels: _Panels, of: str, path: Path) -> None:
    """Draw bandwidth as bars and time as points, as the thesis's Figure 7.2."""
    with picture(*_INCHES, path) as drawing:
        axes = drawing.subplots(1, len(panels), squeeze=False, sharey=True).flat
        for axis, ((title, unit), values) in zip(axes, panels.items(), strict=True):
            axis.barh(
                list(values), [gbs for gbs, _ in values.values()], color=tint(COLOURS[0], 0.5)
            )
            axis.set(title=title, xlabel=f"GB/s of {of} (bars)")
            moments = [time for _, time in values.values()]
            times = axis.twiny()
            times.plot(moments, list(values), MARKERS[1], color=COLOURS[3])
            times.set(xlabel=f"{unit} (squares)", xlim=(0, 1.1 * max(moments)))
            times.spines["top"].set_visible(True)
        drawing.axes[0].invert_yaxis()


@experiment(presets=("vault",), tools=SIMULATION, minutes=20)
def memory_variants(
    only: NamesOption = None,
    on: TimedOption = "model",
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
    belief = bp_job(
        problem,
        engines=ChipEngines(pes=tile.pes, scratchpad_bytes=tile.pe.scratchpad_bytes),
        sums=False,
    )
    layers = [
        (_kind(layer), job) for layer in LAYERS.values() for job in layer_jobs(layer, pes=tile.pes)
    ]
    belief_bars: dict[str, tuple[float, float]] = {}
    network_bars: dict[str, tuple[float, float]] = {}
    for variant in _figure_7_2(only):
        say(variant.name)
        machine = replace(tile, vault=variant.config)
        outcome = exact(run_on(belief, machine, on=on), variant.name)
        result, cycles = outcome.result, outcome.cycles_per_update
        served = list(result.latencies.values())
        late = sum(served[LATENCY_LIMITS.index(_LATE) + 1 :]) / sum(served)
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
        belief_bars[variant.text] = result.gbs, cycles
        network_bars[variant.text] = moved / ns, ns / 1e6
    if drawing is not None:
        panels = {("BP-M", "cycles per update"): belief_bars, ("VGG-16", "ms"): network_bars}
        _draw(panels, "a vault", drawing)


#: Variants of VGG-16 whose launches all run on all vaults, which takes ten minutes each.
_WHOLE = ("open-page", "closed-page", "banks-fewer")


@experiment(presets=("thesis",), tools=SIMULATION, minutes=60)
def chip_variants(only: NamesOption = None, drawing: PictureOption = None) -> Iterator[Measurement]:
    """Full HD and VGG-16 on the thesis's chip with variants of its memory (Figure 7.2).

    On the timing model of 128 engines, with all variants: an iteration of BP-M on 1920 x 1080
    pixels, every output exact, and VGG-16, moves between vaults included. Where data do not move,
    the engines of one vault compute VGG-16, and their cycles count for all. With open and closed
    pages and with 4 banks all engines compute it, too, and every activation is compared. Each
    variant's result is cached.

    Example: vip bench chip_variants --only open-page --only rows-wider --picture chip.png
    """
    panels: dict[tuple[str, str], dict[str, tuple[float, float]]] = {
        ("BP-M, full HD, an iteration", "ms"): {},
        ("VGG-16", "ms"): {},
    }
    belief, network = panels.values()
    for variant in _figure_7_2(only):
        say(variant.name)
        key, config = figure(variant.name), _chip(variant.config)
        (run,) = measure_full_hd("flat", config).values()
        belief[variant.text] = run.gbs, run.cycles * run.tck_ns / 1e6
        rows = {"bp": belief[variant.text], "vgg_by_vault": measure_by_vault("vgg16", config)}
        network[variant.text] = rows["vgg_by_vault"]
        if variant.name in _WHOLE:
            images = measure_network("vgg16", config)
            rows["vgg"] = images.gbs, images.ms
        for name, (gbs, ms) in rows.items():
            yield Measurement(f"{name}_{key}_gbs", gbs, "GB/s", 0.01, True)
            yield Measurement(f"{name}_{key}_ms", ms, "ms", 0.01)
    if drawing is not None:
        _draw(panels, "the chip", drawing)


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
    for layer in LAYERS.values():
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
            for size in _BATCHES if alone else (batch,):
                images = size if alone else 1
                name = layer.name.replace("pool", "conv").partition("_")[0]
                key = f"{name}_batch_{size}"
                before = groups.get(key, (0.0, 0.0))
                groups[key] = (before[0] + images * ms, before[1] + images * mib)
                total = totals[size]
                totals[size] = (total[0] + images * ms, total[1] + images * mib)
    for key, (ms, mib) in groups.items():
        yield Measurement(f"{key}_ms", ms, "ms", 0.01)
        yield Measurement(f"{key}_mib", mib, "MiB", 0.01)
    for batch, (ms, mib) in totals.items():
        yield Measurement(f"total_batch_{batch}_ms", ms, "ms", 0.01)
        yield Measurement(f"total_batch_{batch}_gib", mib / 1024, "GiB", 0.01)
    yield Measurement("vgg19_ms", totals[1][0] + twice, "ms", 0.01)


@experiment(presets=("thesis",), tools=SIMULATION, minutes=10)
def chip_networks() -> Iterator[Measurement]:
    """VGG-16 for a batch of 16 and VGG-19 on the thesis's chip, moves between vaults included.

    On the timing model, with the engines of one vault where data do not move, as
    ``chip_variants``.
    """
    config = chip_preset("thesis")
    for name, batch in (("vgg19", 1), ("vgg16", 16)):
        say(f"{name}, {counted(batch, 'image')}")
        gbs, ms = measure_by_vault(name, config, batch)
        yield Measurement(f"{name}_batch_{batch}_gbs", gbs, "GB/s", 0.01, True)
        yield Measurement(f"{name}_batch_{batch}_ms", ms, "ms", 0.01)


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
