"""A single declaration of the data exchanged between Python and the C++ models.

A job or a result is a dataclass. Its structure for :mod:`ctypes` and its declaration in C++ follow
from the types of its fields:

================================================ ===============================================
``int``, :data:`Signed`                          ``uint64_t``, ``int64_t``
``bool``                                         ``bool``
an :class:`enum.IntEnum`                         ``uint64_t``; ``TOO_LONG`` is declared ``kTooLong``
:data:`Text`                                     ``const char*``
:data:`Share`, :data:`Chance`                    ``uint64_t``, of 65536
a tuple with ``C(kind * n)``                     an array
a tuple or bytes with ``C(kind)``                a pointer, and a field ``..._count``
================================================ ===============================================

Fields of any other type exist only in Python.

Data that Python and C++ change in place, or that hold pointers, are a :class:`Record`: a structure
whose members follow from its annotations in the same way.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, Structure, c_bool, c_char_p, c_int64, c_uint64
from dataclasses import dataclass, fields, is_dataclass
from enum import IntEnum
from functools import cache
from inspect import get_annotations
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_CERTAIN = 65536
_NAMES = {
    c_bool: "bool",
    ctypes.c_uint8: "uint8_t",
    ctypes.c_int16: "int16_t",
    ctypes.c_uint16: "uint16_t",
    ctypes.c_int32: "int32_t",
    ctypes.c_uint32: "uint32_t",
    c_int64: "int64_t",
    c_uint64: "uint64_t",
    c_char_p: "const char*",
    ctypes.c_void_p: "void*",
}


@dataclass(frozen=True)
class C:
    """A field's representation in C++, where its type does not determine it.

    Attributes:
        kind: type of :mod:`ctypes`, or a dataclass: of the field, or of an element where it is a
            pointer.
        write: makes the C++ value from the field's value, or from an element.
    """

    kind: Any
    write: Callable[[Any], Any] = int


U8 = Annotated[int, C(ctypes.c_uint8)]
U16 = Annotated[int, C(ctypes.c_uint16)]
U32 = Annotated[int, C(ctypes.c_uint32)]
Signed = Annotated[int, C(c_int64)]
Text = Annotated[str, C(c_char_p, str.encode)]
#: A part of a whole or a chance, 0..1.
Share = Annotated[float, C(c_uint64, lambda share: round(share * _CERTAIN))]
#: A chance above 0, up to 1.
Chance = Annotated[float, C(c_uint64, lambda chance: max(1, round(chance * _CERTAIN)))]


@dataclass(frozen=True)
class _Field:
    """A field in C++: its name, its type (of an element if it points to ``many``), its type in
    Python, how a value or an element is written, whether it is an ``array``."""

    name: str
    kind: Any
    python: Any
    write: Callable[[Any], Any]
    many: bool
    array: bool


@cache
def _fields(kind: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        field
        for name in (item.name for item in fields(kind))
        if (field := _field(name, hints[name])) is not None
    )


def _field(name: str, hint: Any) -> _Field | None:
    python, mark = (hint, None) if get_origin(hint) is not Annotated else get_args(hint)[:2]
    if isinstance(mark, C):
        array = issubclass(mark.kind, ctypes.Array)
        many = not array and (get_origin(python) is tuple or python is bytes)
        nested: bool = is_dataclass(mark.kind)
        if nested:
            return _Field(name, structure(mark.kind), mark.kind, pack, many, array)
        return _Field(name, mark.kind, python, mark.write, many, array)
    if isinstance(python, type) and issubclass(python, int):
        return _Field(name, c_bool if python is bool else c_uint64, python, int, False, False)
    return None


class _RecordType(type(Structure)):  # type: ignore[misc]
    """Adds a structure's members once :mod:`ctypes` knows it; since Python 3.14 a class under
    construction has no annotations."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], numbers: Sequence[str] = ()
    ) -> Any:
        return super().__new__(cls, name, bases, body)

    def __init__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], numbers: Sequence[str] = ()
    ) -> None:
        super().__init__(name, bases, body)
        cls._fields_ = [
            *((number, c_uint64) for number in numbers),
            *((member, _kind(hint)) for member, hint in get_annotations(cls).items()),
        ]


