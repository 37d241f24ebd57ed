"""Area of a chip or a vault, from the synthesis of all its parts."""

from collections.abc import Callable

from hdl.component import Component
from hdl.emission import emit
from noc.node.node import Node
from pe.config import PeConfig
from soc.chip.config import ChipConfig
from soc.generate.designs import Configuration
from soc.host.chain import HostChain
from soc.host.control import HostControl
from soc.host.data import HostData
from soc.tile.config import VaultTileConfig
from soc.tile.control import TileControl
from soc.tile.vault_memory import VaultMemory

from .area import AreaReport, AreaRow, measure_unit, sum_rows, synthesise
from .mapping import Progress
from .targets import find_target
from .units import EngineUnit

#: Name of the row of all engines.
ENGINE = "engines"
#: Names of the rows of each vault's other parts, and of the parts that exist once per chip.
VAULT_PARTS = ("control", "memory", "network")
HOST_PARTS = ("host",)


def chip_area(
    config: VaultTileConfig | ChipConfig, target: str, progress: Progress | None = None
) -> AreaReport:
    """Area of ``config`` by part, the first of which is :data:`ENGINE`. Parts are synthesised
    separately, engines unit by unit (:func:`synth.physical.area.synthesise`), and results cached by
    content.

    Parameters:
        target: see :data:`synth.physical.targets.TARGETS`.
        progress: called after each unit of an engine.

    Raises:
        SynthesisError: the target is unknown, or Yosys refuses a design.
    """
    one = synthesise(config.pe, target, progress=progress).total
    rows = (_engines(one, config.pes), *parts_area(config, target))
    return AreaReport(target=target, rows=rows, total=sum_rows(rows))


def design_area(config: Configuration, target: str, progress: Progress | None = None) -> AreaRow:
    """Area of an engine, of a vault with its engines, or of a chip; parameters and errors as for
    :func:`chip_area`."""
    if isinstance(config, PeConfig):
        return synthesise(config, target, progress=progress).total
    return chip_area(config, target, progress).total


def _engines(one: AreaRow, number: int) -> AreaRow:
    return AreaRow(ENGINE, {name: value * number for name, value in one.values.items()}, {})


def parts_area(
    config: VaultTileConfig | ChipConfig,
    target: str,
    names: tuple[str, ...] = (*VAULT_PARTS, *HOST_PARTS),
) -> tuple[AreaRow, ...]:
    """Area of the parts ``names`` of a chip or vault; errors as for :func:`chip_area`.

    Rows: ``memory`` (crossbars and back ends), and of a chip ``control`` (the tiles' ends of the
    control bus), ``network`` (nodes, or the host's chain), ``host`` (its ports).
    """
    chosen = find_target(target)
    built, shapes = config.with_sram(chosen.sram), config.with_sram("macro")
    measured: dict[str, list[AreaRow]] = {}
    pairs = zip(_parts(built, names), _parts(shapes, names), strict=True)
    for (name, part, number), (_, shape, _) in pairs:
        emission = emit(part, "part")
        unit = EngineUnit(name, ((emission.top, number),))
        row = measure_unit(unit, chosen, emission, emit(shape, "part"))
        measured.setdefault(name, []).append(row)
    return tuple(_named(name, rows) for name, rows in measured.items())


def _named(name: str, rows: list[AreaRow]) -> AreaRow:
    total = sum_rows(rows)
    return AreaRow(name, total.values, total.srams)


def _parts(
    config: VaultTileConfig | ChipConfig, names: tuple[str, ...]
) -> list[tuple[str, Component, int]]:
    """For the rows ``names``: the row's name, the part, and the number of its copies."""
    if isinstance(config, VaultTileConfig):
        return [("memory", VaultMemory.of_tile(config), 1)]
    tile, vaults = config.tile, config.vaults

    def network() -> Component:
        if config.remote:
            return Node(config.network, requesters=tile.pes + 1)
        return HostChain(config.network)

    makers: list[tuple[str, Callable[[], Component], int]] = [
        ("control", lambda: TileControl(pe=config.pe, pes=tile.pes), vaults),
        ("memory", lambda: VaultMemory.of_tile(tile, beyond_node=config.remote), vaults),
        ("network", network, vaults),
        ("host", lambda: HostControl(config.host), 1),
        ("host", lambda: HostData(config.host), 1),
    ]
    return [(name, make(), number) for name, make, number in makers if name in names]
