"""Groups of options: each group becomes one parameter of the command."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, get_args


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` for Typer, each group replaced by its options. A group is a parameter whose type
    is a dataclass with options as fields, or that is annotated with the function that makes its
    value from options. The names of all options must differ."""

    def options_of(make: Callable[..., Any]) -> Mapping[str, Parameter]:
        return inspect.signature(make).parameters

    parameters: list[Parameter] = []
    groups: dict[str, Callable[..., Any]] = {}
    for parameter in inspect.signature(command).parameters.values():
        make = _maker(parameter.annotation)
        options = [parameter] if make is None else options_of(make).values()
        parameters += [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]
        if make is not None:
            groups[parameter.name] = make

    @wraps(command)
    def run(**values: Any) -> None:
        groups_filled = {
            name: make(**{option: values.pop(option) for option in options_of(make)})
            for name, make in groups.items()
        }
        command(**values, **groups_filled)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _maker(annotation: Any) -> Callable[..., Any] | None:
    """What makes a group from its options; None: the parameter is an option."""
    if is_dataclass(annotation) and isinstance(annotation, type):
        return annotation
    return next((mark for mark in get_args(annotation) if inspect.isfunction(mark)), None)
