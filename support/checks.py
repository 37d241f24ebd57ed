"""Checks of values from the user, shared by all configurations, shapes and plans.

Each error class has one :class:`Checks`, whose methods raise it with one line: the value's name,
what is allowed and what was given. ``True`` and ``False`` don't count as numbers here, nor numbers
as flags.
"""

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from .errors import VipError

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Most characters of a value in a message.
_MOST_SHOWN = 80


def shown(value: object) -> str:
    """``value`` as a message shows it: its repr, on one line of limited length."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to write numbers of thousands of digits.
        text = f"a number of {value.bit_length()} bits" if isinstance(value, int) else "?"
    text = " ".join(text.split())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _field_hints(kind: Any) -> list[tuple[str, Any]]:
    """Name and type of each field of a dataclass."""
    hints = _hints(kind)
    return [(field.name, hints[field.name]) for field in fields(kind)]


class Checks:
    """Checks that raise ``error``.

    Parameters:
        error: class of the exceptions.
    """

    def __init__(self, error: type[VipError]) -> None:
        self._error = error

    def whole(self, name: str, value: object) -> None:
        """Refuse anything but a whole number."""
        if not _is_whole(value):
            raise self._error(f"{name} must be a whole number, not {shown(value)}")

    def within(self, name: str, value: object, low: int, high: int) -> None:
        """Refuse anything but a whole number from ``low`` to ``high``."""
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._error(
                f"{name} must be a whole number from {low} to {high}, not {shown(value)}"
            )

    def at_least(self, name: str, value: object, low: int) -> None:
        """Refuse anything but a whole number of at least ``low``."""
        if type(value) is not int:
            self.whole(name, value)
        if isinstance(value, int) and value < low:
            raise self._error(f"{name} must be at least {low}, not {shown(value)}")

    def power_of_two(self, name: str, value: object, low: int, high: int) -> None:
        """Refuse anything but a power of two from ``low`` to ``high``."""
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not is_integer or not low <= value <= high or value & (value - 1):  # type: ignore[operator]
            raise self._error(
                f"{name} must be a power of two from {low} to {high}, not {shown(value)}"
            )

    def one_of(self, name: str, value: object, allowed: Collection[Any]) -> None:
        """Refuse anything but one of ``allowed``, numbers or texts; the type must match, too."""
        if not any(type(value) is type(item) and value == item for item in allowed):
            raise self._error(
                f"{name} must be one of {', '.join(map(str, allowed))}, not {shown(value)}"
            )

    def flag(self, name: str, value: object) -> None:
        """Refuse anything but ``True`` or ``False``."""
        if not isinstance(value, bool):
            raise self._error(f"{name} must be True or False, not {shown(value)}")

    def kind(self, name: str, value: object, *kinds: type) -> None:
        """Refuse anything but an instance of one of ``kinds``."""
        if not isinstance(value, kinds):
            names = " or ".join(_with_article(kind.__name__) for kind in kinds)
            raise self._error(f"{name} must be {names}, not {shown(value)}")

    def fields(self, instance: Any) -> None:
        """Refuse a dataclass with a field whose type is not its annotation's: ``int``, ``bool``, a
        class, or one of these or None; other annotations are not checked."""
        kind: Any = type(instance)
        for name, hint in _field_hints(kind):
            self._typed(name, getattr(instance, name), hint)

    def arguments(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """``function``, which refuses arguments of other types than their annotations, as
        :meth:`fields` does."""
        names = tuple(inspect.signature(function).parameters)

        @wraps(function)
        def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            hints = _hints(function)
            # Python itself refuses arguments beyond the parameters.
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                if name in hints:
                    self._typed(name, value, hints[name])
            return function(*args, **kwargs)

        return checked

    def _typed(self, name: str, value: object, hint: object) -> None:
        if type(value) is hint:
            return
        if hint is int:
            self.whole(name, value)
        elif hint is bool:
            self.flag(name, value)
        elif isinstance(hint, type):
            self.kind(name, value, hint)
        elif isinstance(hint, UnionType) and value is not None:
            match [part for part in get_args(hint) if part is not NoneType]:
                case [only]:
                    self._typed(name, value, only)
