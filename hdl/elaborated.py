"""Cache of elaborated modules, for other designs with the same parts."""

import gc
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple


class ModulePort(NamedTuple):
    """A port of a module: name, whether it is an input, width, signedness."""

    name: str
    is_input: bool
    width: int
    signed: bool


#: What identifies a module: class, parameters, ports, base of its name.
ModuleKey = tuple[type, str, tuple[ModulePort, ...], str]


@dataclass(eq=False)
class ElaboratedModule:
    """An elaborated component.

    Attributes:
        number: in the placeholder that stands for the module's name.
        key: what decides it. flat: parameters for its header.
        parts: modules that it instantiates, by their numbers.
        rtlil: text of it and of the parts that belong to it alone. clocks: clocks and resets that
            it uses, by their names in Verilog.
    """

    number: int
    key: ModuleKey
    flat: Mapping[str, str]
    parts: "dict[int, ElaboratedModule]" = field(default_factory=dict)
    rtlil: str = ""
    clocks: tuple[str, ...] = ()

    @property
    def kind(self) -> type:
        """Class of the component."""
        return self.key[0]

    @property
    def where(self) -> str:
        """Full name of the component's class."""
        return full_name(self.kind)


#: Most text of elaborated modules that a process caches.
_KEPT_BYTES = 64 << 20


class _Elaborated:
    """Modules that this process has elaborated, whose parts are among them."""

    def __init__(self) -> None:
        self.modules: dict[ModuleKey, ElaboratedModule] = {}
        self.bytes = 0
        #: Held while a design is elaborated: modules of one design refer to each other.
        self.lock = threading.RLock()
        self.count = 0

    def number(self) -> int:
        """A number that no other module has."""
        self.count += 1
        return self.count

    def add(self, module: ElaboratedModule) -> None:
        """Add ``module`` to the cache."""
        self.modules[module.key] = module
        self.bytes += len(module.rtlil)

    def trim(self) -> None:
        """Clear the cache, between designs, when it has grown too large."""
        if self.bytes > _KEPT_BYTES:
            self.modules.clear()
            self.bytes = 0


elaborated = _Elaborated()


@contextmanager
def no_collections() -> Iterator[None]:
    """Disable Python's garbage collection within the block.

    It takes a quarter of the elaboration time, for little garbage: some 100 MB for a vault with its
    engines.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def full_name(kind: type) -> str:
    """Name of a class with its module."""
    return f"{kind.__module__}.{kind.__qualname__}"
