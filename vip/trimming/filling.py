"""Use of the area that trimming frees: chips that fill a device, and their work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from microkernels.suite import Application
from pe.config import PeConfig
from sim_tb.cosim.chip_copies import run_copies
from sim_tb.cosim.trim_check import Measured, measure
from sim_tb.runner.cache import fingerprint
from soc.chip.config import ChipConfig
from soc.generate.presets import preset
from support.cache import ResultCache
from synth.physical.area import AreaReport
from synth.physical.devices import Device, find_device
from synth.physical.fit import Grid, Step, Surroundings, fit, speed, surroundings

from .rows import TrimRow, launches_of, made_from
from .runs import SLOWER, demand, known_launches, moved, proved_cut

#: Name of the file with the chip of trimmed engines.
CHIP_FILE = "chip.json"
#: Clock at which bandwidths are stated. Nothing is placed on a 7-series device here; an engine
#: placed on the fastest grade of ECP5 reaches about as much.
CLOCK_MHZ = 100.0
#: Address bits of the window of the suite's engines, full and trimmed: as few as the application
#: with the most data needs.
WINDOW_BITS = 17
#: Bytes per cycle that the bus of a vault moves.
_BUS_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A chip that fills a device, and the work of its engines.

    Attributes:
        config: of the chip. device: that it fills. area: of the chip on the device.
        host_cycles, differing: of the work (:func:`sim_tb.cosim.chip_copies.run_copies`).
        moved: bytes that the work of one engine loads and stores.
        demand: bytes per cycle that an engine moves when it does not wait for memory.
        full: the chip of full engines on the same device; None: this is it.
    """

    config: ChipConfig
    device: Device
    area: AreaReport
    host_cycles: int
    differing: tuple[int, ...]
    moved: int
    demand: float
    full: "Filled | None" = None

    @property
    def throughput(self) -> float:
        """Copies of the work completed per million cycles."""
        return self.config.pes * 1e6 / self.host_cycles

    @property
    def gigabytes(self) -> float:
        """GB per second that the work moves at :data:`CLOCK_MHZ`."""
        return self.throughput * self.moved * CLOCK_MHZ / 1e9

    @property
    def bus_gigabytes(self) -> float:
        """GB per second that the buses of all vaults can move at :data:`CLOCK_MHZ`."""
        return self.config.vaults * _BUS_BYTES * CLOCK_MHZ / 1e3

    @property
    def on_board(self) -> float | None:
        """:attr:`throughput` at :data:`CLOCK_MHZ` if all vaults share the peak bandwidth of the
        memory on the device's board; None: no board is known."""
        device = self.device
        if not device.board:
            return None
        return self.throughput * min(1.0, device.board_bytes_per_second / 1e9 / self.gigabytes)

    @property
    def gain(self) -> float:
        """Work per cycle relative to that of :attr:`full`, if every vault has its own memory and
        the clocks are equal."""
        return self.throughput / (self.full or self).throughput

    @property
    def board_gain(self) -> float | None:
        """The same ratio if all vaults share the memory of the device's board; None: no board is
        known."""
        before, after = (self.full or self).on_board, self.on_board
        return None if before is None or after is None else after / before

    @property
    def match(self) -> bool:
        """Whether every engine, also of :attr:`full`, left the expected results."""
        return not self.differing and (self.full is None or self.full.match)

    def to_json(self) -> dict[str, object]:
        """The chip as plain JSON data."""
        total = self.area.total.values
        return {
            "engines": self.config.pes,
            "vaults": self.config.vaults,
            "engines_per_vault": self.config.tile.pes,
            "columns": self.config.network.columns,
            "rows": self.config.network.rows,
            "area": {row.unit: row.values for row in (*self.area.rows, self.area.total)},
            "capacity": dict(self.device.capacity),
            "fill_limit": dict(self.device.fill),
            "filled": {
                name: round(total.get(name, 0) / number, 4)
                for name, number in self.device.capacity.items()
            },
            "host_cycles": self.host_cycles,
            "differing_engines": list(self.differing),
            "gigabytes_per_second": round(self.gigabytes, 2),
            "bus_gigabytes_per_second": round(self.bus_gigabytes, 2),
        }


def _fill(
    name: str,
    pe: PeConfig,
    device: Device,
    tag_bits: int,
    runs: Sequence[Measured],
    step: Step,
) -> Filled:
    """Fill ``device`` with engines ``pe``, and run the work of ``runs`` on each."""
    step(f"{name} engines")
    chip, area = fit(pe, device, tag_bits=tag_bits, demand=demand(runs), step=step)
    step(f"simulation of {chip.pes} {name} engines")
    cycles, differing = run_copies(
        chip,
        [(run.launch, run.contents) for run in runs],
        lambda cycles: step(f"simulation of {chip.pes} {name} engines: {cycles:,} cycles"),
    )
    return Filled(
        config=chip,
        device=device,
        area=area,
        host_cycles=cycles,
        differing=differing,
        moved=moved(runs),
        demand=demand(runs),
    )


