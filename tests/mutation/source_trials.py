"""Mutants of sources, tried in a copy of the checkout."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from sim_tb.runner.cache import ResultCache, fingerprint
from support.cache import FOLDER_VARIABLE
from support.scratch import scratch_folder

from .sources import SourceMutant, source_mutants, tests_of
from .trial import Outcome, TrialError, trial

_COPIED = shutil.ignore_patterns(".*", "build", "images", "__pycache__")
#: Limits of a trial: its time, and processor time without the processes that it starts.
_SECONDS, _PROCESSOR = 3000, 600
#: Parts of the cache that hold what a mutant made.
_MADE = ("simulators", "verilog", "locks")


def try_sources(
    root: Path, *, count: int, seed: int, progress: Callable[[int, int], None]
) -> dict[SourceMutant, Outcome]:
    """Try ``count`` mutants of the checkout ``root``: the outcome of each.

    A test that fails in a copy of the checkout without a mutant, too, is left out. Those that died
    in an earlier call are not tried again.

    Parameters:
        seed: of the draw. progress: called with the number of mutants tried, and of all.
    """
    mutants = source_mutants(root, count=count, seed=seed)
    cache = ResultCache("source_mutants")
    known = {mutant: cache.known(fingerprint(mutant.path, mutant.text)) for mutant in mutants}
    outcomes = {mutant: Outcome(**one) for mutant, one in known.items() if one}
    for mutant, outcome in _tried(root, [each for each in mutants if each not in outcomes]):
        outcomes[mutant] = outcome
        if outcome.fate != "survived":
            cache.keep(fingerprint(mutant.path, mutant.text), asdict(outcome))
        progress(len(outcomes), count)
    return outcomes


def _tried(root: Path, mutants: Sequence[SourceMutant]) -> Iterator[tuple[SourceMutant, Outcome]]:
    with scratch_folder("sources") as folder:
        tree, cache = folder / "tree", folder / "cache"
        shutil.copytree(root, tree, ignore=_COPIED)
        sound: set[str] = set()
        broken: list[str] = []
        for mutant in mutants:
            while True:
                outcome = _outcome(tree, cache, mutant, broken)
                if outcome.fate != "killed" or outcome.test in sound:
                    break
                again = _outcome(tree, cache, None, (), (outcome.test,))
                (sound.add if again.fate == "survived" else broken.append)(outcome.test)
            yield mutant, outcome


def _outcome(
    tree: Path,
    cache: Path,
    mutant: SourceMutant | None,
    broken: Sequence[str],
    tests: Sequence[str] = (),
) -> Outcome:
    """The outcome of ``tests``, by default those of the mutant, in ``tree`` with the mutant."""
    file = tree / (mutant.path if mutant else "")
    before = file.read_bytes() if mutant else b""
    chosen = [*(tests or tests_of(tree, mutant.path if mutant else ""))]
    chosen += [f"--deselect={test}" for test in broken]
    try:
        if mutant:
            file.write_text(mutant.text)
        return trial(
            chosen,
            seconds=_SECONDS,
            processor=_PROCESSOR,
            prepare=partial(_enter, tree, cache),
        )
    except TrialError as error:
        # pytest can't even import the tests.
        if mutant is None:
            raise
        return Outcome("invalid", "", str(error), 0)
    finally:
        if mutant:
            file.write_bytes(before)
        for name in _MADE:
            shutil.rmtree(cache / name, ignore_errors=True)


def _enter(tree: Path, cache: Path) -> None:
    """Let this process use the rooms of ``tree`` instead of those that it has imported."""
    os.chdir(tree)
    os.environ |= {FOLDER_VARIABLE: str(cache), "PYTHONPATH": str(tree)}
    sys.path.insert(0, str(tree))
    rooms = {path.name for path in tree.iterdir() if path.is_dir()} | {"vip_rooms"}
    for name in [name for name in sys.modules if name.partition(".")[0] in rooms]:
        if not name.startswith("tests.mutation"):
            del sys.modules[name]
