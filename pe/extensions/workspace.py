"""A declared workspace (:mod:`isa.workspace`): ``set.ws``, and loads from its window.

:class:`pe.lsu.declaration.Declaration` reads it from memory, and :class:`pe.lsu.lowering.Lowering`
turns loads from the window into accesses to the image.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from hdl.bundle import Bundle
from hdl.ports import WORD_BITS
from isa.faults import FaultCause
from isa.workspace import DESCRIPTOR_BYTES
from pe.capabilities import Capabilities
from pe.codes import DECLARE, IssueClass
from pe.config import PeConfig

from .extension import ControlRules, DispatchStep, LsuExtension, ResponseStep

#: Low bits of a descriptor's address, which are 0.
DESCRIPTOR_SHIFT = (DESCRIPTOR_BYTES - 1).bit_length()
_WORD_BYTES = WORD_BITS // 8


def declaring(config: PeConfig) -> Bundle:
    """``declare``: the workspace of the descriptor at ``descriptor``, in units of descriptors, is
    to be declared; both are of one cycle. No other access is under way. ``forget``: there is no
    workspace from now on."""
    return Bundle(declare=1, descriptor=config.address_bits - DESCRIPTOR_SHIFT, forget=1)


def declared() -> Bundle:
    """``declared``, for one cycle: it is, or, with ``refused``, the descriptor declares none."""
    return Bundle(declared=1, refused=1)


def workspace_bounds(config: PeConfig) -> Bundle:
    """``known``: a workspace is declared; ``window``, ``window_end``, ``image``, ``image_end``: the
    first byte of its parts and the first behind them."""
    bits = config.address_bits
    return Bundle(known=1, window=bits, window_end=bits + 1, image=bits, image_end=bits + 1)


def growth(config: PeConfig) -> Bundle:
    """``grown``: the load with the ARC's entry ``grown_entry`` waits for one arrival more."""
    return Bundle(grown=1, grown_entry=config.entry_bits)


