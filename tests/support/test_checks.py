"""Checks of values: what each refuses, and how it says so."""

from dataclasses import dataclass
from typing import Any

import pytest

from support.checks import Checks, shown
from support.errors import VipError, counted


class OneError(VipError):
    pass


CHECK = Checks(OneError)


@dataclass
class Shape:
    size: int
    fast: bool
    name: str = "x"
    inner: int | None = None
    free: tuple[int, ...] = ()


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, (3, 1)])
def test_only_whole_numbers_are_numbers(value: Any) -> None:
    for check in (
        lambda: CHECK.whole("n", value),
        lambda: CHECK.within("n", value, -9, 9),
        lambda: CHECK.at_least("n", value, -9),
        lambda: CHECK.power_of_two("n", value, 1, 8),
        lambda: CHECK.one_of("n", value, (0, 1, 2)),
    ):
        with pytest.raises(OneError, match=r"^n must be .*, not "):
            check()


def test_what_is_allowed_passes() -> None:
    CHECK.whole("n", -(10**5000))
    CHECK.within("n", 3, 3, 3)
    CHECK.at_least("n", 3, 3)
    CHECK.power_of_two("n", 8, 1, 8)
    CHECK.one_of("n", "a", ("a", "b"))
    CHECK.flag("n", False)
    CHECK.kind("n", "a", int, str)
    CHECK.fields(Shape(1, True))
    CHECK.fields(Shape(1, True, inner=3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CHECK.within("n", 4, 1, 3), "n must be a whole number from 1 to 3, not 4"),
        (lambda: CHECK.at_least("n", 0, 1), "n must be at least 1, not 0"),
        (lambda: CHECK.power_of_two("n", 6, 2, 8), "n must be a power of two from 2 to 8, not 6"),
        (lambda: CHECK.one_of("n", "c", ("a", "b")), "n must be one of a, b, not 'c'"),
        (lambda: CHECK.flag("n", 1), "n must be True or False, not 1"),
        (lambda: CHECK.kind("n", 1, str, bytes), "n must be a str or a bytes, not 1"),
        (lambda: CHECK.fields(Shape((3, 1), True)), "size must be a whole number, not (3, 1)"),
        (lambda: CHECK.fields(Shape(1, 1)), "fast must be True or False, not 1"),
        (lambda: CHECK.fields(Shape(1, True, 2)), "name must be a str, not 2"),
        (lambda: CHECK.fields(Shape(1, True, inner=True)), "inner must be a whole number, not T"),
        (lambda: CHECK.within("n", 10**5000, 0, 1), "not a number of 16610 bits"),
    ],
)
def test_messages(call: Any, message: str) -> None:
    with pytest.raises(OneError) as error:
        call()
    assert message in str(error.value)


def test_functions_check_their_arguments() -> None:
    @CHECK.arguments
    def area(width: int, *, height: int | None = None) -> int:
        """Width times height."""
        return width * (height or 1)

    assert area(2, height=3) == 6
    assert area(2) == 2
    assert area.__doc__ == "Width times height."
    with pytest.raises(OneError, match=r"^height must be a whole number, not True"):
        area(2, height=True)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing"):
        area()  # type: ignore[call-arg]


def test_long_values_are_cut_to_one_line() -> None:
    assert shown("a\nb") == r"'a\nb'"
    assert shown("x" * 500) == "'" + "x" * 79 + "..."
    assert shown(10**5000) == "a number of 16610 bits"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (counted(0, "word"), "0 words"),
        (counted(1, "word"), "1 word"),
        (counted(2000, "word"), "2,000 words"),
        (counted(1, "access", "accesses"), "1 access"),
        (counted(3, "access", "accesses"), "3 accesses"),
    ],
)
def test_counted_takes_the_plural_unless_there_is_one(text: str, expected: str) -> None:
    assert text == expected
