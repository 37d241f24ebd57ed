"""One bank: its queue of requests, its open row, and its next command."""

from itertools import product
from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.lines import cover
from memory.config import VaultConfig
from memory.fifo import Fifo
from memory.timing import POSTPONED_REFRESHES

from .dram_port import DramCommand
from .starvation import FORCED_DEBT
from .timer import CountDown
from .transaction import bank_entry


def bank_events() -> data.StructLayout:
    """Events of a bank, for the counters.

    Members:
        hit (1): a column command whose row was open already.
        miss (1): a column command whose row had to be opened.
        conflict (1): a column command for which another row had to be closed.
        refresh_blocked (1): a request waits while the bank refreshes or is about to.
    """
    return data.StructLayout({"hit": 1, "miss": 1, "conflict": 1, "refresh_blocked": 1})


class BankMachine(Component):
    """Serves the requests of one bank in order, and offers its next legal command each cycle.

    The offer is one of: a column command for the request at its head (``column``), or ACT, PRE or
    REFRESH (``row``). The bank machine enforces the timing rules of one bank; those across banks
    arrive as ``*_allowed``. A due refresh waits until the open row has served the waiting requests,
    but no longer than until ``FORCED_DEBT`` refreshes are due.

    Members:
        input (in, stream of :func:`memory.controller.transaction.bank_entry`): requests.
        refresh_due (in, 1): one more refresh is due.
        read_allowed (in, 1): the rules across banks allow a READ in this cycle.
        write_allowed (in, 1): they allow a WRITE.
        activate_allowed (in, 1): they allow an ACT.
        column (out, 1): the offer is a READ or WRITE.
        row (out, 1): the offer is an ACT, PRE or REFRESH.
        urgent (out, 1): ``row`` belongs to a refresh.
        waiting (out, 1): there is a request.
        hit (out, 1): its row is open, and no refresh comes before it.
        ready (out, 1): ``hit``, and the timers of the bank allow the column command; only with
            :attr:`memory.config.VaultConfig.timed_turns`.
        head (out, :func:`memory.controller.transaction.bank_entry`): the request; valid with
            ``waiting``.
        kind (out, :class:`memory.controller.dram_port.DramCommand`): command offered.
        grant (in, 1): the command offered is issued in this cycle.
        events (out, :func:`bank_events`): for the counters.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__(
            {
                "input": In(stream.Signature(bank_entry(config))),
                "refresh_due": In(1),
                "read_allowed": In(1),
                "write_allowed": In(1),
                "activate_allowed": In(1),
                "column": Out(1),
                "row": Out(1),
                "urgent": Out(1),
                "waiting": Out(1),
                "hit": Out(1),
                **({"ready": Out(1)} if config.timed_turns else {}),
                "head": Out(bank_entry(config)),
                "kind": Out(DramCommand),
                "grant": In(1),
                "events": Out(bank_events()),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        timing = config.timing
        queue = Fifo(width=bank_entry(config).size, depth=config.command_queue, sram=config.sram)
        m.submodules.queue = shared_instance(queue, platform)
        head: Any = self.head
        is_open = Signal()
        open_row = Signal(config.row_bits)
        # Time to PRE while a row is open, otherwise to ACT or REFRESH.
        row_timer = CountDown(
            m, max(timing.tras, timing.write_to_precharge, timing.trp, timing.trfc), "row_timer"
        )
        column_timer = CountDown(m, max(timing.trcd, timing.tccd), "column_timer")
        read_timer = CountDown(m, timing.write_to_read, "read_timer")

        debt = Signal(range(POSTPONED_REFRESHES + 1))
        refresh = Signal()
        row_hit = Signal()
        # The row was opened for the request at the head, which has not accessed it yet.
        opened = Signal()
        usable = opened if config.page_policy == "closed" else is_open
        m.d.comb += [
            queue.input.valid.eq(self.input.valid),
            queue.input.payload.eq(self.input.payload),
            self.input.ready.eq(queue.input.ready),
            self.waiting.eq(queue.output.valid),
            head.eq(queue.output.payload),
            queue.output.ready.eq(self.grant & self.column),
            row_hit.eq(self.waiting & is_open & usable & (head.row == open_row)),
            refresh.eq((debt >= FORCED_DEBT) | ((debt != 0) & ~row_hit)),
            self.hit.eq(row_hit & ~refresh),
        ]

        closes = refresh | (self.waiting & ~row_hit)
        if config.page_policy != "open":
            closes = closes | ~self.waiting
        opens = refresh | (self.waiting & self.activate_allowed)
        allowed = Mux(head.write, self.write_allowed, self.read_allowed & read_timer.done)
        m.d.comb += [
            self.column.eq(self.hit & column_timer.done & allowed),
            self.row.eq(row_timer.done & Mux(is_open, closes, opens)),
            self.urgent.eq(refresh),
        ]
        if config.timed_turns:
            timers_done = column_timer.done & (head.write | read_timer.done)
            m.d.comb += self.ready.eq(self.hit & timers_done)
        with m.If(self.hit):
            m.d.comb += self.kind.eq(Mux(head.write, DramCommand.WRITE, DramCommand.READ))
        with m.Elif(is_open):
            m.d.comb += self.kind.eq(DramCommand.PRE)
        with m.Elif(refresh):
            m.d.comb += self.kind.eq(DramCommand.REFRESH)
        with m.Else():
            m.d.comb += self.kind.eq(DramCommand.ACT)

        refreshed = Signal()
        m.d.sync += debt.eq(debt + self.refresh_due - refreshed)
        displaced = Signal()
        with m.If(self.grant):
            with m.Switch(self.kind):
                with m.Case(DramCommand.ACT):
                    m.d.sync += [is_open.eq(1), open_row.eq(head.row), opened.eq(1)]
                    row_timer.wait(timing.tras)
                    column_timer.wait(timing.trcd)
                with m.Case(DramCommand.PRE):
                    m.d.sync += [is_open.eq(0), displaced.eq(self.waiting & usable & ~refresh)]
                    row_timer.wait(timing.trp)
                with m.Case(DramCommand.REFRESH):
                    m.d.comb += refreshed.eq(1)
                    row_timer.wait(timing.trfc)
                with m.Case(DramCommand.READ):
                    m.d.sync += opened.eq(0)
                    row_timer.wait(timing.trtp)
                    column_timer.wait(timing.tccd)
                with m.Case(DramCommand.WRITE):
                    m.d.sync += opened.eq(0)
                    row_timer.wait(timing.write_to_precharge)
                    column_timer.wait(timing.tccd)
                    read_timer.wait(timing.write_to_read)
        column_issued = self.grant & self.column
        m.d.comb += [
            self.events.hit.eq(column_issued & ~opened),
            self.events.miss.eq(column_issued & opened & ~displaced),
            self.events.conflict.eq(column_issued & opened & displaced),
        ]
        # A refresh blocks the head from its first cycle without a command for the head on.
        refreshing = Signal()
        with m.If(refreshed):
            m.d.sync += refreshing.eq(1)
        with m.Elif(row_timer.done):
            m.d.sync += refreshing.eq(0)
        m.d.comb += self.events.refresh_blocked.eq(
            self.waiting & (refresh | (refreshing & ~row_timer.done))
        )
        self._cover(m, debt)
        return m

    def _cover(self, m: Module, debt: Signal) -> None:
        """Bins for functional coverage: commands by the request at the head, and by the policy, or
        the scheduler and the refreshes owed."""
        heads = {
            "no request": ~self.waiting,
            "read": self.waiting & ~self.head.write,
            "write": self.waiting & self.head.write,
        }
        owed = {"none": debt == 0, "some": (debt != 0) & (debt < FORCED_DEBT)}
        owed["forced"] = debt >= FORCED_DEBT
        config = self.config
        for kind, (head, of_head) in product(DramCommand, heads.items()):
            granted = self.grant & (self.kind == kind) & of_head
            cover(m, f"policy {config.page_policy} {kind.name} {head}", granted)
            for debts, of_debt in owed.items():
                name = f"scheduler {config.scheduler} {kind.name} {head} {debts}"
                cover(m, name, granted & of_debt)
