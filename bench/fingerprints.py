"""Fingerprints of what a benchmark measures: hardware, programs, data, recipes of synthesis, and
the code that computes a figure.

A fingerprint depends on content, not on the location of a file: comments, imports and names of
files do not count. So a record stays valid when files move, and is stale when the measured parts
change. Each fingerprint is 16 hexadecimal digits.
"""

import ast
import hashlib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import emit
from isa.program import Program
from pe.config import PeConfig
from sim_tb.dut.engine import configuration_verilog, engine_design
from sim_tb.runner.build import Design
from soc.generate.designs import Configuration
from synth.physical.targets import Target

__all__ = [
    "code",
    "component",
    "data",
    "engine",
    "hardware",
    "mapped",
    "mapping",
    "parts",
    "programs",
    "simulator",
    "texts",
]

#: Comments of Verilog, SystemVerilog and C++, attributes of Verilog that are for people, and
#: includes of C++.
_COMMENT = re.compile(
    r"//[^\n]*|/\*.*?\*/|\(\* (?:init|enum_\w+|src) = [^\n]*? \*\)|^#include[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_SUPPORT = Path(inspect.getfile(Design)).parent.parent / "models"


def data(*parts: bytes | str) -> str:
    """The fingerprint of ``parts`` in their order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()[:16]


def _bare(text: str) -> str:
    """Source in Verilog or C++ without comments and includes, and with single spaces."""
    return " ".join(_COMMENT.sub(" ", text).split())


def texts(*files: Path) -> str:
    """Fingerprint of ``files`` of Verilog or C++, in any order, without comments and includes."""
    return data(*sorted(_bare(file.read_text(encoding="utf-8")) for file in files))


def hardware(config: Configuration) -> str:
    """The Verilog that is emitted for ``config``."""
    return data(_bare(configuration_verilog(config)))


def component(part: Component) -> str:
    """The Verilog that is emitted for ``part``."""
    return data(_bare("".join(emit(part, "part").modules.values())))


def mapped(name: str, config: PeConfig) -> dict[str, str]:
    """The Verilog of an engine as synthesis takes it, with its memories as macros and for FPGAs."""
    kinds: dict[str, SramKind] = {"memory macros": "macro", "memories for FPGAs": "fpga"}
    return {
        f"Verilog of {name} with {kind}": hardware(replace(config, sram=sram))
        for kind, sram in kinds.items()
    }


def simulator(name: str, design: Design) -> dict[str, str]:
    """The Verilog in the simulator of ``name``, and the models around it that determine the
    behaviour in each cycle, without the code that starts, connects and reads them."""
    models = [(_SUPPORT / file).read_text(encoding="utf-8") for file in design.behaviour]
    return {
        f"Verilog of {name}": data(*map(_bare, design.verilog.values())),
        f"models around {name}": data(*sorted(map(_bare, models))),
    }


def engine(name: str, config: PeConfig) -> dict[str, str]:
    """:func:`simulator` of an engine alone."""
    return simulator(name, engine_design(config, configuration_verilog(config)))


def programs(found: Iterable[Program]) -> str:
    """The words of programs."""
    return data(*(repr(tuple(program.words)) for program in found))


def mapping(target: Target) -> str:
    """The mapping of a target: commands, libraries, counted cells."""
    counted = repr(sorted((name, sorted(types.items())) for name, types in target.types.items()))
    files: Mapping[str, str] = target.files
    texts = [text for _, text in sorted(files.items())]
    return data(*target.commands, *texts, counted, target.sram, repr(sorted(target.free)))


def code(*modules: ModuleType) -> str:
    """Fingerprint of the Python of ``modules``: their definitions, in any order and without
    imports, docstrings and comments."""
    found = []
    for module in modules:
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node) or _is_all(node):
                continue
            found.append(ast.dump(_without_docstrings(node)))
    return data(*sorted(found))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
    )


def _without_docstrings(node: ast.stmt) -> ast.stmt:
    for part in ast.walk(node):
        if isinstance(part, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            part.body = [line for line in part.body if not _is_text(line)] or [ast.Pass()]
    return node


def parts(package: ModuleType) -> list[ModuleType]:
    """All modules of a package, those of packages within it too."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [importlib.import_module(module.name) for module in found]
