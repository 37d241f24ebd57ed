"""``python -m tests.wheel``: the wheel of a clone, in an empty environment beside the wheel of
Hugging Face's ``kernels``.

The commands of docs/commands.md run from an empty folder, at small sizes; with a ``memory.py`` in
the folder the error names it. Downloads what VIP needs (some 300 MB) and takes some minutes, so
that it is no test of ``make test``.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
#: Another project's wheel that has, as VIP once had, a package ``kernels``.
_OTHER = "kernels"
_PROGRAM = "mov r1, #42\nst.reg [64-bit] r5, r1\nhalt\n"
#: Arguments of ``vip``, in an order in which each finds its inputs.
_COMMANDS = (
    "--version",
    "asm kernel.s -o kernel.vip --listing kernel.lst",
    "disasm kernel.vip -o again.s",
    "run kernel.vip --memory image.bin",
    "presets",
    "generate --preset thesis -o build/thesis",
    "cosim program kernel.vip --preset pe-small --memory image.bin",
    "cosim bp --width 8 --height 6 --labels 4 --iterations 1 --picture depth.png",
    "synth decode --preset pe-small --target xc7 --json area.json",
    "timing --preset pe-small",
    "power kernel.vip --preset pe-small --json power.json",
    "trim kernel.vip --preset pe-small -o build/trimmed --json trim.json",
    "generate --config build/trimmed/vip.json -o build/again",
    "browser -o build/browser",
)
#: A script of a user, with the package of the other wheel beside VIP's.
_SCRIPT = f"""
import {_OTHER}, microkernels, vip
assert "microkernels" in microkernels.__file__ and not hasattr({_OTHER}, "suite")
print(vip.run(vip.assemble("mov r9, #42\\nhalt")).registers[9])
"""
_HIDDEN = "memory.py hides VIP's package 'memory': rename it, or start from another folder"


def _call(command: Sequence[object], folder: Path, code: int = 0) -> str:
    """Output of a command.

    Raises:
        SystemExit: it ends with another exit code than ``code``.
    """
    words = [str(word) for word in command]
    print("  ", *words[1:], flush=True)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def try_commands(python: Path, empty: Path) -> None:
    """Call the commands of the environment of ``python`` in the folder ``empty``.

    Raises:
        SystemExit: one fails; the message says which and how.
    """
    (empty / "kernel.s").write_text(_PROGRAM)
    (empty / "image.bin").write_bytes(bytes(64))
    vip = python.with_name("vip")
    for arguments in _COMMANDS:
        _call([vip, *arguments.split()], empty)
    said = _call([python, "-c", _SCRIPT], empty)
    assert said == "42\n", said
    (empty / "memory.py").write_text("")
    for command, code in (("-m vip run kernel.vip", 2), ("-c", 1)):
        script = [_SCRIPT] if command == "-c" else []
        said = _call([python, *command.split(), *script], empty, code)
        assert said.endswith(f"{_HIDDEN}\n"), said
    # The command finds its own packages first.
    _call([vip, "run", "kernel.vip"], empty)


def main() -> None:
    """Build the wheel, install it, and try its commands.

    Raises:
        SystemExit: something fails; the message says what.
    """
    with TemporaryDirectory(prefix="vip-wheel-") as name:
        top = Path(name)
        _call(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", "clone"], top)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        _call([*pip, "wheel", "-q", "--no-deps", "-w", "dist", "./clone"], top)
        (wheel,) = (top / "dist").glob("*.whl")
        _call([sys.executable, "-m", "venv", "env"], top)
        python = top / "env" / "bin" / "python"
        extras = f"{wheel}[asic,browser,pictures,plot,sim,synth]"
        _call([python, "-m", "pip", "install", "-q", extras, _OTHER], top)
        empty = top / "empty"
        empty.mkdir()
        try_commands(python, empty)


if __name__ == "__main__":
    main()