if TYPE_CHECKING:

    class Record(Structure):
        """As below."""

        def __init_subclass__(cls, *, numbers: Sequence[str] = ()) -> None: ...

else:

    class Record(Structure, metaclass=_RecordType):
        """A structure whose members are its annotations: ``int`` (64 bits), ``bool``, another
        record, or what is marked with :class:`C`.

        Parameters:
            numbers: names of members in front of these, ``int`` each.
        """


def _kind(hint: Any) -> Any:
    """The type in C++ of a member of a record."""
    if get_origin(hint) is Annotated:
        return get_args(hint)[1].kind
    return {int: c_uint64, bool: c_bool}.get(hint, hint)


@cache
def structure(kind: Any) -> type[ctypes.Structure]:
    """The structure of a dataclass, named ``Vip`` and its name."""
    members: list[tuple[str, Any]] = []
    for field in _fields(kind):
        members.append((field.name, POINTER(field.kind) if field.many else field.kind))
        if field.many:
            members.append((f"{field.name}_count", c_uint64))
    return type(f"Vip{kind.__name__}", (ctypes.Structure,), {"_fields_": members})


def pack(value: Any) -> ctypes.Structure:
    """``value``, a dataclass, as its structure, which keeps everything that it points to alive."""
    shape: Any = type(value)
    raw = structure(shape)()
    for field in _fields(shape):
        content = getattr(value, field.name)
        if field.many:
            kind = field.kind * len(content)
            plain = isinstance(content, bytes)
            elements = kind.from_buffer_copy(content) if plain else kind(*map(field.write, content))
            setattr(raw, field.name, ctypes.cast(elements, POINTER(field.kind)))
            setattr(raw, f"{field.name}_count", len(content))
        else:
            setattr(raw, field.name, field.kind(*content) if field.array else field.write(content))
    return raw


def unpack(kind: Callable[..., _T], raw: ctypes.Structure, **others: Any) -> _T:
    """The dataclass ``kind`` from its structure; ``others`` are fields that C++ does not know."""
    values: dict[str, Any] = {}
    for field in _fields(kind):
        content = getattr(raw, field.name)
        if field.array:
            values[field.name] = tuple(content)
        elif field.python is str:
            values[field.name] = (content or b"").decode()
        else:
            values[field.name] = field.python(content)
    return kind(**values, **others)


def declarations(*kinds: Any) -> str:
    """C++ that declares the structures and enumerations of ``kinds``: dataclasses, or structures
    that have no dataclass."""
    return "".join(dict.fromkeys(text for kind in kinds for text in _declared(kind)))


def _declared(kind: Any) -> Iterator[str]:
    named = kind
    if is_dataclass(kind):
        for field in _fields(named):
            if is_dataclass(field.python):
                yield from _declared(field.python)
            elif isinstance(field.python, type) and issubclass(field.python, IntEnum):
                yield _enumeration(field.python)
        kind = structure(named)
    members = "".join(f"    {_member(name, of)};\n" for name, of, *_ in kind._fields_)
    yield f"struct {kind.__name__} {{\n{members}}};\n"


def _member(name: str, kind: Any) -> str:
    if kind in _NAMES:
        return f"{_NAMES[kind]} {name}"
    if issubclass(kind, ctypes.Array):
        return _member(f"{name}[{kind._length_}]", kind._type_)
    if issubclass(kind, ctypes._Pointer):
        return _member(f"* {name}", kind._type_).replace(" * ", "* ")
    return f"{kind.__name__} {name}"


def _enumeration(kind: type[IntEnum]) -> str:
    names = [f"k{item.name.title().replace('_', '')} = {item.value}" for item in kind]
    return f"enum {kind.__name__} : uint64_t {{ {', '.join(names)} }};\n"
