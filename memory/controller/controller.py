"""The DRAM controller of a vault."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.counter_bank import COUNTER_BITS
from hdl.emission import shared_instance
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
from .request_decoder import RequestDecoder
from .responses import Responses
from .transaction import bank_entry
from .write_path import WritePath


def _bank_command(config: VaultConfig) -> data.StructLayout:
    """The command of a bank: its ``kind`` and the ``entry`` at the head of the bank's queue."""
    return data.StructLayout({"kind": DramCommand, "entry": bank_entry(config)})


class Controller(Component):
    r"""Serves one memory port from one vault's DRAM (thesis 5.2).

    ::

        port -> decoder -> transaction queue -> bank machines -> one command per cycle -> dram
                                    \______ scheduler ______/
        port <- responses <- read path, acknowledgements

    Accesses to one column are performed in the order of their requests. A write is acknowledged
    once its command has been issued. A read from an idle vault gets its first word tRCD + tCL + 7
    cycles after its request is accepted. An access beyond the memory is answered with ``error``, by
    one beat.

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
        units = _Units(self.config)
        for name, unit in vars(units).items():
            if name != "banks":
                m.submodules[name] = shared_instance(unit, platform)
        for number, bank in enumerate(units.banks):
            m.submodules[f"bank_{number}"] = shared_instance(bank, platform)
        self._port(m, units)
        self._to_banks(m, units)
        valid, command = self._select_command(m, units)
        self._distribute(m, units, valid, command)
        self._to_dram(m, units, valid, command)
        return m

    def _port(self, m: Module, units: "_Units") -> None:
        """The port, the request decoder, the responses and the counters."""
        decoder = units.request_decoder
        connect(m, decoder.transaction, units.queue.input)
        connect(m, decoder.rejected, units.responses.rejected)
        connect(m, decoder.store, units.writes.store)
        connect(m, units.reads.output, units.responses.reads)
        connect(m, flipped(self.port.request), decoder.request)
        connect(m, units.responses.response, flipped(self.port.response))
        m.d.comb += [
            decoder.arrival.eq(units.counters.now),
            decoder.freed.eq(units.writes.freed),
            decoder.freed_slot.eq(units.writes.freed_slot),
            units.counters.occupied.eq(units.queue.occupied),
            units.counters.index.eq(self.counter_index),
            self.counter_value.eq(units.counters.value),
        ]

    def _to_banks(self, m: Module, units: "_Units") -> None:
        """Connect the transaction queue to the banks."""
        queue, scheduler = units.queue, units.scheduler
        m.d.comb += [
            queue.bank_ready.eq(Cat(bank.input.ready for bank in units.banks)),
            scheduler.eligible.eq(queue.eligible),
            scheduler.row_hit.eq(queue.row_hit),
            scheduler.turnaround.eq(queue.turnaround),
            scheduler.occupied.eq(queue.occupied),
            queue.pick.eq(scheduler.pick),
        ]
        for number in range(self.config.transaction_queue):
            m.d.comb += [
                scheduler.older[number].eq(queue.older[number]),
                scheduler.banks[number].eq(queue.banks[number]),
            ]
        for number, bank in enumerate(units.banks):
            m.d.comb += [
                bank.input.valid.eq(scheduler.pick.any() & (queue.picked.bank == number)),
                bank.input.payload.eq(queue.picked.entry),
            ]

    def _select_command(self, m: Module, units: "_Units") -> tuple[Signal, Any]:
        """Connect the banks to the scheduler; the result is ``valid`` and the command."""
        scheduler, banks = units.scheduler, units.banks
        names = ["column", "row", "urgent", "waiting", "hit"]
        if self.config.timed_turns:
            names.append("ready")
        for name in names:
            m.d.comb += getattr(scheduler, name).eq(Cat(getattr(bank, name) for bank in banks))
        m.d.comb += scheduler.write.eq(Cat(bank.head.write for bank in banks))
        commands = []
        for number, bank in enumerate(banks):
            m.d.comb += [
                scheduler.stamps[number].eq(bank.head.stamp),
                bank.refresh_due.eq(units.refresher.due[number]),
                bank.read_allowed.eq(units.rules.read_allowed & units.reads.ready),
                bank.write_allowed.eq(units.rules.write_allowed & units.responses.ready),
                bank.activate_allowed.eq(units.rules.activate_allowed),
                bank.grant.eq(scheduler.issue[number]),
                units.counters.banks[number].eq(bank.events),
            ]
            commands.append(Mux(scheduler.issue[number], Cat(bank.kind, bank.head), 0))
        command: Any = Signal(_bank_command(self.config))
        valid = Signal()
        m.d.comb += [valid.eq(scheduler.issue.any()), command.eq(reduce(or_, commands))]
        return valid, command

    def _distribute(self, m: Module, units: "_Units", valid: Signal, command: Any) -> None:
        """Connect a command to rules, data paths, responses and counters."""
        is_kind = {}
        for kind in DramCommand:
            is_kind[kind] = Signal(name=f"is_{kind.name.lower()}")
            m.d.comb += is_kind[kind].eq(valid & (command.kind == kind))
        entry = command.entry
        m.d.comb += [
            units.rules.read.eq(is_kind[DramCommand.READ]),
            units.rules.write.eq(is_kind[DramCommand.WRITE]),
            units.rules.activate.eq(is_kind[DramCommand.ACT]),
            units.reads.issue.eq(units.rules.read),
            units.reads.tag.eq(entry.tag),
            units.reads.words.eq(entry.words),
            units.writes.issue.eq(units.rules.write),
            units.writes.slot.eq(entry.slot),
            units.writes.words.eq(entry.words),
            units.responses.written.eq(units.rules.write),
            units.responses.written_tag.eq(entry.tag),
            units.counters.arrival.eq(entry.arrival),
            units.counters.event.read.eq(units.rules.read),
            units.counters.event.write.eq(units.rules.write),
            units.counters.event.refresh.eq(is_kind[DramCommand.REFRESH]),
            units.counters.event.turnaround.eq(units.rules.turnaround),
            units.counters.event.busy.eq(units.rules.busy),
        ]

    def _to_dram(self, m: Module, units: "_Units", valid: Signal, command: Any) -> None:
        """The command and the data, a cycle later."""
        config, entry = self.config, command.entry
        issue = units.scheduler.issue
        number_bits = [
            Cat(issue[number] for number in range(config.banks) if number >> bit & 1)
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
            self.dram.write_data.eq(units.writes.write_data),
            self.dram.write_strobe.eq(units.writes.write_strobe),
            units.reads.read_data.eq(self.dram.read_data),
        ]


class _Units:
    """The units of a controller, by the names of their instances; the banks' have numbers."""

    def __init__(self, config: VaultConfig) -> None:
        self.request_decoder = RequestDecoder(config)
        self.queue = TransactionQueue(config)
        self.scheduler = make_scheduler(config)
        self.refresher = Refresher(config)
        self.rules = BusRules(config)
        self.reads = ReadPath(config)
        self.writes = WritePath(config)
        self.responses = Responses(config)
        self.counters = VaultCounters(config)
        self.banks = [BankMachine(config) for _ in range(config.banks)]
