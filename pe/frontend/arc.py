"""Array range check (ARC): scratchpad ranges still in use by a load or store."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In

from hdl.bundle import Bundle
from hdl.component import Component, Probes
from hdl.priority import lowest_one
from isa.limits import RANGE_BYTES
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.extensions.units import link_members
from pe.ports import arrival, release

#: Ranges that one instruction touches: A, B and C.
RANGES = 3
#: Ranges are compared in whole units of this many bytes.
UNIT_BYTES = RANGE_BYTES
_UNIT_SHIFT = (UNIT_BYTES - 1).bit_length()


def scratchpad_range(config: PeConfig) -> data.StructLayout:
    """``used``: the instruction touches the range; ``start``: its first byte; ``end``: the unit
    after the one of its last byte; ``writes``: it writes there, as a vector result."""
    return data.StructLayout(
        {"used": 1, "start": config.scratchpad_bits, "end": config.end_unit_bits, "writes": 1}
    )


def free_entry(config: PeConfig) -> Bundle:
    """Answer of the array: ``conflict``, a range overlaps an entry that it must wait for;
    ``full``, no entry is free; ``entry``, index of a free one."""
    return Bundle(conflict=1, full=1, entry=config.entry_bits)


def allocation(config: PeConfig) -> Bundle:
    """``allocate``: take the free entry ``allocated`` for ``start``..``end`` (as in a range) with
    ``columns`` arrivals to wait for (a store: 1) and ``store``."""
    return Bundle(
        allocate=1,
        allocated=config.entry_bits,
        start=config.scratchpad_bits,
        end=config.end_unit_bits,
        columns=config.column_count_bits,
        store=1,
    )


class Arc(Component):
    """Associative array of scratchpad ranges in transfer (thesis 5.1).

    A load's entry makes every overlapping access wait until its last column has arrived. A store's
    entry, which the thesis does not have, makes overlapping vector results wait until the store has
    read its source: the store may wait in the load-store unit for any length of time, so no program
    could schedule around the conflict.

    Without ``ld.sram`` and ``st.sram`` nothing is ever in transfer.

    Ranges that touch the same unit of :data:`UNIT_BYTES` aligned bytes count as overlapping.

    Members:
        ranges: array of :func:`scratchpad_range`, in.
        conflict, full, entry: :func:`free_entry`, out, in the same cycle.
        allocate, allocated, start, end, columns, store: :func:`allocation`, in; effective from the
            next cycle on.
        arrived, arrived_entry: :func:`arrival`, in; effective from the next cycle but one on, like
            the next.
        released, released_entry: :func:`release`, in.

    With a workspace also :func:`pe.extensions.workspace.growth`, in; effective from the next cycle
    on.
    """

    probes = Probes("columns_0", "late_arrived", "late_released", "store_0")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "ranges": In(scratchpad_range(config)).array(RANGES),
                **free_entry(config).outputs(),
                **allocation(config).inputs(),
                **arrival(config).inputs(),
                **release(config).inputs(),
                **link_members(config, "arc"),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        caps = Capabilities.of(config)
        if not caps.transfers:
            return m
        bits = config.end_unit_bits
        conflicts = Signal(config.arc_entries)
        occupied = Signal(config.arc_entries)
        arrived = Signal(name="late_arrived")
        released = Signal(name="late_released")
        arrived_entry = Signal.like(self.arrived_entry, name="late_arrived_entry", reset_less=True)
        released_entry = Signal.like(
            self.released_entry, name="late_released_entry", reset_less=True
        )
        m.d.sync += [
            arrived.eq(self.arrived),
            arrived_entry.eq(self.arrived_entry),
            released.eq(self.released),
            released_entry.eq(self.released_entry),
        ]
        both = bool(caps.transfers.loads and caps.transfers.stores)
        count_bits = config.column_count_bits if caps.transfers.loads else 1
        if config.workspace:
            # Requests in flight, those whose arrival is noted a cycle later, and the load itself.
            count_bits = max(count_bits, (config.load_store_queue + 2).bit_length())
        for number in range(config.arc_entries):
            # Undefined in a free entry.
            start = Signal(bits - 1, name=f"start_{number}", reset_less=True)
            end = Signal(bits, name=f"end_{number}", reset_less=True)
            store = Signal(int(both), name=f"store_{number}", reset_less=True)
            columns = Signal(count_bits, name=f"columns_{number}")
            stores = store if both else Const(int(bool(caps.transfers.stores)), 1)
            completes = Signal(name=f"completes_{number}")
            m.d.comb += [
                occupied[number].eq(columns != 0),
                completes.eq(
                    (arrived & (arrived_entry == number)) | (released & (released_entry == number))
                ),
                conflicts[number].eq(
                    occupied[number]
                    & Cat(
                        r.used
                        & (r.writes | ~stores)
                        & (r.start[_UNIT_SHIFT:] < end)
                        & (start < r.end)
                        for r in self.ranges
                    ).any()
                ),
            ]
            steps = [(Value.cast(completes), columns - 1)]
            if config.workspace:
                grows = Signal(name=f"grows_{number}")
                m.d.comb += grows.eq(self.grown & (self.grown_entry == number))
                steps = [(grows & ~completes, columns + 1), (completes & ~grows, columns - 1)]
            with m.If(self.allocate & (self.allocated == number)):
                m.d.sync += [
                    start.eq(self.start[_UNIT_SHIFT:]),
                    end.eq(self.end),
                    store.eq(self.store),
                    columns.eq(self.columns),
                ]
            for condition, count in steps:
                with m.Elif(condition):
                    m.d.sync += columns.eq(count)
        m.d.comb += [
            self.conflict.eq(conflicts.any()),
            self.full.eq(occupied.all()),
            self.entry.eq(lowest_one(~occupied)),
        ]
        return m
