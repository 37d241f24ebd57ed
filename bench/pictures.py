"""``python -m bench.pictures``: the pictures of README and the guides, each as PNG and SVG.

Each comes from a command that a user can give, run once for each kind of file; results that the
commands cache are not measured twice.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from support.files import write_atomically
from support.picture import SUFFIXES

from .checkout import ROOT
from .measurement import BenchError
from .screens.shots import SHOTS, shoot
from .terminal import console, run

__all__ = ["COMMANDS", "REPORTED", "draw"]

_IMAGES = ROOT / "docs" / "images"
#: Placeholder in a command for the file to write.
FILE = "{file}"
#: Picture -> arguments of Python.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "bp_energies": ("bench.energies", "--path", FILE),
    "mrf_energies": ("bench.mrf_energies", "--path", FILE),
    "agents": ("bench.policies.curves", "--path", FILE),
    "instruction_types": ("bench.instruction_types", "--path", FILE),
    "scaling": ("bench.chips", "--path", FILE),
    "motorcycle": (
        *("vip", "cosim", "bp", "--width", "96", "--height", "64", "--labels", "16"),
        *("--iterations", "5", "--latency", "60", "--picture", FILE),
    ),
    "vault_bandwidth": (
        *("vip", "cosim", "bp", "--preset", "vault", "--iterations", "1", "--plot", FILE),
    ),
    "stereo": (
        *("vip", "bench", "stereo", "--width", "370", "--height", "250"),
        *("--iterations", "1", "--verilog", "--image", FILE),
    ),
    "roofline": ("vip", "bench", "kernels", "--roofline", FILE),
    "whole_networks": (
        *("vip", "bench", "networks", "--name", "vgg16", "--preset", "thesis", "--plot", FILE),
    ),
    "trimming": ("vip", "bench", "trim", "--fill", "0", "--image", FILE),
    "engine_units": ("vip", "diagram", FILE),
    "tile_units": ("vip", "diagram", FILE, "--preset", "tiny", "--module", "chip_tile"),
    "chip_units": ("vip", "diagram", FILE, "--preset", "tiny"),
    "network": ("vip", "bench", "network", "--size", "4x4", "--size", "8x4", "--image", FILE),
}
#: Picture -> its name among those of ``vip report``, which writes both kinds at once.
REPORTED: Mapping[str, str] = {"engine_area": "area", "engine_power": "power"}


def draw(name: str, folder: Path = _IMAGES) -> None:
    """Draw a picture of :data:`COMMANDS`, :data:`REPORTED` or
    :data:`bench.screens.shots.SHOTS` into ``folder``.

    Raises:
        BenchError: the command failed; its message is on standard error.
    """
    if name in SHOTS:
        shoot(name, folder / f"{name}.png")
        return
    if name in REPORTED:
        with TemporaryDirectory() as page:
            _run(name, ("vip", "report", page))
            for suffix in SUFFIXES:
                content = (Path(page) / f"{REPORTED[name]}{suffix}").read_bytes()
                write_atomically(folder / f"{name}{suffix}", content)
        return
    for suffix in SUFFIXES:
        file = str(folder / f"{name}{suffix}")
        _run(name, tuple(file if part == FILE else part for part in COMMANDS[name]))


def _run(name: str, arguments: tuple[str, ...]) -> None:
    if subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT).returncode != 0:
        raise BenchError(f"{name}: not drawn: python -m {' '.join(arguments)} failed")


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"Of {', '.join((*COMMANDS, *REPORTED, *SHOTS))} (default: all)."),
    ] = None,
) -> None:
    """Draw pictures of README and the guides, as PNG and SVG; screenshots, which need Chromium, as
    PNG.

    Example: python -m bench.pictures motorcycle bp_energies
    """
    known = (*COMMANDS, *REPORTED, *SHOTS)
    for name in names or known:
        if name not in known:
            raise BenchError(f"unknown picture {name!r}; there are: {', '.join(known)}")
    for name in names or known:
        console.rule(name)
        draw(name)


if __name__ == "__main__":
    run(main)
