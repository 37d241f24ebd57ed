"""Errors about arguments, and their messages."""

import re
from collections.abc import Sequence
from typing import cast

import typer

from support.errors import VipError, clipped, printable, suggestion

#: Typer's base of errors in arguments, which it does not export.
UsageError = cast(type[Exception], typer.BadParameter.__base__)

_OWN_PHOTOGRAPHS = "vip mrf stereo LEFT RIGHT"
#: Command, or "" for all others -> former option -> what to write instead.
RENAMED: dict[str, dict[str, str]] = {
    "": {
        "--figure": "--picture",
        "--image": "--picture",
        "--max-cycles": "--limit",
        "--pes": "--engines",
        "--seeds": "--placements",
    },
    "bench networks": {"--network": "--only"},
    "cosim bp": {
        **dict.fromkeys(("--bandwidth-picture", "--plot"), "--traffic"),
        **dict.fromkeys(("--left", "--right", "--disparities"), _OWN_PHOTOGRAPHS),
    },
    "model certify": {"--kind": "--only"},
    **{
        f"mrf {name}": {"--plot": "--energies, which draws into .png and .svg"}
        for name in ("stereo", "denoise", "segment", "flow", "solve")
    },
    "nn evaluate": {"--data": "--input"},
    "trim": {"--fit": "--device"},
}
#: Group, or "" for all commands -> file name extension -> the command that takes it.
_FOR_FILES: dict[str, dict[str, str]] = {
    "": {
        ".s": "run {}",
        ".vip": "run {}",
        ".onnx": "nn check {}",
        ".json": "report {}",
        ".toml": "sweep {}",
    },
    "cosim": {".s": "cosim program {}", ".vip": "cosim program {}"},
    "mrf": dict.fromkeys((".png", ".jpg", ".ppm"), "mrf stereo {} RIGHT")
    | {".npy": "mrf solve {}"},
    "nn": {".onnx": "nn check {}"},
}

#: What other programs call a command -> what VIP calls it.
_CALLED = {
    "assemble": "asm",
    "build": "generate",
    "compile": "nn compile",
    "help": "--help",
    "sim": "run or vip cosim",
    "simulate": "run or vip cosim",
    "stereo": "mrf stereo",
    "verilog": "generate",
    "version": "--version",
}
#: Options of several values, which the library says without the command -> how they are written.
_SEVERAL = {"--dump": "--dump ADDRESS BYTES FILE"}
#: The library's description of a value -> the same in fewer words.
_SHORTER = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "not a whole number",
    "Input should be a valid number, unable to parse string as a number": "not a number",
    "Input should be greater than or equal to": "must be at least",
    "Input should be less than or equal to": "must be at most",
    "Got unexpected extra argument(s)": "too many arguments:",
}


class UserError(VipError):
    """Arguments that can't be used or combined; one line."""


def words(context: typer.Context) -> str:
    """The words of the command of ``context``, without ``vip``."""
    names: list[str] = []
    while context.parent is not None:
        names.insert(0, str(context.info_name))
        context = context.parent  # type: ignore[assignment]
    return " ".join(names)


def no_command(group: str, name: str, commands: Sequence[str]) -> str:
    """The message about ``name``, which is not among the ``commands`` of ``group``."""
    for ending, command in _FOR_FILES.get(group, {}).items():
        if name.endswith(ending):
            return f"{name} is not a command; did you mean vip {command.format(name)}?"
    shown = repr(clipped(name, 40))
    if not group and name in _CALLED:
        return f"there is no command {shown}; did you mean vip {_CALLED[name]}?"
    hint = suggestion(name, commands) or f"; there are: {', '.join(commands)}"
    return f"{group}: there is no command {shown}{hint}".removeprefix(": ")


def usage_message(error: Exception) -> str:
    """One line about a :data:`UsageError`: the command, the mistake and the remedy."""
    context = getattr(error, "ctx", None)
    if context is None:
        values = _SEVERAL.get(getattr(error, "option_name", ""))
        return f"write {values}" if values else str(error)
    command = words(context)
    named = f"{command}: " if command else ""
    option = getattr(error, "option_name", "")
    see = " ".join(filter(None, ("see vip", command, "--help")))
    options = {name for one in context.command.params for name in (*one.opts, *one.secondary_opts)}
    general = {old: new for old, new in RENAMED[""].items() if new in options}
    renamed = general | RENAMED.get(command, {})
    if option in renamed and option not in options:
        return f"{named}{option} is now {renamed[option]}"
    if option and option not in options:
        near = suggestion(option, options) or f"; {see}"
        return printable(f"{named}there is no option {option}{near}")
    text = " ".join(error.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
    for wordy, short in _SHORTER.items():
        text = text.replace(wordy, short)
    if extra := re.fullmatch(r"too many arguments: \((.*)\)", text):
        if extra[1].endswith(".bin") and "--memory" in options:
            see = f"did you mean --memory {extra[1]}?"
        text = f"too many arguments: {extra[1]}"
    return printable(f"{named}{text[:1].lower()}{text[1:]}; {see}")
