"""Tracks free AXI identifiers and columns with accesses in flight."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component

from .layout import AxiConfig


class AxiScoreboard(Component):
    """Allocates AXI identifiers and keeps accesses to one column in order.

    AXI defines no order between identifiers, or between reads and writes. So a write waits for
    every earlier access to its column, and a read for every earlier write to it.

    Members:
        column (in, column_address_bits): column of the access that is to start.
        write (in, 1): 1 for a write.
        conflict (out, 1): in the same cycle: the access must wait.
        id_ready (out, 1): an identifier is free.
        id (out, id_bits): the free identifier.
        allocate (in, 1): the access starts with ``id``.
        write_done (in, 1): a write has been performed.
        write_done_id (in, id_bits): its identifier.
        read_done (in, 1): a read has been performed.
        read_done_id (in, id_bits): its identifier.
        free (in, 1): an identifier is no longer in use.
        free_id (in, id_bits): that identifier.
    """

    def __init__(self, config: AxiConfig) -> None:
        self.config = config
        super().__init__(
            {
                "column": In(config.column_address_bits),
                "write": In(1),
                "conflict": Out(1),
                "id_ready": Out(1),
                "id": Out(config.id_bits),
                "allocate": In(1),
                "write_done": In(1),
                "write_done_id": In(config.id_bits),
                "read_done": In(1),
                "read_done_id": In(config.id_bits),
                "free": In(1),
                "free_id": In(config.id_bits),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        conflicts = []
        for number in range(config.outstanding):
            pending = Signal(name=f"pending_{number}")
            column = Signal(config.column_address_bits, name=f"column_{number}")
            write = Signal(name=f"write_{number}")
            performed = self.write_done & (self.write_done_id == number)
            performed |= self.read_done & (self.read_done_id == number)
            with m.If(performed):
                m.d.sync += pending.eq(0)
            with m.If(self.allocate & (self.id == number)):
                m.d.sync += [pending.eq(1), column.eq(self.column), write.eq(self.write)]
            conflicts.append(pending & (column == self.column) & (write | self.write))
        conflict = Signal(config.outstanding)
        for number, value in enumerate(conflicts):
            m.d.comb += conflict[number].eq(value)
        m.d.comb += self.conflict.eq(conflict.any())

        # The next identifier is selected a cycle ahead.
        unused = Signal(config.outstanding, init=-1)
        next_id = Signal(config.id_bits)
        for number in reversed(range(config.outstanding)):
            with m.If(unused[number]):
                m.d.comb += next_id.eq(number)
        with m.If(self.allocate):
            m.d.sync += self.id_ready.eq(0)
        with m.If(unused.any() & (~self.id_ready | self.allocate)):
            m.d.sync += [
                self.id_ready.eq(1),
                self.id.eq(next_id),
                unused.bit_select(next_id, 1).eq(0),
            ]
        with m.If(self.free):
            m.d.sync += unused.bit_select(self.free_id, 1).eq(1)
        return m
