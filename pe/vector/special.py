"""Special units: self-declared functional units beside the vector unit's stages.

The control steps through their instructions like any other, and hands each beat to the unit; the
result of a word enters the pipeline again where it is scaled, instead of the stages' own result.
:mod:`pe.vector.units` lists the units; control, stages and writeback, the reports by units and the
proofs read the properties of a unit from its declaration.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from amaranth.hdl import Value
from amaranth.lib import data

from hdl.component import Component
from pe.config import PeConfig


@dataclass(frozen=True)
class SpecialStep:
    """Properties of a beat that the control provides.

    Attributes:
        active: it belongs to the unit. function: code of the function. fx: FX.
        pass_index: which of the word's passes it is.
    """

    active: Value
    function: Value
    fx: Value
    pass_index: Value


class SpecialPort(Protocol):
    """The declaration of a special unit.

    Attributes:
        name: as in :mod:`isa.units`, where its instructions are; ports to it have this name.
        cycles: from the beat of a word's last pass to its result, 0 to 6. The frame delays a result
            that comes sooner than the sixth cycle, in which the value of other instructions does.
    """

    name: str
    cycles: int

    def beat(self) -> data.StructLayout:
        """Layout of the fields of a beat that the unit needs."""

    def begin(self, beat: Any, step: SpecialStep) -> list[Any]:
        """Assignments that make ``beat``, of :meth:`beat`, from ``step``."""

    def component(self, config: PeConfig) -> Component:
        """The hardware, for a configuration with one of its instructions.

        Members: ``word`` (the first operand's word) and ``beat``, in; ``result`` (a word) and
        ``valid``, out, :attr:`cycles` after the beat of the last pass.
        """
