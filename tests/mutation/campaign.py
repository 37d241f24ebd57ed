"""Mutants of a unit, tried one after the other; what is known of them is cached."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from sim_tb.runner.cache import fingerprint
from support.cache import build_folder
from support.files import write_atomically

from .builder import Simulators, mutated_builds
from .netlist import INDEX_VARIABLE, Mutant, MutantError, Netlist, netlist
from .trial import Outcome, TrialError, run_tests, trial
from .units import UNITS, Unit

ROOT = Path(__file__).resolve().parents[2]
#: A trial may take so many times the cycles of one without a mutant.
_LONGER = 4
#: And so many seconds, which only a deadlock between processes reaches.
_SECONDS = 300
_TESTS = ("tests", "sim_tb", "microkernels", "isa")


def try_mutants(
    name: str,
    *,
    seed: int,
    count: int = 0,
    index: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[tuple[Mutant, Outcome]]:
    """Try the mutants of the unit ``name``; yields each with its outcome.

    Parameters:
        seed: of the draw. count: number of mutants; 0: as many as the unit names.
        index: try that one only.
        progress: called with the number of mutants tried, and of all.

    Raises:
        MutantError: no such unit or index, or Yosys makes no mutants.
        TrialError: a test fails without a mutant.
    """
    if name not in UNITS:
        raise MutantError(f"no unit {name!r}; there are {', '.join(UNITS)}")
    unit = UNITS[name]
    made = netlist(unit.top, unit.verilog(), unit.modules, count=count or unit.mutants, seed=seed)
    if not 0 <= index <= len(made.mutants):
        raise MutantError(f"{name} has mutants 1 to {len(made.mutants)}, not {index}")
    mutants = [made.mutants[index - 1]] if index else list(made.mutants)
    known = _Known(made, unit)
    waiting = [mutant for mutant in mutants if known.outcome(mutant) is None or index]
    for mutant in mutants:
        outcome = known.outcome(mutant)
        if mutant not in waiting and outcome is not None:
            yield mutant, outcome
    progress(len(mutants) - len(waiting), len(mutants))
    if waiting:
        for done, (mutant, outcome) in enumerate(_tried(made, unit, waiting), 1):
            known.keep(mutant, outcome)
            yield mutant, outcome
            progress(len(mutants) - len(waiting) + done, len(mutants))


def _tried(made: Netlist, unit: Unit, mutants: list[Mutant]) -> Iterator[tuple[Mutant, Outcome]]:
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ[INDEX_VARIABLE] = "0"
    os.chdir(ROOT)
    simulators = Simulators()
    with mutated_builds({made.original: made.verilog}), simulators.kept():
        _pass_without_mutant(unit)
        # Selects again, which tells the cycles of the last test.
        outcome = trial(unit.tests, seconds=_SECONDS)
        if outcome.fate != "survived":
            raise TrialError(f"{outcome.test} fails without a mutant: {outcome.reason}")
        limit = _LONGER * simulators.most_cycles()
        for mutant in mutants:

            def prepare(index: int = mutant.index) -> None:
                os.environ[INDEX_VARIABLE] = str(index)
                simulators.select(index, limit)

            yield mutant, trial(unit.tests, seconds=_SECONDS, prepare=prepare)
            simulators.restart()


def _pass_without_mutant(unit: Unit) -> None:
    """Run the tests in this process, so that its copies have simulators and modules."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        before = os.dup(1)
        os.dup2(log.fileno(), 1)
        try:
            code = run_tests(unit.tests, Path(folder))
        finally:
            os.dup2(before, 1)
            os.close(before)
        if code:
            log.seek(0)
            lines = log.read().strip().splitlines() or ["no output"]
            raise TrialError(f"tests fail without a mutant: {lines[-1]}")


class _Known:
    """Outcomes in a file. A mutant that died is dead; one that survived is tried again when tests
    have changed."""

    def __init__(self, made: Netlist, unit: Unit) -> None:
        self._file = build_folder() / "mutants" / f"{fingerprint(made.verilog)}.json"
        self._tests = fingerprint(
            *unit.tests,
            *(
                path.read_bytes()
                for folder in _TESTS
                for path in sorted((ROOT / folder).rglob("*.py"))
                if "mutation" not in path.parts
            ),
        )
        try:
            self._outcomes = json.loads(self._file.read_text())
        except (FileNotFoundError, ValueError):
            self._outcomes = {}

    def outcome(self, mutant: Mutant) -> Outcome | None:
        """What is known of it."""
        content = self._outcomes.get(mutant.name)
        if content is None or (content["fate"] == "survived" and content["tests"] != self._tests):
            return None
        return Outcome(**{name: content[name] for name in Outcome.__dataclass_fields__})

    def keep(self, mutant: Mutant, outcome: Outcome) -> None:
        """Add an outcome."""
        self._outcomes[mutant.name] = {**asdict(outcome), "tests": self._tests}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, json.dumps(self._outcomes, indent=1).encode())
