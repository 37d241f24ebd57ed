"""Mutants of a unit, tried one after the other; what is known of them is cached."""

import ast
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from sim_tb.runner.cache import fingerprint
from support.cache import build_folder
from support.files import write_atomically

from .builder import Simulators, mutated_builds
from .netlist import INDEX_VARIABLE, Mutant, MutantError, Netlist, netlist
from .proof import equal_everywhere
from .trial import Outcome, TrialError, run_tests, trial
from .units import UNITS, Unit

ROOT = Path(__file__).resolve().parents[2]
#: Reason of a mutant that is equivalent.
PROVED = "proved: the same outputs and next state in every state"
#: A trial may take so many times the cycles of one without a mutant.
_LONGER = 4
#: And so many seconds, which only a deadlock between processes reaches.
_SECONDS = 300


def try_mutants(
    name: str,
    *,
    seed: int,
    count: int = 0,
    index: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[Mutant, Outcome]:
    """Try the mutants of the unit ``name``: the outcome of each.

    Parameters:
        seed: of the draw.
        count: number of mutants, from the first one on; 0: as many as the unit names.
        index: try that one only.
        progress: called with the number of mutants tried, and of all.

    Raises:
        MutantError: no such unit or index, or Yosys makes no mutants.
        TrialError: a test fails without a mutant.
    """
    if name not in UNITS:
        raise MutantError(f"no unit {name!r}; there are {', '.join(UNITS)}")
    unit = UNITS[name]
    made = netlist(unit.top, unit.verilog(), unit.modules, count=unit.drawn, seed=seed)
    if not 0 <= index <= len(made.mutants):
        raise MutantError(f"{name} has mutants 1 to {len(made.mutants)}, not {index}")
    mutants = list(made.mutants[: count or unit.tried])
    if index:
        mutants = [made.mutants[index - 1]]
    known = _Known(made, unit)
    waiting = [mutant for mutant in mutants if known.is_new(mutant)]
    if waiting:
        for done, (mutant, outcome) in enumerate(_tried(made, unit, waiting, known.tests_for)):
            progress(len(mutants) - len(waiting) + done, len(mutants))
            known.keep(mutant, outcome)
    survivors = [mutant for mutant in mutants if known.outcome(mutant).fate == "survived"]
    proved = equal_everywhere(made, [each for each in survivors if not known.proof_failed(each)])
    for mutant in survivors:
        known.keep_proof(mutant, mutant.name in proved)
    return {mutant: known.outcome(mutant) for mutant in mutants}


def _tried(
    made: Netlist,
    unit: Unit,
    mutants: list[Mutant],
    tests_for: Callable[[Mutant], tuple[str, ...]],
) -> Iterator[tuple[Mutant, Outcome]]:
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

            yield mutant, trial(tests_for(mutant), seconds=_SECONDS, prepare=prepare)
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
    """Outcomes in a file. A killed mutant is tried again when the test changes that killed it, a
    survivor with the tests that have changed or that it has not met."""

    def __init__(self, made: Netlist, unit: Unit) -> None:
        self._file = build_folder() / "mutants" / f"{fingerprint(made.original)}.json"
        self._tests = {test: source_of(test) for test in unit.tests}
        self._outcomes = self._read()
        self._new: dict[str, Any] = {}

    def _read(self) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._file.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return content

    def is_new(self, mutant: Mutant) -> bool:
        """Whether it has to be tried."""
        fate = self._outcomes.get(mutant.name, {}).get("fate")
        return fate != "equivalent" and bool(self.tests_for(mutant))

    def tests_for(self, mutant: Mutant) -> tuple[str, ...]:
        """The tests to try it with."""
        content = self._outcomes.get(mutant.name, {"tests": {}})
        known = content["tests"]
        if content.get("fate") in ("killed", "hung"):
            same = all(source_of(test) == source for test, source in known.items())
            return () if same else tuple(self._tests)
        return tuple(test for test, source in self._tests.items() if known.get(test) != source)

    def outcome(self, mutant: Mutant) -> Outcome:
        """How its trial ended."""
        content = self._outcomes[mutant.name]
        return Outcome(**{name: content[name] for name in Outcome.__dataclass_fields__})

    def proof_failed(self, mutant: Mutant) -> bool:
        """Whether a proof that it is equivalent was tried in vain."""
        return "proof" in self._outcomes.get(mutant.name, {})

    def keep_proof(self, mutant: Mutant, proved: bool) -> None:
        """Note that a survivor is equivalent, or could not be proved to be."""
        content = {**self._outcomes[mutant.name], "proof": "none"}
        if proved:
            content |= {"fate": "equivalent", "reason": PROVED}
        self._write(mutant, content)

    def keep(self, mutant: Mutant, outcome: Outcome) -> None:
        """Add an outcome."""
        # One that is killed has met only the test that kills it, for certain.
        tests = {outcome.test: source_of(outcome.test)} if outcome.test else self._tests
        proof = {"proof": "none"} if self.proof_failed(mutant) else {}
        self._write(mutant, {**asdict(outcome), "tests": tests, **proof})

    def _write(self, mutant: Mutant, content: dict[str, Any]) -> None:
        self._outcomes[mutant.name] = self._new[mutant.name] = content
        self._file.parent.mkdir(parents=True, exist_ok=True)
        # Another unit may be of the same Verilog.
        every = {**self._read(), **self._new}
        write_atomically(self._file, json.dumps(every, indent=1).encode())


@cache
def source_of(test: str) -> str:
    """A hash of the function of ``test``, or of its file and the benches that this names; "" if
    there is none."""
    path, _, name = test.partition("::")
    try:
        tree = ast.parse((ROOT / path).read_text())
    except FileNotFoundError:
        return ""
    if not name:
        strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        benches = [f"{each.replace('.', '/')}.py" for each in strings if _is_bench(each)]
        return fingerprint(ast.dump(tree) + "".join(map(source_of, benches)))
    name = name.partition("[")[0]
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return next((fingerprint(ast.dump(each)) for each in functions if each.name == name), "")


def _is_bench(constant: object) -> bool:
    return isinstance(constant, str) and constant.startswith("tests.") and "/" not in constant
