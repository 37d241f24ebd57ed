"""``vip presets``: the named configurations."""

from typing import Annotated

import typer
from rich.table import Table

import vip
from synth.physical.devices import DEVICES, FILL
from vip.cli.console import console, shown, table
from vip.output import write_json
from vip.preset_list import PresetRow

from .options import JsonOption

__all__ = ["presets"]

_UNITS = ("B", "KiB", "MiB", "GiB")


def _size(count: int) -> str:
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count, unit = count // 1024, unit + 1
    return f"{count} {_UNITS[unit]}"


def _machine(row: PresetRow) -> str:
    engines = f"{row.engines} engines"
    return {"chip": f"{row.vaults} vaults, {engines}", "vault": engines}.get(row.kind, row.kind)


def _cells(row: PresetRow) -> tuple[str, ...]:
    if row.areas is None:
        return "?", "?", "?"
    return (
        f"{row.areas['generic']['logic_ge'] / 1000:,.1f}",
        f"{row.areas['xc7']['luts']:,.0f}",
        f"{row.areas['ecp5']['luts']:,.0f}",
    )


def _fits(row: PresetRow) -> str:
    """The devices that a preset fits or, if fewer, those that it doesn't."""
    if row.fits is None:
        return "?"
    lacking = [name for name in DEVICES if name not in row.fits]
    if len(lacking) < len(row.fits):
        return f"all but {', '.join(lacking)}" if lacking else "all"
    return ", ".join(row.fits) or "none"


def _table(*heads: str) -> Table:
    text = ("preset", "machine", "ports", "fits", "device", "data sheet")
    return table(*heads, left=text)


def presets(
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="Synthesise whatever isn't cached instead of using recorded results."
        ),
    ] = False,
    json: JsonOption = None,
) -> None:
    """List the presets with engines, ports, memory, area and the FPGAs they fit.

    Areas come from the record of vip bench presets; "?" means that none is recorded. With
    --measure, Yosys measures them, which takes minutes per configuration unless its parts are
    cached.

    Example: vip presets
    """
    with shown() as progress:
        listed = vip.presets(measure=measure, progress=progress)
    sizes = _table("preset", "machine", "memory", "kGE", "LUTs xc7", "LUTs ecp5")
    uses = _table("preset", "ports", "fits")
    for row in listed.rows:
        sizes.add_row(row.name, _machine(row), _size(row.memory_bytes), *_cells(row))
        uses.add_row(row.name, row.ports, _fits(row))
    devices = _table("device", "LUTs", "flip-flops", "DSPs", "block RAMs", "data sheet")
    for device in DEVICES.values():
        luts, ffs, dsps, brams = (f"{number:,}" for number in device.capacity.values())
        memories = f"{brams} of {device.bram_kbit} Kbit"
        devices.add_row(device.name, luts, ffs, dsps, memories, device.source)
    console.print(sizes)
    console.print(uses)
    console.print(devices)
    origin = f"areas: {listed.origin}, each unit mapped alone; kGE without memories"
    console.print(origin, soft_wrap=True)
    parts = ", ".join(f"{share:.0%} of {name}" for name, share in FILL.items())
    console.print(f"fits: uses at most {parts} of the device", soft_wrap=True)
    console.print("other sizes: vip generate --config FILE, an edited vip.json of vip generate")
    write_json(json, listed.to_json())
