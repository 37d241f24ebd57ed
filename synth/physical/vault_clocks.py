"""A vault's memory with two clocks: static timing in standard cells, and placement on an FPGA.

The analysis covers the crossbar with the crossing, and the back end. Engines have one clock and are
analysed separately (:mod:`synth.physical.place`, :mod:`synth.physical.corners`).

Resets also cross: the reset of a crossing's source immediately sets two registers of its target,
which release it in a cycle of their clock. Since the set is asynchronous, it has no timing
constraint.
"""

from collections.abc import Mapping

from hdl.clocks import CLOCK_PORTS, ENGINE_DOMAIN, MEMORY_DOMAIN
from hdl.config import SramKind
from hdl.emission import Emission, emit
from soc.tile.config import VaultTileConfig
from soc.tile.vault_memory import VaultMemory, memory_member
from synth.errors import SynthesisError
from synth.sram import SramTimes
from synth.timing.sta import Crossings, Path, domain_paths

from .asic import NANGATE45
from .devices import find_placed
from .mapping import engine_netlist
from .nextpnr import SET_PIN, reset_synchronisers
from .place import PlaceReport, map_in_shell
from .targets import find_cells

#: Units in which a path from one clock to the other may begin.
CROSSINGS = ("memory_crossing", "counter_mirror")
_ENGINE, _MEMORY = CLOCK_PORTS[ENGINE_DOMAIN][0], CLOCK_PORTS[MEMORY_DOMAIN][0]
_TOP = "vault_memory"


def _emitted(config: VaultTileConfig, sram: SramKind) -> Emission:
    if not config.clocks.two:
        raise SynthesisError("a vault with one clock has one rate (clocks.domains must be 'two')")
    return emit(VaultMemory.of_tile(config.with_sram(sram)), _TOP)


def _of_memory(config: VaultTileConfig, port: str) -> bool:
    return port.split("__")[0] in memory_member(config.vault)


def time_vault(config: VaultTileConfig) -> tuple[Mapping[str, Path], Crossings]:
    """:func:`synth.timing.sta.domain_paths` in Nangate 45 nm, before layout, with pin loads.

    Parameters:
        config: with two clocks.

    Raises:
        SynthesisError: there is only one clock, Yosys refuses the design, or a
            path from one clock to the other begins outside :data:`CROSSINGS`.
    """
    emission = _emitted(config, "macro")
    cells, library = find_cells(NANGATE45)
    return domain_paths(
        engine_netlist(emission, cells),
        library,
        SramTimes(library.node_nm),
        clock_of_port=lambda port: _MEMORY if _of_memory(config, port) else _ENGINE,
        crossings=CROSSINGS,
    )


def place_vault(
    config: VaultTileConfig, device: str, *, engine_mhz: float, memory_mhz: float, seeds: int = 3
) -> PlaceReport:
    """Map to ECP5, place and route, once per seed, in the shell of :mod:`synth.physical.shell`.
    Results are cached by content.

    Parameters:
        config: with two clocks. device: see :func:`synth.physical.devices.find_placed`.
        engine_mhz, memory_mhz: nextpnr's targets.
        seeds: number of placements, 1 or more, with seeds from 1 on.

    Raises:
        SynthesisError: there is only one clock, the device is unknown, the design does not fit, a
            tool fails, or the longest path from one clock to the other begins outside
            :data:`CROSSINGS` and does not set a reset synchroniser
            (:func:`synth.physical.nextpnr.reset_synchronisers`).
    """
    if seeds < 1:
        raise SynthesisError(f"at least 1 seed is needed, not {seeds}")
    emission = _emitted(config, "fpga")
    chosen = find_placed(device)
    aims = {_ENGINE: engine_mhz, _MEMORY: memory_mhz}
    mapped = map_in_shell(emission, _TOP, chosen, aims, lambda port: _of_memory(config, port))
    placements = [mapped.placer.place(seed) for seed in range(1, seeds + 1)]
    resets = reset_synchronisers(mapped.placer.netlist)
    for crossing in (crossing for placement in placements for crossing in placement.crossings):
        unit = mapped.unit_of_cell(crossing.first)
        is_reset = crossing.pin == SET_PIN and crossing.last in resets
        if unit not in CROSSINGS and not is_reset:
            raise SynthesisError(
                f"{mapped.placer.what}: the longest path from {crossing.source} to"
                f" {crossing.target} must begin in {' or '.join(CROSSINGS)}, or set a reset"
                f" synchroniser, not lead from {crossing.first} to {crossing.last}"
            )
    return mapped.report(placements)
