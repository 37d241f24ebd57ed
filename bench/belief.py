"""Belief propagation on whole chips: the timing model's cycles."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from isa.image import MAX_IMAGE_BYTES
from microkernels.bp.problem import message_updates
from microkernels.bp.tiles import fastest_cut
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.kernels import bp_job_on
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset
from support.picture import COLOURS, MARKERS, picture

from .harness.experiment import AMARANTH, Measurement, PictureOption, experiment, say
from .harness.runs import MEMORY_WAITS, LaunchRun, launch_runs

#: Pixels across and down.
FULL_HD = (1920, 1080)

_LABELS = 16

#: Run -> iterations on the coarse level (None: there is no coarse level) and on the fine level.
RUNS: Mapping[str, tuple[int | None, int]] = {
    "flat": (None, 1),
    "levels": (1, 1),
    "flat_eight": (None, 8),
    "levels_five": (5, 5),
}


def measure_full_hd(
    name: str,
    config: ChipConfig,
    *,
    width: int = FULL_HD[0],
    height: int = FULL_HD[1],
) -> dict[str, LaunchRun]:
    """Run one of :data:`RUNS` on the timing model of a chip; results by launch, cached on disk.

    Parameters:
        name: of the run. config: of the chip. width, height: of the image in pixels.

    Raises:
        CosimError: an engine faulted, or a message differs from the golden model's.
        KernelError: the tiles don't fit their vaults.
        support.native.CompilerError: the timing model can't be built.
    """
    coarse, fine = RUNS[name]
    problem = motorcycle(width, height, _LABELS).problem
    job = bp_job_on(problem, fine, config, coarse_iterations=coarse)
    runs = launch_runs(job, config, name)
    return {launch or "fine": run for launch, run in runs.items()}


#: Pixels of the image for all machines, except in the series over :data:`IMAGES`, and of a small
#: image.
_IMAGE = (240, 136)

SMALL = (64, 36)

#: Columns and rows of vaults. A single vault has no network.
VAULTS = ((1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4), (8, 8))

#: Engines of each vault.
ENGINES = (1, 2, 4, 8)

#: Pixels across and down.
IMAGES = ((64, 36), (120, 68), (240, 136), (480, 270), (720, 405))

_TAG_BITS = 10


def _scaling_chip(base: ChipConfig, columns: int, rows: int, engines: int) -> ChipConfig:
    """``base`` with another grid, and tags for up to eight engines per vault. More than 32 vaults
    are smaller: together they have at most 8 GiB, the limit of a :class:`isa.image.DramImage`."""
    dram = base.tile.dram
    share = max(1, columns * rows * dram.size_bytes // MAX_IMAGE_BYTES)
    vault = replace(dram, tag_bits=_TAG_BITS, rows=dram.rows // share)
    less = dram.address_bits - vault.address_bits
    pe = replace(base.tile.pe, address_bits=base.tile.pe.address_bits - less)
    tile = replace(base.tile, vault=vault, pes=engines, pe=pe)
    network = replace(
        base.network,
        columns=columns,
        rows=rows,
        tag_bits=tile.port_tag_bits,
        address_bits=vault.address_bits,
    )
    return replace(base, tile=tile, network=network)


def measure_scaling(base: ChipConfig) -> dict[str, dict[str, LaunchRun]]:
    """An iteration of BP-M by series and by what varies in it: ``vaults``, ``small`` (a small image
    over vaults), ``engines`` of each vault, ``image``, and ``cut`` (images in the tiles of
    :func:`microkernels.bp.tiles.fastest_cut`; the other series have as many columns and rows of
    tiles as vaults). Runs are cached on disk.

    Parameters:
        base: the chip whose vaults and engines are varied.

    Raises:
        CosimError: an engine faulted, or a message differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
    """
    grid = (base.network.columns, base.network.rows)
    pes = base.tile.pes
    runs = [
        *(("vaults", f"{x * y}", (x, y), pes, _IMAGE) for x, y in VAULTS),
        *(("small", f"{x * y}", (x, y), pes, SMALL) for x, y in VAULTS),
        *(("engines", f"{engines}", grid, engines, _IMAGE) for engines in ENGINES),
        *(("image", f"{x}x{y}", grid, pes, (x, y)) for x, y in IMAGES),
        *(("cut", f"{x}x{y}", grid, pes, (x, y)) for x, y in IMAGES),
    ]
    series: dict[str, dict[str, LaunchRun]] = {}
    for name, at, (columns, rows), engines, image in runs:
        say(f"{columns} x {rows} vaults, {engines} engines, {image[0]} x {image[1]} pixels")
        config = _scaling_chip(base, columns, rows, engines)
        job = _scaling_job(config, *image, cut=name == "cut")
        machine = config if config.vaults > 1 else replace(config.tile, extra_ports=0)
        (run,) = launch_runs(job, machine, f"{config.vaults} vaults").values()
        series.setdefault(name, {})[at] = replace(run, updates=message_updates(*image))
    return series


def _scaling_job(config: ChipConfig, width: int, height: int, *, cut: bool) -> KernelJob:
    problem = motorcycle(width, height, _LABELS).problem
    if config.vaults == 1:
        return bp_job_on(problem, 1, config.tile)
    chosen = fastest_cut(width, height, vaults=config.vaults, pes=config.tile.pes) if cut else None
    return bp_job_on(problem, 1, config, cut=chosen)


_INCHES = (10.0, 9.0)

_COLUMNS = 2

#: Cycles of the vector unit for a message of 16 labels (microkernels/bp/kernel.py).
_VECTOR_CYCLES = 80

#: Series -> title of the varied quantity, and the text for what is constant, of what varies and its
#: run.
_SERIES: Mapping[str, tuple[str, Callable[[str, LaunchRun], str]]] = {
    "vaults": (
        "vaults",
        lambda at, run: f"{_pixels(_IMAGE)}, {run.engines // int(at)} engines per vault",
    ),
    "small": (
        "vaults",
        lambda at, run: f"{_pixels(SMALL)}, {run.engines // int(at)} engines per vault",
    ),
    "engines": (
        "engines per vault",
        lambda at, run: f"{_pixels(_IMAGE)}, {run.engines // int(at)} vaults",
    ),
    "image": ("messages, thousands", lambda _, run: f"{run.engines} engines"),
}


def _pixels(image: tuple[int, int]) -> str:
    return f"{image[0]} x {image[1]} pixels"


def draw_scaling(series: Mapping[str, Mapping[str, LaunchRun]], path: Path) -> None:
    """Draw time over vaults, engines per vault and messages.

    Parameters:
        series: of :func:`measure_scaling`.
        path: PNG or SVG; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    with picture(*_INCHES, path) as figure:
        axes = figure.subplots(len(_SERIES) // _COLUMNS, _COLUMNS)
        for axis, (name, (label, title)) in zip(axes.flat, _SERIES.items(), strict=True):
            chosen = series[name]
            across = [
                run.updates / 1000 if name == "image" else float(at) for at, run in chosen.items()
            ]
            limit = [
                run.updates * _VECTOR_CYCLES * run.tck_ns / run.engines / 1e6
                for run in chosen.values()
            ]
            marker = f"{MARKERS[0]}-"
            times = [run.ms for run in chosen.values()]
            axis.loglog(across, times, marker, color=COLOURS[0], label="measured")
            if name == "image":
                cut = [run.ms for run in series["cut"].values()]
                marker = f"{MARKERS[1]}-"
                axis.loglog(across, cut, marker, color=COLOURS[2], label="in the fastest tiles")
            axis.loglog(across, limit, "--", color=COLOURS[1], label="vector units always busy")
            axis.set_xticks(across, [f"{value:,.0f}" for value in across])
            axis.minorticks_off()
            axis.set_title(title(*next(iter(chosen.items()))), fontsize=10)
            axis.set_xlabel(label)
            axis.set_ylabel("ms an iteration of BP-M at 1.25 GHz")
            axis.legend(fontsize=8)
            axis.grid(alpha=0.3)


_CHIP = "thesis"

#: Counters of :class:`pe.interface.PeCounter` -> name of their share of the cycles.
_SHARES = {
    "vector_busy": ("VECTOR_BUSY",),
    "issued": ("ISSUED_SCALAR", "ISSUED_VECTOR", "ISSUED_LOAD_STORE", "ISSUED_CONTROL"),
    "waits_for_vector_unit": ("STALL_VECTOR", "STALL_DRAIN"),
    "waits_for_memory": MEMORY_WAITS,
    "fetch": ("STALL_FETCH",),
}


@experiment(presets=("thesis",), tools=AMARANTH, minutes=50)
def full_hd() -> Iterator[Measurement]:
    """Belief propagation on full HD, whole, on the 128 engines of the thesis's chip.

    BP-M with one and with eight iterations, and the hierarchical run with one and with five
    iterations on each level, on the timing model. Every message is compared with the golden
    model's. Times at 1.25 GHz.
    """
    config = chip_preset(_CHIP)
    for name in RUNS:
        runs = measure_full_hd(name, config)
        coarse, fine = RUNS[name]
        total = 0.0
        for launch, run in runs.items():
            iterations = {"coarse": coarse or 1, "fine": fine}.get(launch, 1)
            ms = run.cycles / iterations * run.tck_ns / 1e6
            total += ms * iterations
            prefix = f"{name}_{launch}"
            yield Measurement(f"{prefix}_cycles", run.cycles, "cycles")
            yield Measurement(f"{prefix}_ms", ms, "ms an iteration")
            yield Measurement(f"{prefix}_gb_s", run.gbs, "GB/s", more_is_better=True)
            for share, counters in _SHARES.items():
                value = 100 * sum(run.share(counter) for counter in counters)
                yield Measurement(f"{prefix}_{share}", value, "%", tolerance=None)
        yield Measurement(f"{name}_total_ms", total, "ms")
        # The last launch's, as each counts from the beginning.
        last = list(runs.values())[-1]
        yield Measurement(f"{name}_seconds", last.seconds, "s with loading and reading", None)
        speed = last.simulated / (last.seconds * last.processors) / 1000
        yield Measurement(
            f"{name}_kcycles_per_second", speed, "kcycles/s of a processor", None, True
        )


@experiment(presets=("thesis",), tools=AMARANTH, minutes=15)
def scaling(picture: PictureOption = None) -> Iterator[Measurement]:
    """How BP-M scales: with vaults, with engines per vault, with pixels.

    An iteration of BP-M against the number of vaults, for two images, of engines per vault, and of
    pixels, in as many columns and rows of tiles as vaults and in those of the fastest cut, on the
    timing model. Every message is compared with the golden model's. Times at 1.25 GHz.

    Example: vip bench scaling --picture scaling.png
    """
    series = measure_scaling(chip_preset(_CHIP))
    if picture is not None:
        draw_scaling(series, picture)
    for name, runs in series.items():
        for at, run in runs.items():
            yield Measurement(f"{name}_{at}_cycles", run.cycles, "cycles")
            yield Measurement(f"{name}_{at}_ms", run.ms, "ms")
            busy = 100 * run.share("VECTOR_BUSY")
            yield Measurement(f"{name}_{at}_vector_busy", busy, "%", more_is_better=True)
            yield Measurement(f"{name}_{at}_waits", 100 * run.share(*MEMORY_WAITS), "%")
            yield Measurement(f"{name}_{at}_bus_busy", 100 * run.bus_busy, "%", tolerance=None)
