"""The libraries of the timing models, compiled on first use."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hdl.ports import COLUMN_BYTES, COLUMN_WORDS
from isa.compiled.library import SOURCES, headers
from isa.launch import START_FX, START_MR, START_VL
from isa.limits import RANGE_BYTES
from isa.table import MAX_FX
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from pe.interface import HistoryCounter, PeCounter
from pe.lsu.declaration import DECLARATION_CYCLES
from pe.scratchpad_shared import PATIENCE
from sim_tb.harness.models import Model
from support.native import compile_library
from support.schema import declarations

from .engine.engine_state import CONTROL, EXTENTS, UNITS, EngineResult, Sizes, TimedWord

_HERE = Path(__file__).parent
_MODELS = _HERE.parent / "models"
_FLAGS = (
    *("-std=c++20", "-O3", "-fno-semantic-interposition", "-Wall", "-Wextra"),
    # Copying a structure by vector instructions would stall until its members are written.
    "-fno-tree-slp-vectorize",
)


def sources() -> list[Path]:
    """The C++ files of the timing models."""
    return sorted(path for path in _HERE.rglob("*") if path.suffix in (".cpp", ".h"))


def compile_model(
    source: str,
    models: Sequence[Model] = (),
    *,
    includes: Sequence[Path] = (),
    compiled: bool = True,
    generated: Mapping[str, str] | None = None,
    functions: Mapping[str, tuple[Any, ...]],
) -> ctypes.CDLL:
    """The library of a timing model, compiled on first use in under half a minute.

    Parameters:
        source: its file, relative to this folder. models: of the harness that are part of it.
        includes: files of other rooms that it includes. generated: its own headers.
        compiled: whether their C++ is compiled beside ``source``, which otherwise includes it.
        functions: name -> types of the result and the arguments.

    Raises:
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    timing = sources()
    parts = [_MODELS / name for model in models for name in model.sources]
    library = compile_library(
        f"timing-{Path(source).stem}",
        _HERE / source,
        _FLAGS,
        others=[path for path in parts if compiled and path.suffix == ".cpp"],
        headers=(*timing, *parts, *SOURCES, *includes),
        exports="vip_*",
        generated={
            **headers(),
            "timed.inc": _constants(),
            **{f"vip_{model.name}.h": model.header for model in models},
            **(generated or {}),
        },
    )
    for name, (result, *arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _constants() -> str:
    """``timed.inc``: numbers of counters, units, control instructions and extents, times, and the
    structures of words and engines."""
    counters = (*PeCounter, *HistoryCounter)
    values = {_camel(item.name): item.value for item in counters}
    values |= {_camel(unit.name): number for unit, number in UNITS.items()}
    values |= {f"Extent{_camel(item.name)}": number for item, number in EXTENTS.items()}
    values |= {_camel(item.name): number for number, item in enumerate(CONTROL, start=1)}
    values |= {
        "Counters": len(PeCounter),
        "HistoryCounters": len(HistoryCounter),
        "NoExtent": 0,
        "RangeBytes": RANGE_BYTES,
        "WordBytes": WORD_BYTES,
        "ColumnWords": COLUMN_WORDS,
        "ColumnBytes": COLUMN_BYTES,
        "VectorLatency": VECTOR_LATENCY,
        "Patience": PATIENCE,
        "MostFx": MAX_FX,
        "StartVl": START_VL,
        "StartMr": START_MR,
        "StartFx": START_FX,
        "DeclarationCycles": DECLARATION_CYCLES,
    }
    return declared(values, declarations(TimedWord, Sizes, EngineResult))


def declared(values: Mapping[str, int], *blocks: str) -> str:
    """A header: each of ``values`` as a constant (``Name`` as ``kName``), then lines of C++."""
    lines = [f"constexpr uint32_t k{name} = {value};" for name, value in values.items()]
    head = ["#pragma once", "#include <cstdint>", "namespace vip::timed {"]
    return "\n".join([*head, *lines, *blocks, "}", ""])


def _camel(name: str) -> str:
    return name.title().replace("_", "")
