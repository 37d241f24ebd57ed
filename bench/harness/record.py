"""Reads and writes the records of measurements in ``bench/results``, and checks the checkout.

A record is a JSON file with the figures, the commit of the clean checkout, the command, the
machine, the configurations, the versions of the tools, and fingerprints of what was measured
(:mod:`bench.harness.sources`), which later show whether it has changed.
"""

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from support.files import write_atomically

from .experiment import BenchError, Measurement

#: The checkout's top folder.
ROOT = Path(__file__).parents[2]
#: Files that recording changes: the records, and files rendered from them.
_WRITTEN = ("bench/results", "docs", "README.md")
#: Folder of the records.
RESULTS = ROOT / "bench" / "results"
#: Record of a removed experiment -> the last commit that has the experiment.
ARCHIVED = {
    "ablation": "dd39af39868188aa75def0ea8a767476fefb0f5f",
    "agents": "118c5bbc3f67d24550b5146fa884f6883205f444",
    **dict.fromkeys(
        (
            *("buffered_kernels", "byte_convolution", "column_reuse", "functional"),
            *("network_reuse", "preload", "vector_units", "workspace"),
        ),
        "3cd5b0ebb1807318bb24fb0762b73a05319d358f",
    ),
}
#: Current format of records; records of another format, or without one, count as stale.
FORMAT = 3
#: Fields of a record's provenance that :class:`Record` has.
_PROVENANCE = ("command", "commit", "machine", "tools")


@dataclass(frozen=True)
class Record:
    """A record.

    Attributes:
        results: figure -> ``value``, ``unit``, and ``before``, the value that it replaced.
        format: of the file; 1 if the file names none, 0 if there is no file.
        commit: 40 hexadecimal digits; "" in older formats.
        command: the command that made it.
        measured: room -> fingerprint of its part of the experiment.
        tools: package -> version.
        machine: that measured.
    """

    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    format: int = 0
    commit: str = ""
    command: str = ""
    measured: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""

    @property
    def unusable(self) -> str:
        """Why it can't be compared with a measurement; "" if it can."""
        if self.format == FORMAT:
            return ""
        return "recorded in an older format" if self.format else "no record"

    def stale(self, measured: Mapping[str, str], tools: Mapping[str, str]) -> Iterator[str]:
        """The changes since the record, one line each.

        Parameters:
            measured: current fingerprints. tools: current versions.
        """
        if not measured.keys() & self.measured.keys():
            yield f"{self.commit[:12]} has fingerprints of another kind"
            return
        for room, digest in measured.items():
            if room not in self.measured:
                yield f"{room} is not in the record of {self.commit[:12]}"
            elif self.measured[room] != digest:
                yield f"{room} changed since {self.commit[:12]}"
        for room in self.measured:
            if room not in measured:
                yield f"{room} is no longer imported"
        for tool, current in tools.items():
            if self.tools.get(tool) != current:
                yield f"{tool} is {current}, was {self.tools.get(tool, 'missing')}"


def tool_versions(tools: Sequence[str]) -> dict[str, str]:
    """Package -> version, or ``none`` if it is not installed."""
    versions = {}
    for tool in tools:
        try:
            versions[tool] = version(tool)
        except PackageNotFoundError:
            versions[tool] = "none"
    return versions


def read_record(name: str, folder: Path = RESULTS) -> Record:
    """The record of the benchmark ``name``; an empty one if there is no such file.

    Raises:
        BenchError: the file is not a record.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        return Record()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("format") != FORMAT:
            return Record(content.get("results", {}), format=1)
        fields = {name: content[name] for name in ("results", "format", "measured")}
        origin = content["provenance"]
        return Record(**fields, **{name: origin[name] for name in _PROVENANCE})
    except (ValueError, KeyError, AttributeError):
        raise BenchError(f"{path}: not a record of measurements") from None


def values(name: str, folder: Path = RESULTS) -> dict[str, float]:
    """Figure -> value in the record ``name``; raises the errors of :func:`read_record`."""
    return {
        figure: entry["value"]
        for figure, entry in read_record(name, folder).results.items()
        if "value" in entry
    }


def write_record(
    name: str,
    results: Sequence[Measurement],
    *,
    commit: str,
    measured: Mapping[str, str],
    tools: Mapping[str, str],
    configurations: Mapping[str, Any],
    cpu_seconds: float,
    folder: Path = RESULTS,
) -> None:
    """Replace the record ``name``; a changed figure keeps its old value beside the new one.

    Parameters:
        commit: the measured commit (:func:`clean_commit`).
        measured, tools: see :class:`Record`. configurations: name -> plain data.
        cpu_seconds: processor time of the measurement.

    Raises:
        OSError: it can't be written.
    """
    recorded = read_record(name, folder)
    entries: dict[str, dict[str, Any]] = {}
    for item in results:
        entries[item.name] = {"value": item.value, "unit": item.unit}
        old = recorded.results.get(item.name, {})
        before = old.get("value") if old.get("value") != item.value else old.get("before")
        if before is not None:
            entries[item.name]["before"] = before
    report = {
        "format": FORMAT,
        "provenance": {
            "command": f"vip bench {name} --record",
            "commit": commit,
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, "
            f"Python {platform.python_version()}",
            "cpu_seconds": round(cpu_seconds),
            "tools": dict(tools),
        },
        "measured": dict(measured),
        "results": entries,
        "configurations": dict(configurations),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{name}.json", json.dumps(report, indent=2).encode() + b"\n")


def _git(*arguments: str, root: Path) -> str:
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise BenchError("recording needs git, to name the measured commit") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().splitlines()[:1]
        raise BenchError(f"{root}: no commit to record: {''.join(reason)}") from None
    return done.stdout


def clean_commit(root: Path = ROOT) -> str:
    """The commit that is checked out in ``root``, as 40 hexadecimal digits.

    Raises:
        BenchError: git or a checkout is missing, or files differ from the commit or are untracked.
            Records, ``README.md`` and ``docs`` may differ: no measurement reads them.
    """
    top = Path(_git("rev-parse", "--show-toplevel", root=root).strip())
    if top.resolve() != root.resolve():
        raise BenchError(f"{root}: recording needs a checkout of VIP; this is part of {top}")
    paths = [".", *(f":(exclude){path}" for path in _WRITTEN)]
    changed = _git("status", "--porcelain", "--untracked-files=all", "--", *paths, root=root)
    if lines := changed.splitlines():
        rest = f" and {len(lines) - 1} more differ" if len(lines) > 1 else " differs"
        raise BenchError(f"recording needs a clean checkout; {lines[0][3:]}{rest} from the commit")
    return _git("rev-parse", "HEAD", root=root).strip()
