"""Bad inputs in any number: ``python -m tests.vip.bad_inputs --count 20000 --seed 7``."""

import argparse
import sys
import time
from collections import Counter

from .cases import case
from .commands import commands
from .harness import Harness, violations


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--apart", type=int, default=0, help="each N-th in its own process too")
    parser.add_argument("--show", action="store_true", help="show each call and its answer")
    return parser.parse_args()


def main() -> None:
    """Run them, show what is wrong, and end with code 1 if anything is."""
    given = _arguments()
    started = time.process_time()
    wrong = 0
    most = Counter[str]()
    called = Counter[str]()
    with Harness() as harness:
        for number in range(given.first, given.first + given.count):
            one = case(given.seed, number)
            called[next((c.name for c in commands() if _is(c.words, one.arguments)), "none")] += 1
            answers = [harness.run(one)]
            if given.apart and number % given.apart == 0:
                answers.append(harness.run_apart(one))
            for answer in answers:
                most["ms"] = max(most["ms"], int(answer.seconds * 1000))
                most["MB"] = max(most["MB"], answer.bytes // 10**6)
                found = violations(answer)
                if answer.seconds > 1:
                    print(f"{number} {one.what}: {answer.seconds:.1f} s", flush=True)
                wrong += bool(found)
                if found or given.show:
                    shown = [argument[:80] for argument in one.arguments]
                    print(f"{number} {one.what}: vip {shown}", flush=True)
                for line in found:
                    print(f"    VIOLATION: {line}", flush=True)
                if given.show and not found:
                    print(f"    {answer.seconds:.2f} s {answer.err[:300]}")
    print(f"{given.count} bad inputs of seed {given.seed}, {wrong} violations")
    print(
        f"{time.process_time() - started:.0f} s of processor time; the slowest {most['ms']} ms;"
        f" at most {most['MB']} MB"
    )
    print(", ".join(f"{name} {count}" for name, count in sorted(called.items())))
    sys.exit(1 if wrong else 0)


def _is(words: tuple[str, ...], arguments: list[str]) -> bool:
    return tuple(arguments[: len(words)]) == words


if __name__ == "__main__":
    main()
