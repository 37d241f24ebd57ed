"""Tables of commands: readable at any width, verdicts in colour."""

from io import StringIO

import pytest
from rich.console import Console

from vip.cli.console import table

_TEXT = ("program", "known", "from")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_numbers_are_whole_at_any_width(width: int) -> None:
    """A number that is cut short is a wrong number; a narrow terminal gets a list."""
    numbers = [str(1_000_003 * number) for number in range(1, 5)]
    heads = (*_TEXT[:1], *(f"of {number}" for number in range(4)), *_TEXT[1:])
    rows = table(*heads, left=_TEXT, title="sizes")
    rows.add_row("bp.s", *numbers, "proved", "word 11 of the program that runs longest")
    output = StringIO()
    Console(width=width, file=output).print(rows)
    lines = output.getvalue().split("\n")
    assert max(map(len, lines)) <= width
    assert "…" not in output.getvalue()
    words = output.getvalue().split()
    assert {*numbers, "known", "from", "proved", "longest", "sizes", "bp.s"} <= set(words)
    assert any("──" in line for line in lines) == (width >= 80)


def test_a_title_is_wider_than_its_table() -> None:
    title = "96 x 48 pixels, 12 labels of 16 bits"
    rows = table("", "value", title=title, show_header=False)
    rows.add_row("energy", "1")
    output = StringIO()
    Console(width=80, file=output).print(rows)
    assert output.getvalue().split("\n")[0] == title


@pytest.mark.parametrize("width", [60, 76, 77, 90, 120])
def test_text_gives_way_before_numbers_and_names(width: int) -> None:
    rows = table("figure", "value", "unit", "", left=("figure", "unit", ""))
    rows.add_row(
        "flat_fine_waits_for_the_vector_unit_of_all_engines", "5,272,596", "ms", "as recorded"
    )
    rows.add_row("flat_seconds", "15.7", "s with loading and with reading of all", "as recorded")
    output = StringIO()
    Console(width=width, file=output).print(rows)
    words = output.getvalue().split()
    assert words.count("recorded") == 2
    assert {"flat_fine_waits_for_the_vector_unit_of_all_engines", "5,272,596", "reading"} <= {
        *words
    }
    assert max(map(len, output.getvalue().split("\n"))) <= width


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("yes", "\x1b[32m"),
        ("no", "\x1b[1;31m"),
        ("DIFFERS: r3", "\x1b[1;31m"),
        ("better: record it", "\x1b[32m"),
        ("no memory", ""),
        ("nothing", ""),
    ],
)
def test_verdicts_have_a_colour_on_a_terminal(cell: str, code: str) -> None:
    rows = table("", "judged", left=("", "judged"))
    rows.add_row("result", cell)
    colours = StringIO()
    Console(file=colours, force_terminal=True, color_system="standard", width=80).print(rows)
    assert f"{code}{cell}" in colours.getvalue()
    assert ("\x1b[" in colours.getvalue().split("result")[1]) == bool(code)
    plain = StringIO()
    Console(file=plain, width=80).print(rows)
    assert "\x1b" not in plain.getvalue()
