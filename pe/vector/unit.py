"""The vector unit: control, vertical stage, horizontal stage, writeback."""

from amaranth.hdl import Const, Elaboratable, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from isa.table import Unit
from pe.config import PeConfig
from pe.ports import ScratchpadReadPort, ScratchpadWritePort, vector_command

from .control import VectorControl
from .horizontal import VectorHorizontal
from .units import special_ports
from .vertical import VectorVertical
from .writeback import VectorFinish


class VectorUnit(Component):
    """Executes vector instructions on the scratchpad, a 64-bit word a cycle (thesis 5.1).

    A beat's operands are read in cycle t and its result can be read in cycle t +
    :data:`isa.timing.VECTOR_LATENCY`, whatever the instruction and the configuration. In a unit for
    FPGAs t is the address, t + 1 the block RAMs, t + 2 rotation and operand latch, t + 3 to t + 5
    vertical, t + 6 and t + 7 horizontal, t + 8 and t + 9 shift, t + 10 round and saturate, t + 11
    rotation and write. A unit without some of these stages (:mod:`pe.vector.stages`) writes
    earlier.

    Members:
        command: stream of :func:`pe.ports.vector_command`, in. Taken and started as
            :class:`pe.vector.control.VectorControl` says: one command runs, one waits.
        read: array of 2 :class:`pe.ports.ScratchpadReadPort`, out: operands first and second.
        write: :class:`pe.ports.ScratchpadWritePort`, out: result.
        busy: out; 1 from the cycle after a command is accepted until its last result is written:
            when it is 0, a read in that cycle finds every result.
        beat: out; this cycle is a beat of :func:`isa.timing.beats`.

    Without any vector instruction in the configuration, no command is accepted and all is idle.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "command": In(stream.Signature(vector_command(config))),
                "read": Out(ScratchpadReadPort(config)).array(2),
                "write": Out(ScratchpadWritePort(config)),
                "busy": Out(1),
                "beat": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        if not config.rows_of(Unit.VECTOR):
            m.d.comb += self.busy.eq(Const(0))
            return m
        control = VectorControl(config)
        vertical = VectorVertical(config)
        horizontal = VectorHorizontal(config)
        finish = VectorFinish(config)
        m.submodules.control = shared_instance(control, platform)
        m.submodules.vertical = shared_instance(vertical, platform)
        m.submodules.horizontal = shared_instance(horizontal, platform)
        m.submodules.finish = shared_instance(finish, platform)
        wiring.connect(m, wiring.flipped(self.command), control.command)
        first, second = self.read
        m.d.comb += [
            self.busy.eq(control.busy),
            self.beat.eq(control.beat),
            first.enable.eq(control.read_first),
            first.address.eq(control.address_first),
            second.enable.eq(control.read_second),
            second.address.eq(control.address_second),
            vertical.first.eq(first.data),
            vertical.second.eq(second.data),
            vertical.operands.eq(control.operands),
            vertical.complete.eq(control.complete),
            vertical.write.eq(control.write),
            horizontal.pair.eq(vertical.pair),
            horizontal.pair_beat.eq(vertical.pair_beat),
            horizontal.pair_complete.eq(vertical.pair_complete),
            horizontal.pair_write.eq(vertical.pair_write),
            finish.total.eq(horizontal.total),
            finish.total_beat.eq(horizontal.total_beat),
            finish.total_write.eq(horizontal.total_write),
        ]
        if config.shared_ports:
            m.d.comb += control.ready.eq(first.ready)
        wiring.connect(m, finish.port, wiring.flipped(self.write))
        for port in special_ports(config):
            special = port.component(config)
            m.submodules[port.name] = shared_instance(special, platform)
            m.d.comb += [
                special.word.eq(first.data),
                special.beat.eq(getattr(control, port.name)),
                getattr(finish, port.name).eq(special.result),
                getattr(finish, f"{port.name}_valid").eq(special.valid),
            ]
        return m
