"""The verb ``presets``: their engines, ports, memory, area, and the devices that they fit.

Areas are measured: ``vip bench presets --record`` records those of all presets in
``bench/results/presets.json``, which :func:`presets` reads.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memory.axi.layout import AxiConfig
from memory.on_chip import OnChipConfig
from soc.chip.config import ChipConfig
from soc.generate.designs import Configuration
from soc.generate.presets import PRESETS
from soc.tile.config import VaultTileConfig
from support.errors import Shown, counted
from synth.physical.devices import DEVICES

#: Target -> measures that are recorded for each preset.
MEASURED: Mapping[str, Sequence[str]] = {
    "generic": ("logic_ge", "sram_bits"),
    "xc7": ("luts", "ffs", "dsps", "brams"),
    "ecp5": ("luts", "ffs", "dsps", "brams"),
}
#: Target -> measure -> value.
Areas = Mapping[str, Mapping[str, float]]
_UNITS = ("B", "KiB", "MiB", "GiB")
_RECORD = Path(__file__).parent.parent / "bench" / "results" / "presets.json"


@dataclass(frozen=True, kw_only=True)
class PresetList(Shown):
    """All presets.

    Attributes:
        areas: as measured, of those whose areas are known. origin: of these, in words.
    """

    areas: Mapping[str, Areas]
    origin: str

    def fits(self, name: str) -> tuple[str, ...] | None:
        """Those of :data:`synth.physical.devices.DEVICES` that a preset fits, within their usable
        parts; None: its areas are unknown."""
        areas = self.areas.get(name)
        if areas is None:
            return None
        return tuple(device for device, one in DEVICES.items() if one.fits(areas[one.target]))

    def fitting(self, device: str) -> list[str]:
        """The presets that fit a device."""
        return [name for name in self.areas if device in (self.fits(name) or ())]

    def cells(self, name: str) -> dict[str, str | float]:
        """Column -> cell of a table of presets; "?": unknown."""
        config = PRESETS[name]
        engines = counted(config.engines, "engine")
        areas = self.areas.get(name, {})
        return {
            "machine": {
                "engine": "engine",
                "vault": engines,
                "chip": f"{counted(config.vaults, 'vault')}, {engines}",
            }[config.kind],
            "memory": _size(config.memory_bytes),
            "kGE": round(areas["generic"]["logic_ge"] / 1000, 1) if areas else "?",
            "LUTs xc7": round(areas["xc7"]["luts"]) if areas else "?",
            "LUTs ecp5": round(areas["ecp5"]["luts"]) if areas else "?",
            "ports": _ports(config),
            "fits": self._devices(name),
        }

    def _devices(self, name: str) -> str:
        """The devices that a preset fits or, if fewer, those that it doesn't."""
        fits = self.fits(name)
        if fits is None:
            return "?"
        lacking = [device for device in DEVICES if device not in fits]
        if len(lacking) < len(fits):
            return f"all but {', '.join(lacking)}" if lacking else "all"
        return ", ".join(fits) or "none"

    def to_json(self) -> dict[str, object]:
        """The list as plain JSON data."""
        presets = {
            name: {
                "kind": config.kind,
                "engines": config.engines,
                "vaults": 0 if config.kind == "engine" else config.vaults,
                "ports": _ports(config),
                "memory_bytes": config.memory_bytes,
                "areas": self.areas.get(name),
                "fits": self.fits(name),
            }
            for name, config in PRESETS.items()
        }
        devices = {
            name: {"part": one.part, **one.capacity, "source": one.source}
            for name, one in DEVICES.items()
        }
        return {"areas": self.origin, "presets": presets, "devices": devices}

    def _facts(self) -> Mapping[str, object]:
        return {**self.to_json(), "presets": {name: self.cells(name) for name in PRESETS}}


def figure_name(preset: str, target: str, measure: str) -> str:
    """Name of a figure in the record."""
    return f"{preset}_{target}_{measure}".replace("-", "_")


def presets(record: Path = _RECORD) -> PresetList:
    """All presets, with areas where the record is complete.

    ``presets().fitting("xc7a100t")`` are those that fit the device.

    Parameters:
        record: file of ``vip bench presets --record``; without one, or if it is incomplete, areas
            are unknown.

    Raises:
        AttributeError: the figures in the file are of another form.
    """
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        results = {name: figure["value"] for name, figure in content["results"].items()}
        commit = str(content["provenance"]["commit"])
    except (OSError, ValueError, KeyError, TypeError):
        return PresetList(areas={}, origin="no record; vip bench presets measures them")
    areas: dict[str, Areas] = {}
    for preset in PRESETS:
        with suppress(KeyError):
            areas[preset] = {
                target: {name: results[figure_name(preset, target, name)] for name in measures}
                for target, measures in MEASURED.items()
            }
    return PresetList(areas=areas, origin=f"recorded at commit {commit[:12]}")


def _size(count: int) -> str:
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count, unit = count // 1024, unit + 1
    return f"{count} {_UNITS[unit]}"


def _ports(config: Configuration) -> str:
    if isinstance(config, ChipConfig):
        host = {
            "axi": "AXI4-Lite control, AXI4 data",
            "serial": "bytes",
            "none": "AXI4-Lite control",
        }
        return f"{host[config.host_data]}, {config.vaults} {_back_end(config.tile)}"
    if isinstance(config, VaultTileConfig):
        return f"{config.pes} control, {config.extra_ports} memory, {_back_end(config)}"
    return "memory, control"


def _back_end(tile: VaultTileConfig) -> str:
    if isinstance(tile.vault, AxiConfig):
        return f"AXI4 ({tile.vault.data_bits} bit)"
    return "on-chip memory" if isinstance(tile.vault, OnChipConfig) else "DRAM"
