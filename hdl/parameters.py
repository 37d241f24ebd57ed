"""Constructor parameters of a component, as text for comparison and display."""

import inspect
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum

from amaranth.hdl import Shape
from amaranth.lib import data, wiring

from support.errors import VipError

_PLAIN = (bool, int, float, str, bytes, type(None))


class ParameterError(VipError):
    """A component with an unsupported parameter; the message names it and the reason."""


def component_parameters(component: object) -> dict[str, object]:
    """The constructor parameters of ``component``, read from its attributes of the same names.

    Raises:
        ParameterError: a parameter without such an attribute, or a constructor that takes any
            number of them.
    """
    parameters: dict[str, object] = {}
    # Not the class's signature: Python 3.11.2 takes that of Amaranth's `__new__` if `__init__` is
    # inherited.
    constructor = inspect.signature(type(component).__init__)
    for parameter in list(constructor.parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ParameterError(f"the constructor must name its parameters, not *{parameter.name}")
        if not hasattr(component, parameter.name):
            raise ParameterError(
                f"constructor parameter {parameter.name!r} is not an attribute of the component, "
                f"so equal components can't be recognised"
            )
        parameters[parameter.name] = getattr(component, parameter.name)
    return parameters


def describe(value: object) -> str:
    """``value`` as text: equal values give equal text in every Python process.

    Raises:
        ParameterError: a kind of value that is not plain, immutable data.
    """
    # An enumeration's member may be an int too, and must not equal the plain number.
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, _PLAIN):
        return repr(value)
    if is_dataclass(value) and not isinstance(value, type):
        if not isinstance(value, Hashable):
            raise ParameterError(f"dataclass {type(value).__qualname__} must be frozen")
        inside = ", ".join(f"{f.name}={describe(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__qualname__}({inside})"
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(describe(item) for item in value)) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(describe(item) for item in value) + ")"
    if isinstance(value, Mapping):
        items = ", ".join(f"{describe(key)}: {describe(item)}" for key, item in value.items())
        return f"{{{items}}}"
    if isinstance(value, (Shape, data.Layout, wiring.Signature)):
        return repr(value)
    if isinstance(value, type) and issubclass(value, Enum):
        # Without its Python module, so that Verilog names don't change when a source file moves.
        members = ", ".join(f"{item.name}={describe(item.value)}" for item in value)
        return f"{value.__qualname__}({members})"
    raise ParameterError(
        f"a parameter of type {type(value).__qualname__} is not plain data (number, text, "
        f"enumeration, frozen dataclass, frozenset, tuple or shape)"
    )


def _default(field: Field[object]) -> object:
    """The default value of ``field``."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def flat_parameters(parameters: Mapping[str, object]) -> dict[str, str]:
    """``parameters`` for display: dataclasses opened into ``name.field``, long sets counted. A
    field with "optional" in its metadata is left out while it has its default."""
    flat: dict[str, str] = {}
    for name, value in parameters.items():
        if is_dataclass(value) and not isinstance(value, type):
            inner = {
                field.name: getattr(value, field.name)
                for field in fields(value)
                if not (
                    "optional" in field.metadata and getattr(value, field.name) == _default(field)
                )
            }
            for key, text in flat_parameters(inner).items():
                flat[f"{name}.{key}"] = text
        elif isinstance(value, frozenset) and len(value) > 1:
            flat[name] = f"{len(value)} items"
        else:
            flat[name] = describe(value)
    return flat
