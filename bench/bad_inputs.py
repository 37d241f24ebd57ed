"""Calls of every command with one thing wrong."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from support.cache import build_folder

from .harness.experiment import BenchError, Measurement, experiment, last_line, say
from .harness.record import ROOT

__all__ = ["bad_inputs"]


@experiment(minutes=60)
def bad_inputs(
    inputs: Annotated[int, typer.Option(min=1, max=10**9, help="How many at most.")] = 10**6,
    minutes: Annotated[int, typer.Option(min=1, max=10**4, help="When to begin no more.")] = 4,
) -> Iterator[Measurement]:
    """Bad inputs of every option and file format: each is refused in one line.

    What earlier runs did counts, and the next inputs follow. An input that is answered wrongly is
    an error, and is tried again.

    Example: vip bench bad_inputs --minutes 600
    """
    log = build_folder() / "bad_inputs.json"
    log.parent.mkdir(parents=True, exist_ok=True)
    say("bad inputs")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.vip.bad_inputs", "--seed", "46", "--log", str(log)),
            *("--count", str(inputs), "--minutes", str(minutes)),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        wrong = [line for line in done.stdout.splitlines() if "VIOLATION" in line]
        if wrong:
            raise BenchError(f"{len(wrong)} wrong answers: {wrong[0]}")
        raise BenchError(f"bad_inputs: {last_line(done.stderr)}")
    parts = json.loads(log.read_text())
    yield Measurement("inputs", sum(part["count"] for part in parts), "inputs", None, True)
    yield Measurement("cpu_seconds", sum(part["seconds"] for part in parts), "s", None)
    yield Measurement("slowest", max(part["slowest"] for part in parts), "ms", None)
    yield Measurement(
        "commands", len({name for part in parts for name in part["called"]}), "", None
    )
