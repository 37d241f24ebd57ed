"""The commands and their parameters as the command line knows them, and how to call each."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import typer

from soc.board.boards import BOARDS
from soc.generate.presets import PRESETS
from synth.physical.devices import DEVICES, PLACED
from synth.physical.targets import TARGETS
from vip.cli.app import app
from vip.cli.file_arguments import FileArguments

#: Parameter that names a file to read -> its format, of one command or of all.
_READ = {
    "asm source": "assembly",
    "disasm program": "program",
    "run program": "assembly",
    "debug program": "assembly",
    "debug script": "debug script",
    "cosim program program": "assembly",
    "trim programs": "assembly",
    "fit programs": "assembly",
    "profile": "profile",
    "calibrate": "arrays",
    "inputs": "arrays",
    "power kernel": "assembly",
    "left_image": "picture",
    "right_image": "picture",
    "truth": "picture",
    "mask": "picture",
    "noisy": "picture",
    "mrf segment picture": "picture",
    "mrf flow first": "picture",
    "mrf graph file": "arrays",
    "mrf solve edges": "arrays",
    "layout beside": "configuration",
    "layout lef": "liberty",
    "mrf flow second": "picture",
    "seeds": "picture",
    "costs": "picture",
    "memory": "memory",
    "config": "configuration",
    "board load file": "memory",
    "report result": "configuration",
    "corner": "liberty",
    "nn check model": "onnx",
    "nn compile model": "onnx",
    "nn run folder": "compiled",
    "nn evaluate folder": "compiled",
    "sweep specification": "sweep",
    "browser pyodide": "memory",
}
_PICTURES = {"picture", "traffic", "energies", "diagram output"}
_FOLDERS = {
    "nn compile output",
    "generate output",
    "trim output",
    "demo output",
    "report output",
    "sweep output",
    "browser output",
    "layout route",
}

#: Parameters of every experiment.
_EXPERIMENT = {"more", "record", "stale", "json", "help"}
#: Experiment -> a part of it.
_PARTS = {
    "kernels": "fc8",
    "network": "4x4",
    "networks": "little",
    "vault": "open-page",
    "chip_variants": "open-page",
    "memory_variants": "open-page",
}
#: Parameter -> names that it knows; any other is bad.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "preset_name": tuple(PRESETS),
    "board": tuple(BOARDS),
    "tool": ("fusesoc", "litex", "tinytapeout", "vitis", "vivado"),
    "work": ("bp",),
    "port": ("/dev/ttyUSB0",),
    "unit": ("scalar",),
    "units": ("engine",),
    "synth target": (*TARGETS, "nangate45"),
    "target": ("nangate45",),
    "fit device": tuple(DEVICES),
    "trim device": tuple(DEVICES),
    "device": PLACED,
    "only": ("bp",),
    "why": ("halt",),
    "carry": ("y=x",),
    "outputs": ("y",),
    "shape": ("x=1x4",),
    "constant": ("0x0:8",),
    "range": ("0x0:8=0..1",),
    "what": ("bp",),
    "memories": ("fpga", "macro", "behavioural"),
    "define": ("SIZE=4",),
    "form": ("hex",),
    "smooth": ("potts",),
    "edges": ("gradient:8,2",),
    "cost": ("census",),
    "method": ("hbp",),
    "messages": ("shifts",),
    "nn run on": ("golden", "iss", "model", "rtl"),
    "on": ("rtl", "model"),
    "scheduler": ("tcp://127.0.0.1:1",),
    "more": ("generate",),
    **{f"bench {name} only": (known,) for name, known in _PARTS.items()},
    "model certify only": ("chip",),
    "diagram module": ("issue", "pe"),
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command.

    Attributes:
        name: of the function's argument. flag: as typed; "" for a positional one.
        kind: ``read``, ``write``, ``folder``, ``name``, ``int``, ``float``, ``switch``,
            ``address`` or ``dump``.
        detail: format of a file that is read; endings of one that is written.
        least, most: of a number; None: no end.
        known: names that are right.
    """

    name: str
    flag: str
    kind: str
    required: bool
    multiple: bool
    detail: str = ""
    least: float | None = None
    most: float | None = None
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """A command: what is typed for it, and its parameters."""

    words: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        """As the user knows it, without ``vip``."""
        return " ".join(self.words)


def _reads(found: Any) -> bool:
    """Whether the callback of a parameter is that of files to read."""
    declared = inspect.getclosurevars(inspect.unwrap(found.callback)).nonlocals
    return declared.get("declare") is FileArguments.reads


def _kind(words: str, found: Any) -> dict[str, Any]:
    """Kind and detail of a parameter."""
    name = found.name
    annotation = found.type_descriptor.annotation
    parts = {annotation, *get_args(annotation)}
    exact = f"{words} {name}"
    if getattr(found, "is_flag", False):
        return {"kind": "switch"}
    if name == "dump":
        return {"kind": "dump"}
    if name == "parameters":
        return {"kind": "address"}
    for kind in (int, float):
        if kind in parts:
            return {"kind": kind.__name__, "least": found.min, "most": found.max}
    if exact in _FOLDERS:
        return {"kind": "folder"}
    if exact in _READ or name in _READ:
        if exact == "run profile":
            return {"kind": "write"}
        return {"kind": "read", "detail": _READ.get(exact) or _READ[name]}
    if name == "trace":
        return {"kind": "write", "detail": ".fst .vcd .json"}
    if name in _PICTURES or exact in _PICTURES:
        return {"kind": "write", "detail": ".png .svg"}
    if Path in parts and not _reads(found):
        return {"kind": "write"}
    if exact in _NAMES or name in _NAMES:
        return {"kind": "name", "known": _NAMES.get(exact) or _NAMES[name]}
    raise AssertionError(f"vip {exact}: how to spoil this parameter is not said here")


def _parameters(words: str, command: Any) -> Iterator[Parameter]:
    for found in command.params:
        if found.name == "help":
            continue
        positional = found.param_type_name == "argument"
        yield Parameter(
            name=found.name,
            flag="" if positional else max(found.opts, key=len),
            required=found.required,
            multiple=bool(found.multiple) or found.nargs == -1,
            **_kind(words, found),
        )


def _walk(group: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in group.list_commands(None):
        found = group.load(name) if hasattr(group, "load") else group.commands[name]
        if hasattr(found, "list_commands"):
            yield from _walk(found, (*words, name))
        else:
            yield (*words, name), found


@cache
def commands() -> tuple[Command, ...]:
    """All commands.

    Raises:
        AssertionError: a parameter that is not of a kind which this generator can spoil.
    """
    found = []
    for words, command in _walk(typer.main.get_group(app), ()):
        # Of experiments without options of their own one stands for all.
        names = {parameter.name for parameter in command.params}
        alike = words[0] == "bench" and names <= _EXPERIMENT and words[1] != "generate"
        if command.params and not alike:
            found.append(Command(words, tuple(_parameters(" ".join(words), command))))
    return tuple(found)
