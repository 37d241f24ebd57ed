"""A reader of Kanata 0004 logs, written from the description of the format."""

from dataclasses import dataclass, field


@dataclass
class Instruction:
    """Lane -> stages as (name, first cycle, cycle after the last)."""

    thread: int
    left: str = ""
    hover: str = ""
    lanes: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)
    open: dict[int, tuple[str, int]] = field(default_factory=dict)
    end: int = -1
    flushed: bool = False


def read_kanata(text: str) -> list[Instruction]:
    header, *lines = text.split("\n")
    assert header == "Kanata\t0004"
    assert lines.pop() == ""
    now = -1
    found: list[Instruction] = []
    retired = 0
    for line in lines:
        command, *fields = line.split("\t")
        if command == "C=":
            assert now == -1
            now = int(fields[0])
            continue
        assert now >= 0
        if command == "C":
            assert int(fields[0]) > 0
            now += int(fields[0])
            continue
        number = int(fields[0])
        if command == "I":
            assert number == len(found)
            found.append(Instruction(thread=int(fields[2])))
            continue
        one = found[number]
        assert one.end < 0, "a command after the instruction's end"
        if command == "L":
            assert fields[1] in ("0", "1")
            assert len(fields) == 3
            if fields[1] == "0":
                one.left += fields[2]
            else:
                one.hover += fields[2]
        elif command == "S":
            lane = int(fields[1])
            assert lane not in one.open
            one.open[lane] = (fields[2], now)
        elif command == "E":
            lane = int(fields[1])
            name, start = one.open.pop(lane)
            assert name == fields[2]
            assert start < now
            one.lanes.setdefault(lane, []).append((name, start, now))
        elif command == "R":
            one.end, one.flushed = now, fields[2] == "1"
            assert not one.open
            assert fields[2] in ("0", "1")
            assert int(fields[1]) == retired
            retired += not one.flushed
        else:
            raise AssertionError(command)
    assert all(one.end >= 0 for one in found)
    return found
