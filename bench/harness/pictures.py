"""``python -m bench.harness.pictures``: draws the pictures of README and the guides as PNG and SVG.

Each comes from a ``vip`` command that a user can run, once per file format; cached results are not
measured twice.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from support.command import run_command
from support.errors import unknown
from support.files import write_atomically
from support.picture import SUFFIXES
from vip.cli.console import console

from .experiment import BenchError
from .record import ROOT

_IMAGES = ROOT / "docs" / "images"
#: Placeholders in a command: the file to write, and the configuration of an engine trimmed to bp.
FILE, TRIMMED = "{file}", "{trimmed}"
#: Picture -> arguments of ``vip``.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    **{
        name: ("bench", name, "--picture", FILE)
        for name in (
            *(
                "block_alignment",
                "bp_energies",
                "instruction_types",
                "memory_variants",
                "mrf_energies",
                "scaling",
            ),
            *("chip_variants", "stereo"),
        )
    },
    "motorcycle": (
        *("cosim", "bp", "--width", "96", "--height", "64", "--labels", "16"),
        *("--iterations", "5", "--latency", "60", "--picture", FILE),
    ),
    "vault_bandwidth": (
        *("cosim", "bp", "--preset", "vault", "--iterations", "1", "--traffic", FILE),
    ),
    "roofline": ("bench", "kernels", "--on", "model", "--picture", FILE),
    "whole_networks": ("bench", "networks", "--only", "vgg16", "--picture", FILE),
    "trimming": ("bench", "trim", "--picture", FILE),
    "layouts": ("layout", "--wire-ff", "0.105", "--beside", TRIMMED, "--picture", FILE),
    "engine_units": ("diagram", "-o", FILE),
    "tile_units": ("diagram", "--preset", "tiny", "--module", "chip_tile", "-o", FILE),
    "chip_units": ("diagram", "--preset", "tiny", "-o", FILE),
    "network": (
        *("bench", "network", "--flits", "1000000", "--only", "4x4", "--only", "8x4"),
        *("--picture", FILE),
    ),
}
#: Picture -> its name in ``vip report``, which writes both formats at once.
REPORTED: Mapping[str, str] = {"engine_area": "area", "engine_power": "power"}


def draw(name: str, folder: Path = _IMAGES) -> None:
    """Draw a picture of :data:`COMMANDS` or :data:`REPORTED` into ``folder``.

    Raises:
        BenchError: the command failed; its message is on standard error.
    """
    if name in REPORTED:
        with TemporaryDirectory() as page:
            _run(name, ("report", "-o", page))
            for suffix in SUFFIXES:
                content = (Path(page) / f"{REPORTED[name]}{suffix}").read_bytes()
                write_atomically(folder / f"{name}{suffix}", content)
        return
    with TemporaryDirectory() as scratch:
        trimmed = Path(scratch) / "bp"
        if TRIMMED in COMMANDS[name]:
            _run(name, ("trim", "bp", "-o", str(trimmed), "--no-check", "--no-area"))
        for suffix in SUFFIXES:
            paths = {FILE: str(folder / f"{name}{suffix}"), TRIMMED: str(trimmed / "vip.json")}
            _run(name, tuple(paths.get(part, part) for part in COMMANDS[name]))


def _run(name: str, arguments: tuple[str, ...]) -> None:
    if subprocess.run([sys.executable, "-m", "vip", *arguments], cwd=ROOT).returncode != 0:
        raise BenchError(f"{name}: not drawn: vip {' '.join(arguments)} failed")


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"Any of {', '.join((*COMMANDS, *REPORTED))} (default: all)."),
    ] = None,
) -> None:
    """Draw pictures of README and the guides, as PNG and SVG.

    Example: python -m bench.harness.pictures motorcycle bp_energies
    """
    pictures = (*COMMANDS, *REPORTED)
    for name in names or pictures:
        if name not in pictures:
            raise BenchError(unknown("picture", name, pictures))
    for name in names or pictures:
        console.rule(name)
        draw(name)


if __name__ == "__main__":
    run_command(lambda: typer.run(main))
