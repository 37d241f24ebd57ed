"""Mutants of sources, tried in a copy of the checkout."""

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from sim_tb.runner.cache import fingerprint
from support.cache import FOLDER_VARIABLE, ResultCache, build_folder
from support.scratch import scratch_folder

from .campaign import source_of
from .order import Likely
from .sources import SourceMutant, source_mutants, tests_of
from .trial import Outcome, TrialError, trial

_log = logging.getLogger(__name__)
_COPIED = shutil.ignore_patterns(".*", "build", "images", "__pycache__")
#: Limits of a trial: its time, and processor time without the processes that it starts.
_SECONDS, _PROCESSOR = 2400, 1200
#: Parts of the cache whose entries are named after the content of all that decides them.
_SHARED = ("simulators", "runtime", "libraries")


def try_sources(
    root: Path, *, count: int, seed: int, progress: Callable[[int, int], None]
) -> dict[SourceMutant, Outcome]:
    """Try ``count`` mutants of the checkout ``root``: the outcome of each.

    A test that fails or hangs in a copy of the checkout without a mutant, too, is left out. Mutants
    that died in an earlier call are not tried again, and those that survived only with tests that
    changed.

    Parameters:
        seed: of the draw. progress: called with the number of mutants tried, and of all.
    """
    mutants = source_mutants(root, count=count, seed=seed)
    cache = ResultCache("source_mutants")
    outcomes, waiting, sources = {}, {}, {}
    for mutant in mutants:
        chances = tests_of(root, mutant.path)
        sources[mutant] = {test: source_of(test) for test in chances}
        known = cache.known(_key(mutant)) or {}
        met = known.pop("tests", {})
        if known:
            outcomes[mutant] = Outcome(**known)
        if not known or known["fate"] == "survived":
            new = {test: one for test, one in chances.items() if met.get(test) != source_of(test)}
            if new:
                waiting[mutant] = new
    for mutant, outcome in _tried(root, waiting):
        outcomes[mutant] = outcome
        met = sources[mutant] if outcome.fate == "survived" else {}
        cache.keep(_key(mutant), {**asdict(outcome), "tests": met})
        progress(len(outcomes), count)
    return outcomes


def _key(mutant: SourceMutant) -> str:
    return fingerprint(mutant.path, mutant.text)


def _tried(
    root: Path, waiting: Mapping[SourceMutant, Mapping[str, float]]
) -> Iterator[tuple[SourceMutant, Outcome]]:
    with scratch_folder("sources") as folder:
        tree, cache = folder / "tree", folder / "cache"
        shutil.copytree(root, tree, ignore=_COPIED)
        for name in _SHARED:
            with suppress(FileNotFoundError):
                shutil.copytree(build_folder() / name, cache / name)
        sound: set[str] = set()
        broken: list[str] = []
        for mutant, chances in waiting.items():
            while True:
                outcome = _outcome(tree, cache, mutant, chances, broken)
                if outcome.fate not in ("killed", "hung") or outcome.test in sound:
                    break
                again = _outcome(tree, cache, None, {outcome.test: 1})
                if again.fate == "survived":
                    sound.add(outcome.test)
                    break
                broken.append(outcome.test)
                _log.warning("left out: %s, %s without a mutant", outcome.test, again.fate)
                _log.warning(again.reason)
            yield mutant, outcome


def _outcome(
    tree: Path,
    cache: Path,
    mutant: SourceMutant | None,
    chances: Mapping[str, float],
    broken: Sequence[str] = (),
) -> Outcome:
    """The outcome of the tests in ``chances`` in ``tree`` with the mutant."""
    file = tree / (mutant.path if mutant else "")
    before = file.read_bytes() if mutant else b""
    try:
        if mutant:
            file.write_text(mutant.text)
        return trial(
            [*chances, *(f"--deselect={test}" for test in broken)],
            seconds=_SECONDS,
            processor=_PROCESSOR,
            prepare=partial(_enter, tree, cache),
            plugins=[Likely(build_folder() / "test_seconds.json", chances)],
        )
    except TrialError as error:
        # pytest can't even import the tests.
        if mutant is None:
            raise
        return Outcome("invalid", "", str(error), 0)
    finally:
        if mutant:
            file.write_bytes(before)


def _enter(tree: Path, cache: Path) -> None:
    """Let this process use the rooms of ``tree`` instead of those that it has imported."""
    os.chdir(tree)
    os.environ |= {FOLDER_VARIABLE: str(cache), "PYTHONPATH": str(tree)}
    sys.path.insert(0, str(tree))
    rooms = {path.name for path in tree.iterdir() if path.is_dir()} | {"vip_rooms"}
    for name in [name for name in sys.modules if name.partition(".")[0] in rooms]:
        if not name.startswith("tests.mutation"):
            del sys.modules[name]
