"""Code of a process of Amaranth's simulator with the same effects and less work."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from heapq import heapify, heappop, heappush

_HEAD = "def run():\n"
_UPDATE = re.compile(r"    slots\[(\d+)\]\.update\(next_\d+, (-?\d+)\)\n")
_WRITE = re.compile(r"^( *)(slots\[\d+\]\.write\(\w+, \w+, (\w+)\))$", re.MULTILINE)
_SLOT = re.compile(r"\bslots\[(\d+)\]")
_READ = re.compile(r"\bslots\[(\d+)\]\.(?:curr|read)\b")
#: A line and those that belong to it.
_BLOCK = re.compile(r"    \S.*\n(?:    (?: |elif ).*\n)*")
_LOCAL = re.compile(r"\b[a-z_]+_\d+\b")
_ASSIGNED = re.compile(r"^ *([a-z_]+_\d+) [&|]?= ", re.MULTILINE)


def quick(code: str, part: Callable[[int, int], bool]) -> str:
    """The code of a process with the same effects; other code as it is.

    ``part`` answers for the number of a signal whether a mask has not all its bits. The function
    gets ``drives`` and ``reads``: slots that it drives, and those that it has to run for when they
    change. Wires that it drives itself are read after they are driven, where that is possible.
    """
    if not code.startswith(_HEAD):
        return code
    driven = _UPDATE.findall(code)
    return _quick(code, frozenset(int(each) for each, mask in driven if part(int(each), int(mask))))


@lru_cache(4096)
def _quick(code: str, in_part: frozenset[int]) -> str:
    driven = dict(_UPDATE.findall(code))
    body = _UPDATE.sub("", code.removeprefix(_HEAD))
    numbers = dict.fromkeys(_SLOT.findall(code))
    if any(f" = slots[{number}].next\n" in body for number in driven) or not driven:
        # Registers.
        body = _WRITE.sub(r"\1if \3: \2", body)
        reads = list(numbers)
    else:
        body = _blocking(body, {each for each in driven if int(each) not in in_part})
        reads = list(dict.fromkeys(_READ.findall(body)))
    for number, mask in driven.items():
        slot, value = f"slots[{number}]", f"next_{number}"
        drive = f"{slot}.next = {value}; {slot}.pending.add({slot})"
        if int(number) in in_part:
            drive = f"{slot}.update({value}, {mask})"
        body += f"    if {slot}.next != {value}: {drive}\n"
    arguments = ", ".join(f"slot_{number}=slots[{number}]" for number in numbers)
    body = _SLOT.sub(r"slot_\1", body)
    return (
        f"def run({arguments}):\n{body or '    pass'}\n"
        f"run.drives = [{', '.join(f'slots[{number}]' for number in driven)}]\n"
        f"run.reads = [{', '.join(f'slots[{number}]' for number in reads)}]\n"
    )


def _blocking(body: str, driven: set[str]) -> str:
    """Statements in another order: what reads a wire follows what drives it."""
    blocks = _BLOCK.findall(body)
    assert "".join(blocks) == body, body
    last = {}
    for number, block in enumerate(blocks):
        for name in _ASSIGNED.findall(block):
            last[name] = number
    own = [
        {each for each in set(_READ.findall(block)) & driven if last[f"next_{each}"] != number}
        for number, block in enumerate(blocks)
    ]
    text, ready = [], set()
    for number in _in_order(blocks, [{last[f"next_{each}"] for each in reads} for reads in own]):
        block = blocks[number]
        for each in own[number]:
            if last[f"next_{each}"] in ready:
                block = block.replace(f"slots[{each}].curr", f"next_{each}")
        text.append(block)
        ready.add(number)
    return "".join(text)


def _in_order(blocks: list[str], wanted: list[set[int]]) -> Iterator[int]:
    """Numbers of ``blocks``: each after those whose variables it needs, and, where that does not go
    round, after those that are ``wanted``."""
    followers: list[list[tuple[int, bool]]] = [[] for _ in blocks]
    needs = [[0, 0] for _ in blocks]

    def after(first: int, second: int, must: bool) -> None:
        followers[first].append((second, must))
        needs[second][must] += 1

    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for number, block in enumerate(blocks):
        assigned = set(_ASSIGNED.findall(block))
        for name in dict.fromkeys(_LOCAL.findall(block)):
            if name in writer:
                after(writer[name], number, True)
            if name in assigned:
                for reader in readers.pop(name, ()):
                    after(reader, number, True)
                writer[name] = number
            else:
                readers.setdefault(name, []).append(number)
        for first in wanted[number]:
            after(first, number, False)
    heap = [(bool(soft), number) for number, (soft, hard) in enumerate(needs) if not hard]
    heapify(heap)
    passed = set()
    while heap:
        _, number = heappop(heap)
        if number in passed:
            continue
        passed.add(number)
        yield number
        for follower, must in followers[number]:
            needs[follower][must] -= 1
            soft, hard = needs[follower]
            if not hard and follower not in passed:
                heappush(heap, (bool(soft), follower))