class _Workspace(LsuExtension):
    last_cause = FaultCause.WORKSPACE_EDGE
    needs_lengths = True

    def is_in(self, config: PeConfig) -> bool:
        return config.workspace

    def links(self, config: PeConfig) -> dict[tuple[str, str], Bundle]:
        return {
            ("issue", "load_store"): declaring(config),
            ("load_store", "issue"): declared(),
            ("load_store", "dispatch"): workspace_bounds(config),
            ("load_store", "arc"): growth(config),
        }

    def members(self, config: PeConfig) -> dict[str, dict[str, Any]]:
        """``end``: the DRAM byte behind a load or store. ``lowered``: it is a load from the window;
        ``final``: of its pieces, it is the last. ``bytes``: its length. ``fill``: ``address``, of
        the first byte to be filled in the scratchpad; ``last``: number of bytes less one;
        ``entry``: the load's entry in the ARC; ``final``: nothing of the load follows; ``data``:
        the bytes, zeros without bits."""
        return {
            "dispatched": {"end": config.address_bits + 1},
            "transfer": {"lowered": 1, "final": 1, "recorded": 0},
            "command": {"bytes": config.scratchpad_bits + 1},
            "fill": {
                "address": config.scratchpad_bits,
                "last": (_WORD_BYTES - 1).bit_length(),
                "entry": config.entry_bits,
                "final": 1,
                "data": 0,
            },
        }

    def outputs(self, config: PeConfig) -> dict[str, Bundle]:
        """``descriptor``: the cause of ``set.ws`` that the address of its descriptor is, or
        ``NONE``. ``settled``: every column of the commands taken has been asked for."""
        descriptor = FaultCause.DRAM_RANGE.bit_length()
        return {
            "range_check": Bundle(descriptor=descriptor, end=config.address_bits + 1),
            "request": Bundle(grown=1, grown_entry=config.entry_bits, settled=1),
        }

    def check(self, m: Module, unit: Any, end: Value) -> None:
        caps = Capabilities.of(unit.config)
        decoded = unit.decoded
        m.d.comb += unit.end.eq(end)
        declares = caps.is_unit(decoded.unit, IssueClass.CONTROL) & caps.control.is_one_of(
            decoded.control, [DECLARE]
        )
        with m.If(declares & unit.a[:DESCRIPTOR_SHIFT].any()):
            m.d.comb += unit.descriptor.eq(FaultCause.MISALIGNED)
        with m.Elif(declares & unit.a[unit.config.address_bits :].any()):
            m.d.comb += unit.descriptor.eq(FaultCause.DRAM_RANGE)

    def faults(self, unit: Any, check: Any) -> list[tuple[Value, FaultCause | Value]]:
        return [
            (check.descriptor != FaultCause.NONE, check.descriptor),
            # Nothing but the instruction at issue declares.
            (unit.declared & unit.refused, FaultCause.WORKSPACE),
        ]

    def control(self, m: Module, unit: Any, check: Any, quiet: Value, rules: ControlRules) -> None:
        # The load-store unit is not idle until it is declared.
        begins = unit.dispatch_empty & quiet & (check.descriptor == FaultCause.NONE)
        rules[DECLARE] = (unit.declared, [unit.declare.eq(begins)])
        m.d.comb += [
            unit.descriptor.eq(check.a[DESCRIPTOR_SHIFT:]),
            unit.forget.eq(unit.reset),
        ]

    def dispatch(self, m: Module, unit: Any, step: DispatchStep) -> None:
        """Mark loads from the window; stores to the workspace, and accesses across an edge of the
        window, fault."""
        instruction = step.instruction
        start, end = instruction.settings.dram, instruction.end
        lowered = Signal()
        forbidden = Signal(len(unit.cause))
        in_window = Signal()
        in_image = Signal()
        touches = unit.known & (instruction.bytes != 0)
        m.d.comb += [
            in_window.eq(touches & (start < unit.window_end) & (unit.window < end)),
            in_image.eq(touches & (start < unit.image_end) & (unit.image < end)),
            lowered.eq(
                in_window
                & ~step.store
                & ~step.register
                & (unit.window <= start)
                & (end <= unit.window_end)
            ),
            unit.load_store.payload.lowered.eq(lowered),
            unit.load_store.payload.bytes.eq(instruction.bytes),
        ]
        with m.If(step.store & (in_window | in_image)):
            m.d.comb += forbidden.eq(FaultCause.STORE_TO_WORKSPACE)
        with m.Elif(in_window & ~lowered):
            m.d.comb += forbidden.eq(FaultCause.WORKSPACE_EDGE)
        step.cause = Mux(
            step.cause == FaultCause.NONE,
            Mux(step.is_vector, FaultCause.NONE, forbidden),
            step.cause,
        )
        step.faulty = step.cause != FaultCause.NONE
        # The load-store unit adds columns to it.
        step.one_arrival = step.one_arrival | lowered
        step.lowered = lowered
        step.inside_image = in_image & (unit.image <= start) & (end <= unit.image_end)

    def request(self, m: Module, unit: Any, work: Any) -> None:
        m.d.comb += [
            # The load's last column arrives for the load itself.
            unit.grown.eq(
                unit.tag_taken & work.current.lowered & ~(work.current.final & work.done)
            ),
            unit.grown_entry.eq(work.current.entry),
            unit.settled.eq(~work.working & ~work.waits),
        ]

    def response(self, m: Module, unit: Any, step: ResponseStep) -> None:
        fill = unit.fill.payload
        m.d.comb += unit.fill.ready.eq(~step.loads)
        with m.If(~step.loads & unit.fill.valid):
            m.d.comb += [
                unit.write.address.eq(fill.address),
                unit.write.data.eq(fill.data),
                unit.write.strobe.eq(Cat(byte <= fill.last for byte in range(_WORD_BYTES))),
                unit.arrived.eq(fill.final),
                unit.arrived_entry.eq(fill.entry),
            ]


WORKSPACE = _Workspace()
