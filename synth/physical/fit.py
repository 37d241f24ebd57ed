"""The largest chip of an engine that fits a device, for full and trimmed engines.

Everything around the engines is the same for both kinds, so it does not contribute to the gain from
trimming: the crossbar of a vault with a response buffer for each engine and the tags that the full
engine needs, the back end, the control bus, the host's port and its path to the vaults. Trimmed
programs run on one engine, so engines of either kind need only their own vault: each has a window
of it, and there are neither network nor counters. For each kind, the numbers of engines per vault
and of vaults are those that are best for the program.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from memory.axi.layout import AxiConfig
from memory.config import VaultConfig
from noc.config import NetworkConfig
from noc.crossbar import MAX_REQUESTERS
from pe.config import PeConfig
from soc.chip.config import CHIP_PORTS, ChipConfig
from soc.tile.config import VaultBackEnd, VaultTileConfig
from synth.errors import SynthesisError

from .area import AreaReport, synthesise
from .chip_area import HOST_PARTS, VAULT_PARTS, chip_area, parts_area
from .devices import Device

#: Bytes per cycle that a saturated vault serves: a word, minus the cost of bus turnarounds and
#: partly used columns. Only the choice among grids depends on this.
VAULT_BYTES = 7.2

_MAX_SIDE = 16
_MAX_ENGINES = 1024
#: Numbers of engines per vault for which parts are synthesised to estimate all others.
_SAMPLES = (2, 6)
_SAMPLE_GRID = (2, 2)
#: Requests in flight at a vault's AXI bus: more than keep a memory busy in every cycle.
_OUTSTANDING = 16
_BUS_BITS = 64
#: Minimum address bits of a vault that a host port supports.
_VAULT_BITS = 12

#: Called with the name of the next step.
Step = Callable[[str], None]


@dataclass(frozen=True, order=True)
class Grid:
    """Engines per vault, vaults per row, and rows of vaults."""

    engines: int
    columns: int
    rows: int

    @property
    def vaults(self) -> int:
        """Number of vaults of the chip."""
        return self.columns * self.rows

    @property
    def total(self) -> int:
        """Number of engines of the chip."""
        return self.vaults * self.engines


def chip_of(pe: PeConfig, grid: Grid, device: Device, *, tag_bits: int) -> ChipConfig:
    """The chip of engines ``pe`` in ``grid``.

    Vaults are AXI buses on an FPGA, and on silicon DRAM controllers as in the thesis.

    Parameters:
        pe: of every engine; its address bits are those of its window.
        tag_bits: tag width of each port of a vault's memory: that of the full engine, also for
            trimmed ones.

    Raises:
        hdl.config.ConfigurationError: there is no such chip.
    """
    ports = CHIP_PORTS - 1
    vault_tag_bits = tag_bits + (grid.engines + ports - 1).bit_length()
    vault: VaultBackEnd = VaultConfig(tag_bits=vault_tag_bits, counters=False)
    if device.target != "generic":
        vault = AxiConfig(
            # One bit more than the windows need: a window can't be the whole vault.
            address_bits=max(pe.address_bits + grid.engines.bit_length(), _VAULT_BITS),
            tag_bits=vault_tag_bits,
            data_bits=_BUS_BITS,
            outstanding=_OUTSTANDING,
            counters=False,
        )
    tile = VaultTileConfig(pe=pe, vault=vault, pes=grid.engines, extra_ports=ports, buffered=True)
    network = NetworkConfig(
        columns=grid.columns,
        rows=grid.rows,
        address_bits=vault.request_address_bits,
        tag_bits=tag_bits,
        counters=False,
    )
    return ChipConfig(tile=tile, network=network, remote=False)


def speed(grid: Grid, demand: float) -> float:
    """Number of engines whose work a chip can do, limited only by its vaults.

    Parameters:
        demand: bytes per cycle that an engine exchanges with its vault if it never waits.
    """
    if not demand:
        return grid.total
    return grid.vaults * min(grid.engines * demand, VAULT_BYTES) / demand


def grids(most_engines: int) -> Iterator[Grid]:
    """All grids with 1..``most_engines`` engines per vault.

    Of grids that differ only in shape, it yields the one with the shortest rings.
    """
    for vaults in range(1, _MAX_SIDE**2 + 1):
        shapes = [
            (columns, vaults // columns)
            for columns in range(1, _MAX_SIDE + 1)
            if vaults % columns == 0 and vaults // columns <= columns
        ]
        if shapes:
            columns, rows = min(shapes)
            for engines in range(1, most_engines + 1):
                if vaults * engines <= _MAX_ENGINES:
                    yield Grid(engines, columns, rows)


def ranked(
    most_engines: int, area: Callable[[Grid], Mapping[str, float]], device: Device, demand: float
) -> list[Grid]:
    """The grids that fit, fastest first.

    Among equals, the one with the fewest engines is first, then the one with the smallest area.

    Parameters:
        most_engines: per vault.
        area: of a chip.
        demand: see :func:`speed`.
    """
    fitting = []
    for grid in grids(most_engines):
        needed = area(grid)
        if device.fits(needed):
            share = max(device.used(needed).values())
            fitting.append((-speed(grid, demand), grid.total, share, grid))
    return [grid for *_, grid in sorted(fitting)]


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Area of everything around the engines of a chip.

    Attributes:
        device: the device.
        most_engines: per vault.
        host: area of the parts that exist once per chip.
        vaults: engines per vault -> area of its other parts, for :data:`_SAMPLES`.
    """

    device: Device
    most_engines: int
    host: Mapping[str, float]
    vaults: Mapping[int, Mapping[str, float]]

    def area(self, engine: Mapping[str, float], grid: Grid) -> dict[str, float]:
        """Estimate for a chip with engines of area ``engine``; a vault's area is linear in their
        number."""
        few, many = _SAMPLES
        totals = {}
        for name in self.device.capacity:
            slope = (self.vaults[many][name] - self.vaults[few][name]) / (many - few)
            vault = max(self.vaults[few][name] + slope * (grid.engines - few), 0.0)
            totals[name] = grid.total * engine[name] + grid.vaults * vault + self.host[name]
        return totals

    def ranked(self, engine: Mapping[str, float], demand: float) -> list[Grid]:
        """:func:`ranked` by these estimates."""
        return ranked(self.most_engines, partial(self.area, engine), self.device, demand)


