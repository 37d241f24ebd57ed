"""What fits: copies of a trimmed design on FPGAs, the resource that limits them, and the clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pe.config import PeConfig
from soc.tile.config import VaultTileConfig
from support.extras import MissingExtraError
from synth.physical.area import synthesise
from synth.physical.chip_area import design_area
from synth.physical.devices import Device
from synth.physical.nextpnr import need_nextpnr
from synth.physical.place import PlaceReport
from vip.progress import Progress, naming, silent
from vip.synthesis.area import place

from .filling import CLOCK_MHZ
from .trim import TrimResult


@dataclass(frozen=True, kw_only=True)
class DeviceFit:
    """Copies of a design, an engine or a vault, on a device.

    Attributes:
        device: the device.
        engines_each: engines of one copy.
        needed: measure -> number that one copy takes: an engine as one netlist, a vault as the sum
            of its units, each mapped alone.
        placed: one engine, placed and routed; None: it was not placed.
        unplaced: why not, in words; "" if it was placed.
    """

    device: Device
    engines_each: int
    needed: Mapping[str, float]
    placed: PlaceReport | None
    unplaced: str

    @property
    def copies(self) -> int:
        """Copies that fit the usable part of the device, by counts alone."""
        return int(1 / max(self.device.used(self.needed).values()))

    @property
    def engines(self) -> int:
        """Engines in these copies."""
        return self.copies * self.engines_each

    @property
    def limit(self) -> str:
        """The measure of which one copy takes the largest fraction of what is usable."""
        used = self.device.used(self.needed)
        return max(used, key=lambda name: used[name])

    @property
    def mhz(self) -> float | None:
        """Clock of one engine: the median of its placements; assumed for a device that VIP can't
        place on; None: unknown."""
        if self.placed is not None:
            return self.placed.fmax_mhz
        return None if self.device.placer else CLOCK_MHZ

    def to_json(self) -> dict[str, object]:
        """The fit as plain JSON data."""
        used = self.device.used(self.needed)
        placement = None if self.placed is None else self.placed.to_json()
        if placement:
            # Of the whole device; "copies" leaves room.
            del placement["copies_that_fit"]
        return {
            "part": self.device.part,
            "engines": self.engines,
            "copies": self.copies,
            "limited_by": self.limit,
            "needed": {name: self.needed.get(name, 0) for name in self.device.capacity},
            "usable": {name: round(self.device.most(name), 2) for name in self.device.capacity},
            "capacity": dict(self.device.capacity),
            "used_by_one": {name: round(part, 4) for name, part in used.items()},
            "mhz": self.mhz,
            "unplaced": self.unplaced,
            "mhz_is": "placed" if self.placed is not None else "assumed" if self.mhz else "unknown",
            "placement": placement,
        }


def fit_devices(
    trimmed: TrimResult,
    devices: Sequence[Device],
    *,
    placements: int = 0,
    jobs: int | None = None,
    progress: Progress = silent,
) -> tuple[DeviceFit, ...]:
    """Count how often the trimmed design, an engine or a vault, fits each device.

    If the design is an engine, the logic around engines, such as a crossbar and the ports of a
    host, is not counted; :mod:`synth.physical.fit` counts it.

    Parameters:
        placements: seeds with which to place an engine on devices that nextpnr supports, if it is
            installed and the engine fits; 0: place nothing.
        jobs: tools at a time; None: one per processor.
        progress: called with each step.

    Raises:
        SynthesisError: Yosys refuses the design, or a placement fails.
    """
    design = trimmed.vault or trimmed.cut.trimmed
    step = naming(progress, "fit")
    areas: dict[str, Mapping[str, float]] = {}
    fits = []
    for device in devices:
        if device.target not in areas:
            step(f"synthesis for {device.target}")
            areas[device.target] = _area(design, device.target, jobs)
        needed, placed = areas[device.target], None
        reason = _unplaced(device, needed, placements)
        if not reason:
            engine = trimmed.cut.trimmed
            placed = place(engine, device.name, seeds=placements, jobs=jobs, progress=progress)
        fits.append(
            DeviceFit(
                device=device,
                engines_each=design.engines,
                needed=needed,
                placed=placed,
                unplaced=reason,
            )
        )
    return tuple(fits)


def _area(design: PeConfig | VaultTileConfig, target: str, jobs: int | None) -> Mapping[str, float]:
    """What one copy takes. A vault is too large for one netlist."""
    if isinstance(design, VaultTileConfig):
        return design_area(design, target).values
    flat = synthesise(design, target, (), jobs=jobs, flat=True).flat
    assert flat is not None
    return flat.values


def _unplaced(device: Device, needed: Mapping[str, float], placements: int) -> str:
    """The reason for not placing on a device; "" if there is none."""
    if not device.placer:
        return f"nextpnr does not place on {device.name}"
    if not placements:
        return "no placement was requested (--placements)"
    if device.shortage(needed):
        return f"the design does not fit {device.name}"
    try:
        need_nextpnr()
    except MissingExtraError as error:
        return str(error)
    return ""