def fit_both(
    full: PeConfig, trimmed: PeConfig, device: Device, runs: Sequence[Measured], step: Step
) -> Filled:
    """Fill ``device`` with trimmed and with full engines, and run the work on every engine of both
    chips.

    The logic around the engines is the same (:mod:`synth.physical.fit`), and so are the windows:
    full engines have as many address bits as the trimmed ones, and counters only if those do.

    Parameters:
        runs: launches of one engine, in order, on its Verilog with counters.
        step: called with the name of the next step.

    Raises:
        synth.errors.SynthesisError: not even one engine fits.
        sim_tb.cosim.engine.CosimError: a program faults or does not end.
    """
    windowed = replace(full, address_bits=trimmed.address_bits, counters=trimmed.counters)
    before = _fill("full", windowed, device, full.tag_bits, runs, step)
    after = _fill("trimmed", trimmed, device, full.tag_bits, runs, step)
    return replace(after, full=before)


def fit_application(application: Application, device: Device, step: Step) -> Filled:
    """Fill ``device`` with full engines, and with ones trimmed to ``application`` by proof. All
    have windows of :data:`WINDOW_BITS` address bits, and none has counters.

    Raises:
        VipError: an engine can't be built, simulated or synthesised, or does not fit.
    """
    counted = preset(application.preset)
    full = replace(counted, counters=False, address_bits=WINDOW_BITS)
    step(f"{application.name} on the full engine")
    runs = [measure(*work, counted, slower=SLOWER) for work in application.workloads]
    cut = proved_cut(known_launches([application], full), full, runs)
    return fit_both(full, replace(cut.trimmed, address_bits=WINDOW_BITS), device, runs, step)


def fit_json(chip: Filled) -> dict[str, object]:
    """A chip beside that of full engines as plain JSON data."""
    device, gain = chip.device, chip.board_gain
    return {
        "device": device.name,
        "bytes_per_cycle": round(chip.demand, 3),
        "clock_mhz": CLOCK_MHZ,
        "full": (chip.full or chip).to_json(),
        "trimmed": chip.to_json(),
        "throughput_gain": round(chip.gain, 3),
        "board": device.board or None,
        "board_gigabytes_per_second": (
            round(device.board_bytes_per_second / 1e9, 2) if device.board else None
        ),
        "board_throughput_gain": gain and round(gain, 3),
        "match": chip.match,
    }


#: The device that is filled: SCRATCH's.
DEVICE = "xc7vx690t"


def estimate_gains(rows: Sequence[TrimRow], step: Step) -> dict[str, float]:
    """By name of row, the work per cycle of :data:`DEVICE` filled with trimmed engines, relative to
    one filled with full engines (:func:`synth.physical.fit.speed`), less the cycles that the
    trimmed engine takes in addition.

    It follows from the areas of the engines and of the logic around them, which is the same for
    full and for trimmed engines (:mod:`synth.physical.fit`).

    Nothing is simulated: a vault counts as busy at :data:`synth.physical.fit.VAULT_BYTES` per
    cycle; below that its engines work as fast as a single engine.

    Parameters:
        step: called with the name of the next step.

    Raises:
        synth.errors.SynthesisError: Yosys refuses a part.
    """
    device = find_device(DEVICE)
    around: dict[PeConfig, Surroundings] = {}

    def best(row: TrimRow, area: Mapping[str, float]) -> Grid:
        pe = replace(row.full, address_bits=WINDOW_BITS)
        if pe not in around:
            around[pe] = surroundings(pe, device, tag_bits=pe.tag_bits, step=step)
        return around[pe].ranked(area, row.demand)[0]

    gains: dict[str, float] = {}
    for row in rows:
        full = best(row, row.area_full)
        trimmed = best(row, row.area_trimmed)
        faster = speed(trimmed, row.demand / (1 + row.slower)) / speed(full, row.demand)
        gains[row.name] = round(faster / (1 + row.slower), 3)
    return gains


def simulate_gain(application: Application, step: Step) -> dict[str, Any]:
    """:func:`vip.trimming.filling.fit_application` for :data:`DEVICE` as plain JSON data,
    computed now or cached as long as no dependency changes; ``step`` and errors as there."""
    key = fingerprint(made_from(), *launches_of(application))

    def make() -> dict[str, object]:
        return fit_json(fit_application(application, find_device(DEVICE), step))

    return dict(ResultCache("trim_fits").get(key, make))