def surroundings(
    pe: PeConfig, device: Device, *, tag_bits: int, step: Step | None = None
) -> Surroundings:
    """Synthesise everything around engines ``pe``; parameters and errors as for :func:`fit`."""
    tell = step or (lambda text: None)
    chips = {
        engines: chip_of(pe, Grid(engines, *_SAMPLE_GRID), device, tag_bits=tag_bits)
        for engines in _SAMPLES
    }
    tell("the host's ports")
    host = parts_area(chips[_SAMPLES[0]], device.target, HOST_PARTS)[0].values
    vaults = {}
    for engines, chip in chips.items():
        tell(f"what is around {engines} engines of a vault")
        rows = parts_area(chip, device.target, VAULT_PARTS)
        vaults[engines] = {
            name: sum(row.values[name] for row in rows) / chip.vaults for name in device.capacity
        }
    return Surroundings(
        device=device,
        most_engines=MAX_REQUESTERS - (CHIP_PORTS - 1),
        host=host,
        vaults=vaults,
    )


def fit(
    pe: PeConfig,
    device: Device,
    *,
    tag_bits: int,
    demand: float = 0.0,
    step: Step | None = None,
) -> tuple[ChipConfig, AreaReport]:
    """The chip of engines ``pe`` within ``device`` that does the most of a program's work, and its
    area there.

    Grids are ranked by areas that are linear in the engines per vault, from two synthesised sizes.
    The result is the first one that still fits when synthesised.

    Parameters:
        pe, tag_bits: see :func:`chip_of`.
        demand: see :func:`speed`; 0: memory is never the limit.
        step: called with the name of the next step.

    Raises:
        SynthesisError: not even one engine fits; the message names the shortage.
    """
    tell = step or (lambda text: None)
    tell("an engine")
    one = chip_of(pe, Grid(1, *_SAMPLE_GRID), device, tag_bits=tag_bits)
    engine = synthesise(one.pe, device.target).total.values
    around = surroundings(pe, device, tag_bits=tag_bits, step=step)
    for grid in around.ranked(engine, demand):
        tell(f"{grid.vaults} vaults of {grid.engines} engines")
        config = chip_of(pe, grid, device, tag_bits=tag_bits)
        area = chip_area(config, device.target)
        if device.fits(area.total.values):
            return config, area
    raise SynthesisError(_too_large(around.area(engine, Grid(1, 1, 1)), device))


def _too_large(needed: Mapping[str, float], device: Device) -> str:
    name, part = max(device.used(needed).items(), key=lambda item: item[1])
    return (
        f"no engine fits {device.name}: a chip of one takes about {needed[name]:,.0f} {name}, and "
        f"{device.most(name):,.0f} of its {device.capacity[name]:,.0f} may be used ({part:.0%})"
    )
