"""Options of a command in groups: each group is a dataclass that the command takes as one
parameter."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any

__all__ = ["grouped"]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` as Typer takes it: in place of each parameter whose type is a dataclass, the
    options that the dataclass's fields are annotated with. The names of all must differ."""
    parameters: list[Parameter] = []
    groups: dict[str, type] = {}
    for parameter in inspect.signature(command).parameters.values():
        group = parameter.annotation
        if not is_dataclass(group) or not isinstance(group, type):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group
        for field in fields(group):
            default = Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                Parameter(
                    field.name, Parameter.KEYWORD_ONLY, default=default, annotation=field.type
                )
            )

    @wraps(command)
    def run(**values: Any) -> None:
        groups_filled = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **groups_filled)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
