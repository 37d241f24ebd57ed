"""What all commands have in common: groups of options, each of which becomes one parameter when the
command is loaded, and an answer, which ``--json`` writes."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Any, NamedTuple, get_args

import typer

from vip.output import write_json

from .commands.options import JsonOption
from .errors import UserError


class Answer(NamedTuple):
    """The end of a command that has printed its results.

    Attributes:
        data: the results, for ``--json``.
        code: exit code.
        failure: one line of the error with which the command ends; "": none.
        picture: that was drawn, for the page on the result.
    """

    data: Mapping[str, object]
    code: int = 0
    failure: str = ""
    picture: Path | None = None


def grouped(command: Callable[..., Answer]) -> Callable[..., None]:
    """``command`` for Typer, with ``--json``, and each group replaced by its options. A group is a
    parameter that is annotated with the function that makes its value from options or other groups.
    The names of all options must differ."""

    @wraps(command)
    def run(json: Path | None, **values: Any) -> None:
        data, code, failure, picture = _filled(command, values)
        write_json(json, data, picture)
        if failure:
            raise UserError(failure)
        if code:
            raise typer.Exit(code)

    options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in _options(command)]
    options.append(Parameter("json", Parameter.KEYWORD_ONLY, default=None, annotation=JsonOption))
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
