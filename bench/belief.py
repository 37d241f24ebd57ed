"""Belief propagation on whole chips: the timing model's cycles."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from isa.image import MAX_IMAGE_BYTES
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.problem import message_updates
from microkernels.bp.tiles import fastest_cut
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.kernels import chip_bp_job, chip_ring, run_on
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset
from support.picture import COLOURS, MARKERS, picture

from .harness.experiment import AMARANTH, Measurement, PictureOption, experiment, say
from .harness.runs import MEMORY_WAITS, LaunchRun, cached, exact, launch_runs

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


def full_hd_job(
    name: str, config: ChipConfig, *, width: int = FULL_HD[0], height: int = FULL_HD[1]
) -> KernelJob:
    """The job of a run of :data:`RUNS`.

    Parameters:
        name: of the run.
        config: of the chip.
        width, height: of the image in pixels.

    Raises:
        KernelError: the tiles don't fit their vaults.
    """
    coarse, fine = RUNS[name]
    make = bp_job if coarse is None else partial(bp_levels_job, coarse_iterations=coarse)
    return make(
        motorcycle(width, height, _LABELS).problem,
        iterations=fine,
        ring=chip_ring(config),
        pes=config.tile.pes,
        scratchpad_bytes=config.pe.scratchpad_bytes,
    )


def measure_full_hd(
    name: str,
    config: ChipConfig,
    *,
    width: int = FULL_HD[0],
    height: int = FULL_HD[1],
) -> dict[str, LaunchRun]:
    """Run one of :data:`RUNS` on the timing model of a chip; results by launch, cached on disk.

    Parameters:
        name, config, width, height: as for :func:`full_hd_job`.

    Raises:
        CosimError: an engine faulted, or a message differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
    """
    runs = launch_runs(full_hd_job(name, config, width=width, height=height), config, name)
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


@dataclass(frozen=True, kw_only=True)
class ScalingPoint:
    """An iteration of BP-M on one machine.

    Attributes:
        vaults, engines: of the machine; engines per vault.
        width, height: of the image in pixels. updates: messages updated.
        cycles: of the slowest engine. tck_ns: clock period.
        vector_busy: share of all engines' cycles in which the vector unit is busy.
        waits: share of them in which an instruction waits for memory or for another engine's flag.
        bus_busy: share of cycles in which a vault's data bus moves data.
    """

    vaults: int
    engines: int
    width: int
    height: int
    updates: int
    cycles: int
    tck_ns: float
    vector_busy: float
    waits: float
    bus_busy: float

    @property
    def ms(self) -> float:
        """Time of the iteration."""
        return self.cycles * self.tck_ns / 1e6


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


def measure_scaling(base: ChipConfig) -> Iterator[tuple[str, ScalingPoint]]:
    """Series and point of each measurement: ``vaults``, ``small`` (a small image over vaults),
    ``engines``, ``image``, and ``cut`` (images in the tiles of
    :func:`microkernels.bp.tiles.fastest_cut`; the other series have as many columns and rows of
    tiles as vaults). Results are cached in the build folder.

    Parameters:
        base: the chip whose vaults and engines are varied.

    Raises:
        CosimError: an engine faulted, or a message differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
    """
    grid = (base.network.columns, base.network.rows)
    pes = base.tile.pes
    runs = [
        *(("vaults", vaults, pes, _IMAGE) for vaults in VAULTS),
        *(("small", vaults, pes, SMALL) for vaults in VAULTS),
        *(("engines", grid, engines, _IMAGE) for engines in ENGINES),
        *(("image", grid, pes, image) for image in IMAGES),
        *(("cut", grid, pes, image) for image in IMAGES),
    ]
    for series, (columns, rows), engines, image in runs:
        say(f"{columns} x {rows} vaults, {engines} engines, {image[0]} x {image[1]} pixels")
        config = _scaling_chip(base, columns, rows, engines)
        job = _scaling_job(config, *image, cut=series == "cut")
        measure = partial(_point, config, job, *image)
        yield series, ScalingPoint(**cached("scaling", config, job, measure, on="model"))


def _scaling_job(config: ChipConfig, width: int, height: int, *, cut: bool) -> KernelJob:
    problem = motorcycle(width, height, _LABELS).problem
    if config.vaults == 1:
        return bp_job(problem, pes=config.tile.pes)
    chosen = fastest_cut(width, height, vaults=config.vaults, pes=config.tile.pes) if cut else None
    return chip_bp_job(problem, 1, config, cut=chosen)


def _point(config: ChipConfig, job: KernelJob, width: int, height: int) -> dict[str, float]:
    if config.vaults == 1:
        tile = replace(config.tile, extra_ports=0)
        result = exact(run_on(job, tile, on="model"), "one vault").result
    else:
        outcome = run_on(job, config, on="model", preload=True)
        result = exact(outcome, f"{config.vaults} vaults").result
    total = sum(engine["CYCLES"] for engine in result.counters)

    def share(*names: str) -> float:
        return sum(engine[name] for engine in result.counters for name in names) / total

    point = ScalingPoint(
        vaults=config.vaults,
        engines=config.tile.pes,
        width=width,
        height=height,
        updates=message_updates(width, height),
        cycles=max(engine["CYCLES"] for engine in result.counters),
        tck_ns=result.tck_ns,
        vector_busy=share("VECTOR_BUSY"),
        waits=share(*MEMORY_WAITS),
        bus_busy=sum(vault["BUS_BUSY"] for vault in result.vaults)
        / sum(vault["CYCLES"] for vault in result.vaults),
    )
    return asdict(point)


_INCHES = (10.0, 9.0)

_COLUMNS = 2

#: Cycles of the vector unit for a message of 16 labels (microkernels/bp/kernel.py).
_VECTOR_CYCLES = 80

#: Title of the varied quantity, its value, and the text for what is constant.
_Series = tuple[str, Callable[[ScalingPoint], float], Callable[[ScalingPoint], str]]

_OVER_VAULTS: _Series = (
    "vaults",
    lambda point: point.vaults,
    lambda point: f"{point.width} x {point.height} pixels, {point.engines} engines per vault",
)

_SERIES: Mapping[str, _Series] = {
    "vaults": _OVER_VAULTS,
    "small": _OVER_VAULTS,
    "engines": (
        "engines per vault",
        lambda point: point.engines,
        lambda point: f"{point.width} x {point.height} pixels, {point.vaults} vaults",
    ),
    "image": (
        "messages, thousands",
        lambda point: point.updates / 1000,
        lambda point: f"{point.vaults} vaults, {point.engines} engines per vault",
    ),
}


def draw_scaling(points: Sequence[tuple[str, ScalingPoint]], path: Path) -> None:
    """Draw time over vaults, engines per vault and messages.

    Parameters:
        points: all points of :func:`measure_scaling`.
        path: PNG or SVG; replaced only when the picture is complete.

    Raises:
        OSError: the file can't be written.
    """
    with picture(*_INCHES, path) as figure:
        axes = figure.subplots(len(_SERIES) // _COLUMNS, _COLUMNS)
        for axis, (name, (label, place, title)) in zip(axes.flat, _SERIES.items(), strict=True):
            chosen = [point for series, point in points if series == name]
            across = [place(point) for point in chosen]
            limit = [
                point.updates * _VECTOR_CYCLES * point.tck_ns / (point.vaults * point.engines) / 1e6
                for point in chosen
            ]
            marker = f"{MARKERS[0]}-"
            times = [point.ms for point in chosen]
            axis.loglog(across, times, marker, color=COLOURS[0], label="measured")
            if name == "image":
                cut = [point.ms for series, point in points if series == "cut"]
                marker = f"{MARKERS[1]}-"
                axis.loglog(across, cut, marker, color=COLOURS[2], label="in the fastest tiles")
            axis.loglog(across, limit, "--", color=COLOURS[1], label="vector units always busy")
            axis.set_xticks(across, [f"{value:,.0f}" for value in across])
            axis.minorticks_off()
            axis.set_title(title(chosen[0]), fontsize=10)
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
    points = list(measure_scaling(chip_preset(_CHIP)))
    if picture is not None:
        draw_scaling(points, picture)
    for series, point in points:
        at = {
            "vaults": f"{point.vaults}",
            "small": f"{point.vaults}",
            "engines": f"{point.engines}",
            "image": f"{point.width}x{point.height}",
            "cut": f"{point.width}x{point.height}",
        }[series]
        yield Measurement(f"{series}_{at}_cycles", point.cycles, "cycles")
        yield Measurement(f"{series}_{at}_ms", point.ms, "ms")
        busy = 100 * point.vector_busy
        yield Measurement(f"{series}_{at}_vector_busy", busy, "%", more_is_better=True)
        yield Measurement(f"{series}_{at}_waits", 100 * point.waits, "%")
        yield Measurement(f"{series}_{at}_bus_busy", 100 * point.bus_busy, "%", tolerance=None)
