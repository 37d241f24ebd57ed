"""Places in a scratchpad, records of words, and code out of line."""

from dataclasses import dataclass

from microkernels.bp.runs import SweepRun
from microkernels.common.builder import KernelBuilder
from microkernels.common.parameter_block import Word, WordRecord, word, word_registers
from microkernels.common.scratchpad_plan import ScratchpadPlan


def test_places_follow_each_other_and_a_ring_takes_the_rest() -> None:
    pad = ScratchpadPlan()
    assert (pad.take("first", 5), pad.take("none", 0), pad.take("second", 16)) == (0, 16, 16)
    pad.take_each("m", 2, 20)
    assert (pad["m0"], pad["m1"], pad.used) == (32, 64, 96)
    assert pad.take_ring(3, 24, most=8, room=512, step=2) == 4
    assert (pad.ring, pad.slot, pad.vector, pad.used) == (96, 80, 24, 416)


def test_a_ring_without_room_has_no_slots() -> None:
    pad = ScratchpadPlan()
    pad.take("all", 100)
    assert pad.take_ring(1, 16, most=4, room=64) == 0
    assert pad.take_ring(1, 16, most=4) == 4


def test_a_record_gives_words_and_registers_in_its_order() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Pair(WordRecord[Word]):
        base: Word = word("where it begins")
        count: Word = word("how many", default=0)

    assert Pair[int](base=7).words() == [7, 0]
    assert Pair.length() == 2
    writer = KernelBuilder("A record.", launch=("parameters",))
    registers = word_registers(Pair, writer, "pair", {"base": {"base_y": "of the other"}})
    writer.op("halt")
    text = writer.text()
    assert Pair[str](**registers).words() == ["base", "count"]
    assert text.index("pair: where it begins") < text.index("of the other")
    assert text.index("of the other") < text.index("pair: how many")


def test_every_word_of_a_run_has_a_register_and_a_purpose() -> None:
    writer = KernelBuilder("A run.", launch=("parameters",))
    run = SweepRun[str](**word_registers(SweepRun, writer, "run"))
    assert len(set(run.words())) == SweepRun.length() == len(SweepRun[int]().words())
    assert writer.text().count("; run: ") == SweepRun.length()


def test_rare_code_stands_where_it_is_asked_for() -> None:
    writer = KernelBuilder("Rare code.")
    a, b = (writer.register(name, "a number") for name in "ab")
    writer.seldom("beq", a, b, lambda: writer.op("mov", a, 1))
    writer.op("halt")
    writer.emit_detours()
    writer.emit_detours()
    lines = [line.split(";")[0].strip() for line in writer.text().splitlines()]
    code = lines[lines.index("beq a, b, seldom_1") :]
    assert [line for line in code if line] == [
        *("beq a, b, seldom_1", "on_2:", "halt"),
        *("seldom_1:", "mov a, #1", "jmp on_2"),
    ]
    assert len(writer.program("rare.s").words) == 4
