"""The declaration of an extension of the load-store unit: what it adds to an engine's units.

:mod:`pe.extensions.units` lists the extensions. Units take signals, layout members, counters and
rules from the declarations. Only the load-store unit, which contains the extensions' hardware, and
the ARC, whose loads wait for further arrivals with a workspace, name specific extensions.
"""

# An extension overrides only what it needs.
# ruff: noqa: B027

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

from amaranth.hdl import Module, Value

from hdl.bundle import Bundle
from isa.faults import FaultCause
from pe.config import PeConfig

#: Code of an issue-stage instruction -> whether it ends now, and its effect.
ControlRules = dict[int, tuple[Value | int, list[Any]]]


@dataclass
class DispatchStep:
    """The instruction at dispatch, as extensions may change it.

    Attributes:
        instruction: of :func:`pe.frontend.dispatch.dispatched`.
        is_vector, store, register: it goes to the vector unit; else it is a store, or moves a
            register.
        fire: it goes to its unit in this cycle.
        cause: of its fault, or ``NONE``. faulty: it has one.
        one_arrival: its transfer ends with one arrival, however many columns it has.
        lowered, inside_image: it is a load from the window of the workspace; all of its bytes are
            in the image. With a workspace alone.
    """

    instruction: Any
    is_vector: Value
    store: Value
    register: Value
    fire: Value
    cause: Value
    faulty: Value
    one_arrival: Value
    lowered: Value | None = None
    inside_image: Value | None = None


@dataclass(frozen=True)
class ResponseStep:
    """A beat of the memory's response that is written to the scratchpad.

    Attributes:
        beat: of the response. loads: there is one to be written.
        entry: of the table. place: of the scratchpad, in ``entry``.
    """

    beat: Any
    loads: Value
    entry: Any
    place: Any


class LsuExtension(ABC):
    """An extension. Except for :meth:`is_in`, the methods here add nothing.

    Attributes:
        name: instance name of its counters, if any.
        last_cause: the highest fault that it adds.
        needs_lengths: loads and stores carry their length. reads_scratchpad: it uses the scratchpad
            port of stores.
        counters: its events, each with the signal that counts it.
    """

    name: str
    last_cause: FaultCause = FaultCause.NONE
    needs_lengths = False
    reads_scratchpad = False
    counters: ClassVar[Mapping[IntEnum, str]] = {}

    @abstractmethod
    def is_in(self, config: PeConfig) -> bool:
        """Whether an engine with ``config`` has it."""

    def links(self, config: PeConfig) -> dict[tuple[str, str], Bundle]:
        """Signals from one unit of the engine to another, by the units' names in
        :class:`pe.core.Pe`."""
        return {}

    def members(self, config: PeConfig) -> dict[str, dict[str, Any]]:
        """Members of layouts: ``dispatched`` (:func:`pe.frontend.dispatch.dispatched`, each of a
        member of the same name of the range check), ``transfer`` and ``command`` (with and beside
        :func:`pe.ports.transfer_layout`), ``fill`` (:func:`pe.lsu.ports.fill_beat`) and
        ``entry`` (:func:`pe.lsu.ports.load_table_entry`)."""
        return {}

    def outputs(self, config: PeConfig) -> dict[str, Bundle]:
        """Outputs of units within the front end and the load-store unit: ``range_check``,
        ``request`` and ``response``."""
        return {}

    def check(self, m: Module, unit: Any, end: Value) -> None:
        """Add to the range check ``unit``; a transfer ends before the DRAM byte ``end``."""

    def faults(self, unit: Any, check: Any) -> list[tuple[Value, FaultCause | Value]]:
        """Conditions of the instruction at the issue stage ``unit``, and their causes."""
        return []

    def control(self, m: Module, unit: Any, check: Any, quiet: Value, rules: ControlRules) -> None:
        """Add to what instructions of the issue stage ``unit`` do; ``quiet``: no access is under
        way."""

    def dispatch(self, m: Module, unit: Any, step: DispatchStep) -> None:
        """Add to the dispatch stage ``unit``."""

    def request(self, m: Module, unit: Any, work: Any) -> None:
        """Add to the request side ``unit`` of the load-store unit, whose state is ``work``."""

    def response(self, m: Module, unit: Any, step: ResponseStep) -> None:
        """Add to the response side ``unit`` of the load-store unit."""
