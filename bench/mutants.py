"""Mutants of the hardware that simulations of the tests kill."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from support.processes import tool

from .harness.experiment import SIMULATION, BenchError, Measurement, experiment, last_line
from .harness.record import ROOT


@experiment(tools=(*SIMULATION, "pyosys"), minutes=60)
def mutants(units: str = "engine,vault,router,node,host") -> Iterator[Measurement]:
    """Changes of one bit in the Verilog, and how many the simulations of make test notice.

    Those that are proved to be equivalent, or are listed as such with the reason, don't count.
    Mutants that died are not tried again.

    Example: vip bench mutants --units router
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "counts.json"
        words = [sys.executable, "-m", "tests.mutation", *units.split(","), "--json", str(file)]
        with tool(words, cwd=ROOT, stderr=None if sys.stderr.isatty() else subprocess.PIPE) as done:
            _, errors = done.communicate()
        if done.returncode:
            raise BenchError(f"mutants: {last_line((errors or b'').decode())}")
        counts = json.loads(file.read_text())
    for unit, numbers in counts.items():
        yield Measurement(f"{unit}_mutants", numbers["mutants"], "mutants", None)
        yield Measurement(f"{unit}_different", numbers["different"], "mutants", None)
        yield Measurement(f"{unit}_killed", numbers["killed"], "mutants", None, True)
    total = {name: sum(one[name] for one in counts.values()) for name in ("killed", "different")}
    yield Measurement("mutants", sum(one["mutants"] for one in counts.values()), "mutants", None)
    yield Measurement("different", total["different"], "mutants", None)
    if total["different"]:
        score = 100 * total["killed"] / total["different"]
        yield Measurement("killed_percent", score, "%", None, True)
