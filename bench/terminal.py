"""The terminal of the benchmarks: results, progress, errors."""

import logging
import sys
import time
from collections.abc import Callable

import typer
from rich.console import Console

from support.command import run_command, settle_columns

__all__ = ["console", "run", "say"]

# The console reads the width where it is made.
settle_columns()
#: Results go to standard output.
console = Console(highlight=False, markup=False, emoji=False)


def say(text: str) -> None:
    """Show the next step on standard error."""
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def run(main: Callable[..., None]) -> None:
    """Run ``main`` as a command: its parameters are options, its errors one line, exit code 2."""
    logging.basicConfig(format="vip: %(message)s")
    for room in ("sim_tb", "synth"):
        logging.getLogger(room).setLevel(logging.INFO)
    run_command(lambda: typer.run(main))
