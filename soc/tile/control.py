"""The connection of a vault's tile to the control bus."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import AxiResponse
from hdl.component import Component
from hdl.counter_bank import COUNTER_BITS
from hdl.emission import shared_instance
from hdl.stream_buffer import StreamBuffer
from memory.controller.counters import INDEX_BITS as VAULT_INDEX_BITS
from pe.config import PeConfig
from pe.interface import ControlPort, PeState
from soc.chip.control_bus import (
    INDEX_BITS,
    ControlBitmap,
    ControlCommand,
    ControlLink,
    ControlSpace,
    control_message,
    register_index,
    register_match,
)
from soc.host.register_map import GROUP_PES, MAX_COUNTERS, PE, VAULT
from soc.host.register_types import WORD_BYTES, Block

#: Bits of the number of a network counter.
NETWORK_INDEX_BITS = (MAX_COUNTERS - 1).bit_length()

_DATA_BITS = WORD_BYTES * 8
_GROUP_BITS = (GROUP_PES - 1).bit_length()
#: Cycles that a read waits before it moves on: a counter's number goes out, its value returns in
#: one or two, and the response is selected.
READ_CYCLES = 3


class TileControl(Component):
    """Performs messages of the control bus on the processing engines (PEs) of a tile, reads the
    counters of the tile, and passes every message on (:mod:`soc.chip.control_bus`).

    A message moves on in one cycle, a read that addresses this tile in five. No message waits for a
    PE: a command that a PE can't perform at once is answered with SLVERR. The handshakes on both
    sides depend only on registers.

    Parameters:
        pe: configuration of the PEs.
        pes: number of PEs.

    Members:
        input (in, :class:`soc.chip.control_bus.ControlLink`): from the previous tile or the host.
        output (out, ControlLink): to the next tile or the host.
        control (in, ``pes`` :class:`pe.interface.ControlPort`): seen from the engine, so that
            ``connect(m, tile_control.control[slot], pe.control)`` joins them.
        vault (in, INDEX_BITS): index of this vault in the chip.
        first_pe (in, INDEX_BITS): index in the chip of the PE in slot 0, which the others follow.
        vault_counter_index (out, VAULT_INDEX_BITS):
            :class:`memory.controller.counters.VaultCounter` to read.
        vault_counter_value (in, COUNTER_BITS): one or two cycles later.
        network_counter_index (out, NETWORK_INDEX_BITS): counter of the network's node to read.
        network_counter_value (in, COUNTER_BITS): one or two cycles later.
    """

    def __init__(self, *, pe: PeConfig, pes: int) -> None:
        self.pe = pe
        self.pes = pes
        super().__init__(
            {
                "input": In(ControlLink()),
                "output": Out(ControlLink()),
                "control": In(ControlPort(pe)).array(pes),
                "vault": In(INDEX_BITS),
                "first_pe": In(INDEX_BITS),
                "vault_counter_index": Out(VAULT_INDEX_BITS),
                "vault_counter_value": In(COUNTER_BITS),
                "network_counter_index": Out(NETWORK_INDEX_BITS),
                "network_counter_value": In(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        buffer = StreamBuffer(shape=control_message())
        m.submodules.buffer = shared_instance(buffer, platform)
        connect(m, buffer.output, flipped(self.output.message))
        message: Any = self.input.message.payload

        numbers = [Signal(INDEX_BITS, name=f"number_{slot}") for slot in range(self.pes)]
        m.d.sync += [number.eq(self.first_pe + slot) for slot, number in enumerate(numbers)]
        selected = Signal(self.pes, init=-1)
        to = self._addressed(m, message, numbers, selected)

        # A write is performed in the cycle in which it moves on. A read stays until it has its
        # response, so ready does not depend on the message offered.
        fire, write_fire, capture = Signal(), Signal(), Signal()
        busy = Signal()
        captured: Any = Signal(control_message())
        captured_pe, captured_group, captured_vault = Signal(self.pes), Signal(self.pes), Signal()
        m.d.comb += [
            self.input.message.ready.eq(buffer.input.ready & ~busy),
            fire.eq(self.input.message.valid & self.input.message.ready),
            write_fire.eq(fire & message.write),
            capture.eq(fire & to.any & ~message.write),
        ]
        with m.If(capture):
            m.d.sync += [
                captured.eq(message),
                captured_pe.eq(to.pes),
                captured_group.eq(to.group),
                captured_vault.eq(to.vault),
            ]

        with m.If(write_fire & to.all_pes & to.commands.any()):
            m.d.sync += selected.eq(message.data[0].replicate(self.pes))
        for slot, number in enumerate(numbers):
            with m.If(write_fire & to.group[slot]):
                m.d.sync += selected[slot].eq(message.data.bit_select(number[:_GROUP_BITS], 1))
        parameters = self._parameters(m, write_fire, to.commands, to.pes)
        refused = self._commands(m, write_fire, to.commands, parameters)

        step = Signal(range(READ_CYCLES + 1))
        read_data = Signal(_DATA_BITS)
        capture_data, read_done = Signal(), Signal()
        m.d.comb += [
            capture_data.eq(busy & (step == READ_CYCLES - 1)),
            read_done.eq(busy & (step == READ_CYCLES)),
        ]
        bitmap = self._bitmap(m, captured, captured_group, numbers, selected)
        register = self._register(
            m, captured, captured_pe, captured_vault, parameters, capture_data
        )
        with m.If(capture_data):
            m.d.sync += read_data.eq(Mux(captured_group.any(), bitmap, register))
        with m.If(capture):
            m.d.sync += [busy.eq(1), step.eq(0)]
        with m.Elif(read_done & buffer.input.ready):
            m.d.sync += busy.eq(0)
        with m.Elif(busy & ~read_done):
            m.d.sync += step.eq(step + 1)

        forwarded: Any = buffer.input.payload
        m.d.comb += [
            buffer.input.valid.eq(read_done | (fire & ~capture)),
            forwarded.eq(message),
            forwarded.addressed.eq(message.addressed | to.any),
        ]
        with m.If(refused):
            m.d.comb += forwarded.response.eq(AxiResponse.SLVERR)
        with m.If(busy):
            m.d.comb += [
                forwarded.eq(captured),
                forwarded.data.eq(captured.data | read_data),
                forwarded.addressed.eq(1),
            ]

        self._summarise(m)
        return m

    def _addressed(
        self, m: Module, message: Any, numbers: Sequence[Value], selected: Value
    ) -> "_Addressed":
        """What ``message`` addresses; ``selected``: PEs addressed by commands."""
        to = _Addressed.of(self.pes)
        m.d.comb += [
            to.all_pes.eq(message.register == ControlCommand.SELECT_ALL.value),
            to.vault.eq((message.space == ControlSpace.VAULT) & (message.index == self.vault)),
            to.any.eq(to.commands.any() | to.pes.any() | to.group.any() | to.vault),
        ]
        for slot, number in enumerate(numbers):
            is_group = message.index == number[_GROUP_BITS:]
            m.d.comb += [
                to.commands[slot].eq(
                    (message.space == ControlSpace.COMMAND) & (selected[slot] | to.all_pes)
                ),
                to.pes[slot].eq((message.space == ControlSpace.PE) & (message.index == number)),
                to.group[slot].eq((message.space == ControlSpace.GROUP) & is_group),
            ]
        return to

    def _summarise(self, m: Module) -> None:
        """Add the states of the tile's PEs to the summary that passes."""
        was_faulted = Signal(self.pes)
        faulted = self._in_state(PeState.FAULTED)
        summary = self.input.summary
        m.d.sync += [
            was_faulted.eq(faulted),
            self.output.summary.running.eq(summary.running | self._in_state(PeState.RUNNING).any()),
            self.output.summary.faulted.eq(summary.faulted | faulted.any()),
            self.output.summary.fault.eq(summary.fault | (faulted & ~was_faulted).any()),
        ]

    def _in_state(self, state: PeState) -> Value:
        """For each PE, whether it is in ``state``."""
        return Cat(port.status.state == state for port in self.control)

    def _parameters(
        self, m: Module, write_fire: Value, command_selected: Value, pe_selected: Value
    ) -> list[Signal]:
        """Registers for each PE's address of its parameter block."""
        message: Any = self.input.message.payload
        selected = []
        for slot in range(self.pes):
            parameters = Signal(self.pe.address_bits, name=f"parameters_{slot}")
            for command, name, part in (
                (ControlCommand.PARAMETERS_LOW, "PARAMETERS_LOW", parameters[:_DATA_BITS]),
                (ControlCommand.PARAMETERS_HIGH, "PARAMETERS_HIGH", parameters[_DATA_BITS:]),
            ):
                by_command = command_selected[slot] & (message.register == command.value)
                by_page = pe_selected[slot] & register_match(PE.register(name), message.register)
                with m.If(write_fire & (by_command | by_page)):
                    m.d.sync += part.eq(message.data)
            selected.append(parameters)
        return selected

    def _commands(
        self, m: Module, write_fire: Value, command_selected: Value, parameters: Sequence[Value]
    ) -> Value:
        """Load, start and stop the selected PEs; 1 if one of them can't."""
        message: Any = self.input.message.payload
        is_command = {
            command: message.register == command.value
            for command in (ControlCommand.LOAD, ControlCommand.START, ControlCommand.STOP)
        }
        refused = Signal(self.pes)
        for slot, port in enumerate(self.control):
            running = port.status.state == PeState.RUNNING
            free = Signal(name=f"free_{slot}")
            loads, starts = Signal(name=f"loads_{slot}"), Signal(name=f"starts_{slot}")
            m.d.comb += [
                free.eq(~running),
                loads.eq(message.write & command_selected[slot] & is_command[ControlCommand.LOAD]),
                starts.eq(
                    message.write & command_selected[slot] & is_command[ControlCommand.START]
                ),
                port.load.valid.eq(write_fire & loads & free),
                port.load.payload.address.eq(message.index),
                port.load.payload.word.eq(message.data),
                port.launch.valid.eq(write_fire & starts & free),
                port.launch.payload.words.eq(message.data),
                port.launch.payload.parameters.eq(parameters[slot]),
                refused[slot].eq(
                    (loads & ~(free & port.load.ready)) | (starts & ~(free & port.launch.ready))
                ),
            ]
            # A launch does not sample the stop in its first cycles.
            with m.If(free):
                m.d.sync += port.stop.eq(0)
            with m.Elif(write_fire & command_selected[slot] & is_command[ControlCommand.STOP]):
                m.d.sync += port.stop.eq(1)
        return refused.any()

    def _bitmap(
        self,
        m: Module,
        captured: Any,
        group_selected: Value,
        numbers: Sequence[Value],
        selected: Value,
    ) -> Value:
        """The bits of this tile in the bitmap register that is read."""
        bitmaps = {
            ControlBitmap.SELECT: selected,
            ControlBitmap.RUNNING: self._in_state(PeState.RUNNING),
            ControlBitmap.HALTED: self._in_state(PeState.HALTED),
            ControlBitmap.FAULTED: self._in_state(PeState.FAULTED),
        }
        bits = Signal(self.pes)
        with m.Switch(captured.register):
            for kind, value in bitmaps.items():
                with m.Case(kind.value):
                    m.d.comb += bits.eq(value)
        group: Value = Const(0, GROUP_PES)
        for slot, number in enumerate(numbers):
            group |= (bits[slot] & group_selected[slot]) << number[:_GROUP_BITS]
        return group

    def _register(
        self,
        m: Module,
        captured: Any,
        pe_selected: Value,
        vault_selected: Value,
        parameters: Sequence[Value],
        capture_data: Value,
    ) -> Value:
        """The register read, of a PE or of the vault; ``capture_data`` when it is used."""

        def named(block: Block, name: str) -> Value:
            return register_match(block.register(name), captured.register)

        def of_pe(values: Sequence[Value]) -> Value:
            return reduce(
                or_, (Mux(pe_selected[slot], value, 0) for slot, value in enumerate(values))
            )

        m.d.comb += [
            self.vault_counter_index.eq(
                register_index(VAULT.register("COUNTER_LOW"), captured.register)
            ),
            self.network_counter_index.eq(
                register_index(VAULT.register("NETWORK_LOW"), captured.register)
            ),
        ]
        for port in self.control:
            m.d.comb += port.counter_index.eq(
                register_index(PE.register("COUNTER_LOW"), captured.register)
            )

        words = []
        for slot, port in enumerate(self.control):
            word = Signal(_DATA_BITS, name=f"status_{slot}")
            for field in PE.register("STATUS").fields:
                part = getattr(port.status, field.name)
                m.d.comb += word[field.low : field.low + field.bits].eq(part)
            words.append(word)

        count, high = Signal(COUNTER_BITS), Signal(COUNTER_BITS - _DATA_BITS)
        read_value = Signal(_DATA_BITS)
        low, network = Signal(), Signal()
        m.d.comb += [
            network.eq(named(VAULT, "NETWORK_LOW")),
            low.eq(
                Mux(vault_selected, network | named(VAULT, "COUNTER_LOW"), named(PE, "COUNTER_LOW"))
            ),
            read_value.eq(high),
        ]
        if self.pe.counters:
            m.d.comb += count.eq(of_pe([port.counter_value for port in self.control]))
        with m.If(vault_selected):
            m.d.comb += count.eq(Mux(network, self.network_counter_value, self.vault_counter_value))
        with m.If(low):
            m.d.comb += read_value.eq(count)
            with m.If(capture_data):
                m.d.sync += high.eq(count[_DATA_BITS:])
        for name, values in (
            ("STATUS", words),
            ("PARAMETERS_LOW", [value[:_DATA_BITS] for value in parameters]),
            ("PARAMETERS_HIGH", [value[_DATA_BITS:] for value in parameters]),
        ):
            with m.If(pe_selected.any() & named(PE, name)):
                m.d.comb += read_value.eq(of_pe(values))
        return read_value


class _Addressed(NamedTuple):
    """What a message is for.

    Attributes:
        all_pes: a command to select all PEs.
        commands: the PEs that it commands. pes: the PE whose register it accesses. group: the PEs
            whose bits are in the bitmap register that it accesses.
        vault: it accesses a register of this vault.
        any: it is for this tile.
    """

    all_pes: Signal
    commands: Signal
    pes: Signal
    group: Signal
    vault: Signal
    any: Signal

    @staticmethod
    def of(pes: int) -> "_Addressed":
        """Signals for a tile with ``pes`` PEs."""
        return _Addressed(
            all_pes=Signal(name="select_all_pes"),
            commands=Signal(pes, name="command_selected"),
            pes=Signal(pes, name="pe_selected"),
            group=Signal(pes, name="group_selected"),
            vault=Signal(name="vault_selected"),
            any=Signal(name="addressed"),
        )
