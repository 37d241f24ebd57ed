"""The directory of the line buffer: columns, states, and the line to be replaced next."""

from amaranth.hdl import Array, Const, Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.priority import index_of, lowest_one

from .layout import column_bits


class LineDirectory(Component):
    """Columns and states of all lines, fully associative.

    A line is *present* if later reads of its column may use it, *filling* while its column is
    fetched. A write removes a line that is filling, too: it stays filling until its words have
    arrived for those that wait, but no later read finds it.

    Replacement is by the clock algorithm, which approximates least recently used: a hand passes
    over the lines, clears the mark of each that was used since, and stops at one without a mark.

    Parameters:
        lines, merges: see :func:`memory.line_buffer.layout.check_lines`.
        address_bits: of a byte address of the memory.

    Members:
        lookup (in, 1), column (in): compare ``column`` with all lines. In the cycles after it,
            until the next lookup, these describe the line of that column:
        present (out, 1), filling (out, 1), line (out): whether there is one; its state and number.
        waiting (out): reads that wait for its words. full (out, 1): no more may.
        use (in, 1): mark the line as used. merge (in, 1): one more read waits for it.
        kill (in, 1): remove the line.
        free (out, 1), next_line (out): a line that may be replaced, and its number.
        allocate (in, 1): ``next_line`` is present and filling from now on, with the column of
            the lookup; only with ``free``. first_waits (in, 1): with ``allocate``: a read waits.
        finish (in, 1), finish_line (in), failed (in, 1): all words of ``finish_line`` have
            arrived, or its fetch has failed, and it is removed.
        finish_waiting (out): reads that wait for ``finish_line``.
        busy (in, 1), busy_line (in): a line that must not be replaced.
    """

    def __init__(self, *, lines: int, merges: int, address_bits: int) -> None:
        self.lines = lines
        self.merges = merges
        self.address_bits = address_bits
        self.column_bits = column_bits(address_bits)
        line = range(lines)
        count = range(merges + 1)
        super().__init__(
            {
                "lookup": In(1),
                "column": In(self.column_bits),
                "present": Out(1),
                "filling": Out(1),
                "line": Out(line),
                "waiting": Out(count),
                "full": Out(1),
                "use": In(1),
                "merge": In(1),
                "kill": In(1),
                "free": Out(1),
                "next_line": Out(line),
                "allocate": In(1),
                "first_waits": In(1),
                "finish": In(1),
                "finish_line": In(line),
                "failed": In(1),
                "finish_waiting": Out(count),
                "busy": In(1),
                "busy_line": In(line),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        columns = [Signal(self.column_bits, name=f"column_{n}") for n in range(self.lines)]
        waiting = [Signal(range(self.merges + 1), name=f"waiting_{n}") for n in range(self.lines)]
        present = Signal(self.lines)
        filling = Signal(self.lines)
        used = Signal(self.lines)
        equal = Signal(self.lines)
        looked_up = Signal(self.column_bits)
        hit = Signal(self.lines)
        # The line that is allocated in the cycle of a lookup has its column after it.
        same = Signal()
        m.d.comb += same.eq(looked_up == self.column)
        with m.If(self.lookup):
            m.d.sync += looked_up.eq(self.column)
            for number, column in enumerate(columns):
                allocated = self.allocate & (self.next_line == number)
                m.d.sync += equal[number].eq(Mux(allocated, same, column == self.column))
        m.d.comb += [
            hit.eq(equal & present),
            self.present.eq(hit.any()),
            self.filling.eq((hit & filling).any()),
            self.line.eq(index_of(hit)),
            self.waiting.eq(Array(waiting)[self.line]),
            self.full.eq(self.waiting == self.merges),
            self.finish_waiting.eq(Array(waiting)[self.finish_line]),
        ]
        self._hand(m, present, filling, used)
        for number in range(self.lines):
            finished = self.finish & (self.finish_line == number)
            with m.If(finished):
                m.d.sync += filling[number].eq(0)
            with m.If((hit[number] & self.kill) | (finished & self.failed)):
                m.d.sync += present[number].eq(0)
            with m.If(hit[number] & (self.use | self.merge)):
                m.d.sync += used[number].eq(1)
            with m.If(hit[number] & self.merge):
                m.d.sync += waiting[number].eq(waiting[number] + 1)
            with m.If(self.allocate & (self.next_line == number)):
                m.d.sync += [
                    columns[number].eq(looked_up),
                    present[number].eq(1),
                    filling[number].eq(1),
                    waiting[number].eq(self.first_waits),
                ]
        return m

    def _hand(self, m: Module, present: Signal, filling: Signal, used: Signal) -> None:
        """Find the line to be replaced next: in a cycle the hand passes all lines up to it, or up
        to the last line."""
        hand = Signal(range(self.lines))
        free_line = Signal()
        # The line was used after the hand had stopped at it.
        again = Signal()
        busy = Signal(self.lines)
        from_hand = Signal(self.lines)
        fit = Signal(self.lines)
        chosen_line = Signal(self.lines)
        passed = Signal(self.lines)
        m.d.comb += [
            self.free.eq(free_line),
            again.eq((self.use | self.merge) & self.present & (self.line == self.next_line)),
            busy.eq(self.busy << self.busy_line),
            from_hand.eq(Const(-1, self.lines) << hand),
            chosen_line.eq(free_line << self.next_line),
            fit.eq(from_hand & ~filling & ~busy & ~chosen_line & ~(present & used)),
            # All lines below the first that fits; all if none does.
            passed.eq(from_hand & ~filling & ~fit & (fit - 1)),
        ]
        with m.If(~free_line | self.allocate | again):
            m.d.sync += [
                free_line.eq(fit.any()),
                self.next_line.eq(lowest_one(fit)),
                hand.eq(Mux(fit.any(), lowest_one(fit) + 1, 0)),
                used.eq(used & ~passed),
            ]
