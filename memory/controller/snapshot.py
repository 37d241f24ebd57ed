"""Snapshots of waiting banks, which bound the wait with policies that may prefer other banks."""

from amaranth.hdl import Module, Signal, Value

#: Cycles for which a snapshot may last before its banks count as late.
SNAPSHOT_CYCLES = 512


class WaitingSnapshot:
    """Marks the banks with a request; as soon as all of these have been served, marks again.

    Parameters:
        m: module that the registers become part of, in domain ``sync``.
        waiting: banks with a request. served: banks whose column command is issued.

    Attributes:
        marked: banks of the snapshot that wait still.
        age: cycles since the snapshot, :data:`SNAPSHOT_CYCLES` at most.
        late: 1 from SNAPSHOT_CYCLES cycles after a snapshot on, until all of its banks are served;
            a cycle later than ``age``, as a register.
    """

    def __init__(self, m: Module, waiting: Value, served: Value) -> None:
        self.marked = Signal(len(waiting))
        self.age = Signal(range(SNAPSHOT_CYCLES + 1))
        self.late = Signal()
        with m.If(self.marked.any()):
            m.d.sync += self.marked.eq(self.marked & ~served)
            with m.If(self.age != SNAPSHOT_CYCLES):
                m.d.sync += self.age.eq(self.age + 1)
        with m.Else():
            m.d.sync += [self.marked.eq(waiting), self.age.eq(0)]
        m.d.sync += self.late.eq(self.marked.any() & (self.age == SNAPSHOT_CYCLES))
