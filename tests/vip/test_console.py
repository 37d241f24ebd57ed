"""The progress that commands show on a terminal."""

from io import StringIO

import pytest

from vip.cli import console


@pytest.mark.parametrize(
    ("calls", "expected", "gone"),
    [
        ([("first", 10, 40, "a [part]")], ("first: a [part]", "25%"), ()),
        ([("first", 10, 40), ("second", 1234)], ("second", "1,234"), ("first", "%")),
        ([("first", 50, 40)], ("first", "100%"), ()),
    ],
)
def test_progress_shows_the_stage_at_hand(
    monkeypatch: pytest.MonkeyPatch,
    calls: list[tuple],
    expected: tuple[str, ...],
    gone: tuple[str, ...],
) -> None:
    terminal = StringIO()
    shown_on = console._Plain(file=terminal, force_terminal=True, width=100)
    monkeypatch.setattr(console, "_progress_console", shown_on)
    with console.shown() as progress:
        for call in calls:
            progress(*call)
        terminal.truncate(0)
    text = terminal.getvalue()
    assert all(words in text for words in expected), text
    assert not any(words in text for words in gone), text


def test_nothing_is_shown_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_progress_console", console._Plain(stderr=True))
    with console.shown() as progress:
        progress("first", 1, 2)
    assert capsys.readouterr() == ("", "")
