"""Groups of options: each group becomes one parameter of the command, when it is loaded."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter
from typing import Any, get_args


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` for Typer, each group replaced by its options. A group is a parameter that is
    annotated with the function that makes its value from options or other groups. The names of all
    options must differ."""

    @wraps(command)
    def run(**values: Any) -> None:
        _filled(command, values)

    options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in _options(command)]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in options}
    return run


def _options(make: Callable[..., Any]) -> list[Parameter]:
    """The options of a command or group, and of the groups in it."""
    options: list[Parameter] = []
    for parameter in inspect.signature(make).parameters.values():
        inner = _maker(parameter.annotation)
        options += [parameter] if inner is None else _options(inner)
    return options


def _filled(make: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """The result of a command or group with options of these values."""
    arguments = {}
    for name, parameter in inspect.signature(make).parameters.items():
        inner = _maker(parameter.annotation)
        arguments[name] = values[name] if inner is None else _filled(inner, values)
    return make(**arguments)


def _maker(annotation: Any) -> Callable[..., Any] | None:
    """What makes a group from its options; None: the parameter is an option."""
    return next((mark for mark in get_args(annotation) if inspect.isfunction(mark)), None)
