"""The controller of a vault's DRAM."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.counter_bank import COUNTER_BITS
from hdl.emission import once
from hdl.ports import MemoryPort
from memory.config import VaultConfig

from .bank_machine import BankMachine
from .bus_rules import BusRules
from .counters import INDEX_BITS, VaultCounters
from .dram_port import DramCommand, DramPort
from .policies import make_scheduler
from .queue import TransactionQueue
from .read_path import ReadPath
from .refresher import Refresher
from .request_decoder import Intake
from .responses import Responses
from .transaction import bank_entry
from .write_path import WritePath

__all__ = ["Controller"]


def _choice(config: VaultConfig) -> data.StructLayout:
    """The command of a bank: its ``kind`` and the ``entry`` at the head of the bank's queue."""
    return data.StructLayout({"kind": DramCommand, "entry": bank_entry(config)})


class Controller(Component):
    r"""Serves one memory port from one vault's DRAM (thesis 5.2).

    ::

        port -> decoder -> transaction queue -> bank machines -> one command a cycle -> dram
                                    \______ scheduler ______/
        port <- responses <- read path, acknowledgements

    Accesses to one column are performed in the order of their requests. A write is acknowledged
    once its command has been issued. A read into an idle vault gets its first word tRCD + tCL + 7
    cycles after its request was accepted. An access beyond the memory is answered with ``error``,
    by one beat.

    Members:
        port (in, :class:`hdl.ports.MemoryPort`): requests and responses.
        dram (out, :class:`memory.controller.dram_port.DramPort`): commands and data bus.
        counter_index (in, INDEX_BITS): :class:`memory.controller.counters.VaultCounter` to read.
        counter_value (out, COUNTER_BITS): its value, one cycle after ``counter_index``.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(
            {
                "port": In(
                    MemoryPort(address_bits=config.request_address_bits, tag_bits=config.tag_bits)
                ),
                "dram": Out(DramPort(config)),
                "counter_index": In(INDEX_BITS),
                "counter_value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        decoder = Intake(config)
        queue = TransactionQueue(config)
        scheduler = make_scheduler(config)
        refresher = Refresher(config)
        rules = BusRules(config)
        reads = ReadPath(config)
        writes = WritePath(config)
        responses = Responses(config)
        counters = VaultCounters(config)
        banks = [BankMachine(config) for _ in range(config.banks)]
        m.submodules["intake"] = once(decoder, platform)
        m.submodules.queue = once(queue, platform)
        m.submodules.scheduler = once(scheduler, platform)
        m.submodules.refresher = once(refresher, platform)
        m.submodules.rules = once(rules, platform)
        m.submodules.reads = once(reads, platform)
        m.submodules.writes = once(writes, platform)
        m.submodules.responses = once(responses, platform)
        m.submodules.counters = once(counters, platform)
        for number, bank in enumerate(banks):
            m.submodules[f"bank_{number}"] = once(bank, platform)

        connect(m, decoder.transaction, queue.input)
        connect(m, decoder.rejected, responses.rejected)
        connect(m, decoder.store, writes.store)
        connect(m, reads.output, responses.reads)
        connect(m, flipped(self.port.request), decoder.request)
        connect(m, responses.response, flipped(self.port.response))
        m.d.comb += [
            decoder.arrival.eq(counters.now),
            decoder.freed.eq(writes.freed),
            decoder.freed_slot.eq(writes.freed_slot),
            counters.occupied.eq(queue.occupied),
            counters.index.eq(self.counter_index),
            self.counter_value.eq(counters.value),
        ]

        # From the transaction queue to the banks.
        m.d.comb += [
            queue.room.eq(Cat(bank.input.ready for bank in banks)),
            scheduler.eligible.eq(queue.eligible),
            scheduler.row_hit.eq(queue.row_hit),
            scheduler.turn.eq(queue.turn),
            scheduler.occupied.eq(queue.occupied),
            queue.pick.eq(scheduler.pick),
        ]
        for number in range(config.transaction_queue):
            m.d.comb += [
                scheduler.older[number].eq(queue.older[number]),
                scheduler.banks[number].eq(queue.banks[number]),
            ]
        for number, bank in enumerate(banks):
            m.d.comb += [
                bank.input.valid.eq(scheduler.pick.any() & (queue.picked.bank == number)),
                bank.input.payload.eq(queue.picked.entry),
            ]

        # From the banks to the DRAM.
        for name in ("column", "row", "urgent", "waiting", "hit"):
            m.d.comb += getattr(scheduler, name).eq(Cat(getattr(bank, name) for bank in banks))
        m.d.comb += scheduler.write.eq(Cat(bank.head.write for bank in banks))
        layout = _choice(config)
        given = []
        for number, bank in enumerate(banks):
            m.d.comb += [
                scheduler.stamps[number].eq(bank.head.stamp),
                bank.refresh_due.eq(refresher.due[number]),
                bank.read_allowed.eq(rules.read_allowed & reads.room),
                bank.write_allowed.eq(rules.write_allowed & responses.room),
                bank.activate_allowed.eq(rules.activate_allowed),
                bank.grant.eq(scheduler.issue[number]),
                counters.banks[number].eq(bank.events),
            ]
            given.append(Mux(scheduler.issue[number], Cat(bank.kind, bank.head), 0))
        command: Any = Signal(layout)
        valid = Signal()
        m.d.comb += [valid.eq(scheduler.issue.any()), command.eq(reduce(or_, given))]
        is_kind = {}
        for kind in DramCommand:
            is_kind[kind] = Signal(name=f"is_{kind.name.lower()}")
            m.d.comb += is_kind[kind].eq(valid & (command.kind == kind))
        entry = command.entry
        m.d.comb += [
            rules.read.eq(is_kind[DramCommand.READ]),
            rules.write.eq(is_kind[DramCommand.WRITE]),
            rules.activate.eq(is_kind[DramCommand.ACT]),
            reads.given.eq(rules.read),
            reads.tag.eq(entry.tag),
            reads.words.eq(entry.words),
            writes.given.eq(rules.write),
            writes.slot.eq(entry.slot),
            writes.words.eq(entry.words),
            responses.written.eq(rules.write),
            responses.written_tag.eq(entry.tag),
            counters.arrival.eq(entry.arrival),
            counters.event.read.eq(rules.read),
            counters.event.write.eq(rules.write),
            counters.event.refresh.eq(is_kind[DramCommand.REFRESH]),
            counters.event.turned.eq(rules.turned),
            counters.event.busy.eq(rules.busy),
        ]
        number_bits = [
            Cat(scheduler.issue[number] for number in range(config.banks) if number >> bit & 1)
            for bit in range(config.bank_bits)
        ]
        m.d.sync += [
            self.dram.valid.eq(valid),
            self.dram.kind.eq(command.kind),
            self.dram.bank.eq(Cat(bits.any() for bits in number_bits)),
            self.dram.row.eq(entry.row),
            self.dram.column.eq(entry.column),
        ]
        m.d.comb += [
            self.dram.write_data.eq(writes.write_data),
            self.dram.write_strobe.eq(writes.write_strobe),
            reads.read_data.eq(self.dram.read_data),
        ]
        return m
