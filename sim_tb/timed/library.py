"""The libraries of the timing models, compiled at their first use."""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isa.compiled.library import SOURCES, headers
from sim_tb.harness.models import Model
from support.native import compile_library

from .engine.engine_state import EngineResult, Sizes
from .words import TimedWord, constants

__all__ = ["compile_model", "sources"]

_HERE = Path(__file__).parent
_MODELS = _HERE.parent / "models"
_FLAGS = (
    *("-std=c++20", "-O3", "-fno-semantic-interposition", "-Wall", "-Wextra"),
    # A structure that is copied as a vector waits until its members have been written.
    "-fno-tree-slp-vectorize",
)


def sources() -> list[Path]:
    """The files in C++ of the timing models."""
    return sorted(path for path in _HERE.rglob("*") if path.suffix in (".cpp", ".h"))


def compile_model(
    source: str,
    models: Sequence[Model] = (),
    *,
    includes: Sequence[Path] = (),
    compiled: Sequence[str] = (),
    generated: Mapping[str, str] | None = None,
    functions: Mapping[str, tuple[Any, ...]],
) -> ctypes.CDLL:
    """The library of a timing model, compiled at its first use: under half a minute.

    Parameters:
        source: its file, by its path from this folder. models: of the harness that are part of it.
        includes: files of other rooms that it includes. generated: headers of its own.
        compiled: files of the harness's models that are compiled with it.
        functions: each by name, with the types of its result and of its arguments.

    Raises:
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    timing = sources()
    parts = [_MODELS / name for model in models for name in model.sources + model.behaviour]
    library = compile_library(
        f"timing-{Path(source).stem}",
        _HERE / source,
        _FLAGS,
        others=[_MODELS / name for name in compiled],
        headers=(*timing, *parts, *SOURCES, *includes),
        exports="vip_*",
        generated={
            **headers(),
            "timed.inc": constants(TimedWord, Sizes, EngineResult),
            **{f"vip_{model.name}.h": model.header for model in models},
            **(generated or {}),
        },
    )
    for name, (result, *arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
