from isa.assembly.assembler import assemble
from isa.program import Program, listing


def test_words_stand_beside_their_lines() -> None:
    source = "; head\nstart: mov r1, #1\n\n    li r2, #1 << 40 ; far\n    jmp start\nend:\n"
    assert listing(assemble(source)) == (
        "    0  64100001      2  start: mov r1, #1\n"
        "    1  64200001      4      li r2, #1 << 40 ; far\n"
        "    2  28208028\n"
        "    3  90003ffd      5      jmp start\n"
        "                      end:\n"
    )


def test_labels_on_lines_of_their_own_stand_above_the_word() -> None:
    lines = listing(assemble("first:\nsecond:\n  halt\n")).splitlines()
    assert [line.strip() for line in lines] == [
        "first:",
        "second:",
        "0  e0000000      3    halt",
    ]


def test_programs_without_source_show_words_and_labels() -> None:
    assert listing(Program((7, 8), {"here": 1})).split() == (
        ["0", "00000007", "here:", "1", "00000008"]
    )
    assert listing(Program(())) == ""


def test_equal_lines_are_both_shown() -> None:
    assert listing(assemble("halt\nhalt\n")).count("halt") == 2


def test_a_label_is_shown_though_its_word_mentions_it_in_a_comment() -> None:
    assert listing(assemble("art:\n halt ; start: art:")).splitlines()[0].strip() == "art:"
