"""How BP-M scales: with vaults, with engines a vault, with the image. The timing model's cycles."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial

from isa.image import MAX_IMAGE_BYTES
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import message_updates
from microkernels.bp.tiles import fastest_cut
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import chip_bp_job, launches_key, run_on
from sim_tb.runner.cache import Kept, fingerprint
from sim_tb.timed.library import sources
from soc.chip.config import ChipConfig
from soc.generate.generate import configuration_json

from .full_hd import MEMORY_WAITS

__all__ = ["ENGINES", "IMAGES", "SMALL", "VAULTS", "Point", "measure_scaling"]

_LABELS = 16
#: Pixels of the image that all machines solve, but for :data:`IMAGES`, and of a small image.
_IMAGE = (240, 136)
SMALL = (64, 36)
#: Columns and rows of vaults. Of one vault there is no network.
VAULTS = ((1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4), (8, 8))
#: Engines of each vault.
ENGINES = (1, 2, 4, 8)
#: Pixels across and down.
IMAGES = ((64, 36), (120, 68), (240, 136), (480, 270), (720, 405))
_TAG_BITS = 10


@dataclass(frozen=True, kw_only=True)
class Point:
    """An iteration of BP-M on one machine.

    Attributes:
        vaults, engines: of the machine; engines of one vault.
        width, height: of the image in pixels. updates: messages updated.
        cycles: of the engine that ran longest. tck_ns: clock period.
        vector_busy: share of all engines' cycles in which the vector unit works.
        waits: share in which an instruction waits for memory or for another engine's flag.
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


def _machine(base: ChipConfig, columns: int, rows: int, engines: int) -> ChipConfig:
    """``base`` with another grid, and tags for up to eight engines a vault. The vaults of more than
    32 are smaller: together they have 8 GiB at most, the size of a :class:`isa.image.DramImage`."""
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


def measure_scaling(
    base: ChipConfig, progress: Callable[[str], None] | None = None
) -> Iterator[tuple[str, Point]]:
    """The points of the series ``vaults``, ``small`` (a small image over vaults), ``engines``,
    ``image``, and ``cut`` (images in the tiles of :func:`microkernels.bp.tiles.fastest_cut`, the
    others in as many columns and rows of tiles as vaults), each with its series. Results are
    cached in the build folder.

    Parameters:
        base: the chip whose vaults and engines are varied.
        progress: called with each point's name before it runs.

    Raises:
        CosimError: an engine faulted, or a message differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
    """
    grid = (base.network.columns, base.network.rows)
    pes = base.tile.pes
    runs = [
        *(("vaults", each, pes, _IMAGE) for each in VAULTS),
        *(("small", each, pes, SMALL) for each in VAULTS),
        *(("engines", grid, each, _IMAGE) for each in ENGINES),
        *(("image", grid, pes, each) for each in IMAGES),
        *(("cut", grid, pes, each) for each in IMAGES),
    ]
    texts = [path.read_bytes() for path in sources()]
    for series, (columns, rows), engines, image in runs:
        if progress is not None:
            pixels = f"{image[0]} x {image[1]} pixels"
            progress(f"{columns} x {rows} vaults, {engines} engines each, {pixels}")
        config = _machine(base, columns, rows, engines)
        machine = repr(sorted(configuration_json(config).items()))
        job = _job(config, *image, cut=series == "cut")
        key = fingerprint(machine, launches_key(job), *texts)
        found = Kept("scaling").get(key, partial(_kept_point, config, job, *image))
        yield series, Point(**found)


def _job(config: ChipConfig, width: int, height: int, *, cut: bool) -> KernelJob:
    problem = motorcycle(width, height, _LABELS).problem
    if config.vaults == 1:
        return bp_job(problem, pes=config.tile.pes)
    chosen = fastest_cut(width, height, vaults=config.vaults, pes=config.tile.pes) if cut else None
    return chip_bp_job(problem, 1, config, cut=chosen)


def _kept_point(config: ChipConfig, job: KernelJob, width: int, height: int) -> dict[str, float]:
    return asdict(_point(config, job, width, height))


def _point(config: ChipConfig, job: KernelJob, width: int, height: int) -> Point:
    design = replace(config.tile, extra_ports=0) if config.vaults == 1 else config
    outcome = run_on(job, design, on="model", preload=True)
    result = outcome.result
    if not outcome.match:
        raise CosimError(f"{config.vaults} vaults: messages differ from the golden model's")
    total = sum(engine["CYCLES"] for engine in result.counters)

    def share(*names: str) -> float:
        return sum(engine[name] for engine in result.counters for name in names) / total

    return Point(
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
