"""Response side of the load-store unit: puts loaded words where their tags say."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component, Probes
from hdl.ports import BYTE_BITS, WORD_BITS, memory_response
from isa.table import Opcode
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.extensions.extension import ResponseStep
from pe.extensions.units import extension_outputs, extensions
from pe.ports import FAILURE, ScratchpadWritePort, arrival, loaded_register

from .ports import fill_beat, is_store, load_table_entry, register_widths

_WORD_BYTES = WORD_BITS // 8


class LoadStoreResponse(Component):
    """Takes one beat a cycle; a beat is written to the scratchpad in the cycle after it is taken.

    A value for a register is offered in the cycle after that until it is accepted; meanwhile a
    second one stalls the memory.

    Members:
        response: stream of :func:`hdl.ports.memory_response`, in.
        lookup, lookup_tag: out; read the table. entry: in, the cycle after: its entry, held while
            ``lookup`` is 0.
        write: scratchpad write port, out.
        arrived, arrived_entry: out; a column of a load is in the scratchpad at the end of this
            cycle.
        freed, freed_tag: out; the request is complete.
        result_valid, result_index, result: out; value for a register. result_ready: in.
        error: out; the memory answered with an error. overflow: out; a value is too large for its
            register, which does not get it.
        idle: out; no beat and no value is left here.

    With a workspace also ``fill``: stream of :func:`pe.lsu.ports.fill_beat`, in, whose beats are
    written in cycles that no response needs. Extensions have further outputs
    (:meth:`pe.extensions.extension.LsuExtension.outputs`).
    """

    probes = Probes(
        "beat", "following", "next_address", "result", "result_index", "result_valid", "valid"
    )

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        fill = {"fill": In(stream.Signature(fill_beat(config)))} if config.workspace else {}
        super().__init__(
            {
                "response": In(stream.Signature(memory_response(config.tag_bits))),
                "lookup": Out(1),
                "lookup_tag": Out(config.tag_bits),
                "entry": In(load_table_entry(config)),
                "write": Out(ScratchpadWritePort(config)),
                **arrival(config).outputs(),
                "freed": Out(1),
                "freed_tag": Out(config.tag_bits),
                **loaded_register(config).outputs(),
                "result_ready": In(1),
                **FAILURE.outputs(),
                "idle": Out(1),
                **fill,
                **extension_outputs(config, "response"),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        beat: Any = Signal(memory_response(config.tag_bits), reset_less=True)
        valid = Signal()
        go = Signal()
        entry = self.entry
        caps = Capabilities.of(config)
        store = is_store(config, entry)
        loads_register = Signal()
        loads = Signal()
        register: Value = Const(int(bool(caps.registers.loads)), 1)
        if caps.registers.loads and caps.transfers.loads:
            register = entry.register
        m.d.comb += [
            loads_register.eq(valid & register & ~store),
            loads.eq(valid & ~register & ~store),
        ]
        room = ~loads_register | ~self.result_valid | self.result_ready
        # Only a shared port says when it is ready, as it is for what asks for no rows.
        waits = config.shared_ports and caps.transfers.loads
        m.d.comb += [
            go.eq(room & self.write.ready if waits else room),
            self.response.ready.eq(~valid | go),
            self.lookup.eq(self.response.valid & self.response.ready),
            self.lookup_tag.eq(self.response.payload.tag),
        ]
        with m.If(self.response.ready):
            m.d.sync += valid.eq(self.response.valid)
        with m.If(self.lookup):
            m.d.sync += beat.eq(self.response.payload)

        if caps.transfers.loads:
            self._to_scratchpad(m, beat, loads, valid & go)
        if caps.registers.loads:
            self._to_register(m, beat, loads_register, go)
        m.d.comb += [
            self.freed.eq(valid & go & beat.last),
            self.freed_tag.eq(beat.tag),
            self.error.eq(valid & beat.last & beat.error),
            self.idle.eq(~valid & ~self.result_valid),
        ]
        return m

    def _to_scratchpad(self, m: Module, beat: Any, loads: Value, moves: Value) -> None:
        """Write a beat that ``loads`` the scratchpad; ``moves``: a beat leaves the stage."""
        config = self.config
        entry = self.entry
        # Words of one response follow each other in the scratchpad.
        following = Signal()
        address = Signal(config.scratchpad_bits)
        next_address = Signal(config.scratchpad_bits, reset_less=True)
        place = entry.target.scratchpad
        first_byte = Mux(following, 0, entry.first)
        last_byte = Mux(beat.last, place.last, _WORD_BYTES - 1)
        m.d.comb += [
            address.eq(Mux(following, next_address, place.address)),
            self.write.address.eq(address),
            self.write.data.eq(beat.data),
            self.write.strobe.eq(
                Cat(
                    loads & (byte >= first_byte) & (byte <= last_byte)
                    for byte in range(_WORD_BYTES)
                )
            ),
            # Without shared ports each load moves at once; `moves` would only add gates.
            self.arrived.eq(
                moves & loads & beat.last if config.shared_ports else loads & beat.last
            ),
            self.arrived_entry.eq(place.entry),
        ]
        if config.shared_ports:
            row, whole = next_address[BYTE_BITS], next_address[:BYTE_BITS].any()
            both = Mux(beat.last, place.crosses, whole).replicate(2)
            rows = Mux(following, Cat(~row, row) | both, place.rows)
            m.d.comb += self.write.rows.eq(rows & loads.replicate(2))
        with m.If(moves):
            m.d.sync += [following.eq(~beat.last), next_address.eq(address + _WORD_BYTES)]
        step = ResponseStep(beat, loads, entry, place)
        for extension in extensions(config):
            extension.response(m, self, step)

    def _to_register(self, m: Module, beat: Any, loads: Value, go: Value) -> None:
        """Hold the value of a beat that ``loads`` a register; ``go``: there is room for it."""
        config = self.config
        bits = config.register_width
        entry = self.entry
        caps = Capabilities.of(config).registers
        target = entry.target.register
        index = Signal(config.register_bits, reset_less=True)
        result = Signal(bits, name="held_result", reset_less=True)
        widths = register_widths(config, Opcode.LD_REG)
        # An element lies at a multiple of its bytes.
        aligned = min(widths).value
        shifted = beat.data >> Cat(Const(0, 3 + aligned), entry.first[aligned:])
        extended = Signal(bits)
        overflow = Signal()
        with m.Switch(target.width):
            for width in widths:
                with m.Case(caps.width.code(width)):
                    value = shifted[: width.bits]
                    m.d.comb += extended.eq(value.as_signed())
                    if width.bits > bits:
                        upper = value[bits - 1 :]
                        m.d.comb += overflow.eq(upper.any() & ~upper.all())
        with m.If(self.result_ready):
            m.d.sync += self.result_valid.eq(0)
        with m.If(loads & go):
            m.d.sync += [
                self.result_valid.eq(~overflow),
                index.eq(target.index),
                result.eq(extended),
            ]
        m.d.comb += [
            self.overflow.eq(loads & overflow),
            self.result_index.eq(index),
            self.result.eq(result),
        ]
