"""``vip presets``: the named configurations."""

from rich.table import Table

import vip
from soc.generate.presets import PRESETS
from synth.physical.devices import DEVICES, FILL
from vip.cli.console import console, table
from vip.cli.groups import Answer


def _text(cell: str | float) -> str:
    return cell if isinstance(cell, str) else f"{cell:,}"


def _table(*heads: str) -> Table:
    text = ("preset", "machine", "ports", "fits", "device", "data sheet")
    return table(*heads, left=text)


def presets() -> Answer:
    """List the presets with engines, ports, memory, area and the FPGAs they fit.

    Areas come from the record of vip bench presets; "?" means that none is recorded.

    Example: vip presets
    """
    listed = vip.presets()
    for heads in (("machine", "memory", "kGE", "LUTs xc7", "LUTs ecp5"), ("ports", "fits")):
        rows = _table("preset", *heads)
        for name in PRESETS:
            cells = listed.cells(name)
            rows.add_row(name, *(_text(cells[head]) for head in heads))
        console.print(rows)
    devices = _table("device", "LUTs", "flip-flops", "DSPs", "block RAMs", "data sheet")
    for device in DEVICES.values():
        luts, ffs, dsps, brams = (f"{number:,}" for number in device.capacity.values())
        memories = f"{brams} of {device.bram_kbit} Kbit"
        devices.add_row(device.name, luts, ffs, dsps, memories, device.source)
    console.print(devices)
    origin = f"areas: {listed.origin}, each unit mapped alone; kGE without memories"
    console.print(origin, soft_wrap=True)
    parts = ", ".join(f"{share:.0%} of {name}" for name, share in FILL.items())
    console.print(f"fits: uses at most {parts} of the device", soft_wrap=True)
    console.print("other sizes: vip generate --config FILE, an edited vip.json of vip generate")
    return Answer(listed.to_json())
