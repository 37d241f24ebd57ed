"""Bad inputs in any number: ``python -m tests.vip.bad_inputs --count 20000 --seed 7``.

With ``--log FILE`` what is done is noted there, so that the command goes on where it ended; inputs
that were answered wrongly are tried again. ``--minutes`` ends it in time.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from support.files import write_atomically

from .cases import case
from .commands import commands
from .harness import Harness, violations

#: Inputs of a part, which one process runs at a time.
_PART = 500


@dataclass
class Part:
    """Outcome of some inputs.

    Attributes:
        seed, first, count: which ones. seconds: of processor time. slowest: of an answer, in ms.
        megabytes: most memory. called: command -> inputs. wrong: number -> what is wrong.
    """

    seed: int
    first: int
    count: int
    seconds: float = 0
    slowest: int = 0
    megabytes: int = 0
    called: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=dict)


def run(seed: int, first: int, count: int, apart: int = 0, show: bool = False) -> Part:
    """Run ``count`` inputs, each ``apart``-th in a process of its own too."""
    part = Part(seed, first, count)
    started = time.process_time()
    called = Counter[str]()
    with Harness() as harness:
        for number in range(first, first + count):
            one = case(seed, number)
            name = next((c.name for c in commands() if _is(c.words, one.arguments)), "none")
            called[name] += 1
            answers = [harness.run(one)]
            if apart and number % apart == 0:
                answers.append(harness.run_apart(one))
            for answer in answers:
                part.slowest = max(part.slowest, int(answer.seconds * 1000))
                part.megabytes = max(part.megabytes, answer.bytes // 10**6)
                found = violations(answer)
                if found or show:
                    shown = [argument[:80] for argument in one.arguments]
                    print(f"{number} {one.what}: vip {shown}", flush=True)
                for line in found:
                    print(f"    VIOLATION: {line}", flush=True)
                if show and not found:
                    print(f"    {answer.seconds:.2f} s {answer.err[:300]}")
                if found:
                    part.wrong[str(number)] = [f"{name}: {one.what}", *found]
    part.called = dict(called)
    part.seconds = time.process_time() - started
    return part


def _is(words: tuple[str, ...], arguments: list[str]) -> bool:
    return tuple(arguments[: len(words)]) == words


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--apart", type=int, default=0, help="each N-th in its own process too")
    parser.add_argument("--show", action="store_true", help="show each call and its answer")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--log", type=Path, help="file that notes what is done")
    parser.add_argument("--minutes", type=float, default=0, help="begin nothing afterwards")
    return parser.parse_args()


def _parts(given: argparse.Namespace, done: list[Part]) -> Iterator[tuple[int, int, int]]:
    """Seed, first number and count of each part that is not in ``done``."""
    known = {(part.seed, part.first, part.count) for part in done}
    end = given.first + given.count
    for first in range(given.first, end, _PART):
        part = given.seed, first, min(_PART, end - first)
        if part not in known:
            yield part


def main() -> None:
    """Run them, show what is wrong, and end with code 1 if anything is."""
    given = _arguments()
    noted = json.loads(given.log.read_text()) if given.log and given.log.exists() else []
    before = [Part(**content) for content in noted]
    done = [part for part in before if not part.wrong]
    started = time.monotonic()
    waiting = _parts(given, done)
    with ProcessPoolExecutor(given.jobs) as pool:
        while not given.minutes or time.monotonic() < started + 60 * given.minutes:
            batch = list(islice(waiting, given.jobs))
            if not batch:
                break
            tasks = [pool.submit(run, *part, given.apart, given.show) for part in batch]
            done += [task.result() for task in tasks]
            if given.log:
                text = json.dumps([asdict(part) for part in done], indent=1)
                write_atomically(given.log, text.encode())
    count = sum(part.count for part in done)
    wrong = sum(len(part.wrong) for part in done)
    called = Counter[str]()
    for part in done:
        called.update(part.called)
    print(f"{count} bad inputs, {wrong} answered wrongly")
    print(
        f"{sum(part.seconds for part in done):.0f} s of processor time; the slowest "
        f"{max((part.slowest for part in done), default=0)} ms; "
        f"at most {max((part.megabytes for part in done), default=0)} MB"
    )
    print(", ".join(f"{name} {number}" for name, number in sorted(called.items())))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
