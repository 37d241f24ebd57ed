"""The frame of the belief propagation kernels: parameters, iterations, runs and flags.

The code that updates the lines of a run, and the smoothness costs that it needs, are those of the
kernel (:mod:`microkernels.bp.kernel`, :mod:`microkernels.bp.shifts.kernel`).
"""

from abc import ABC, abstractmethod
from typing import Protocol

from microkernels.common.builder import KernelBuilder
from microkernels.runtime.barrier import FlagCode

__all__ = ["BpFrame", "RunRegisters"]

_LOG_WORD = 3


class RunRegisters(Protocol):
    """Registers of the frame. Those of ``load``, ``store``, ``load_groups``, ``left`` and
    ``load_left`` hold nothing between runs; the others are those of
    :class:`microkernels.bp.parameters.Run`, or are named like their purpose."""

    writer: KernelBuilder
    zero: str
    scratch: str
    iterations: str
    first_run: str
    runs: str
    runs_left: str
    described: str
    event: str
    lanes: str
    wait: str
    costs: str
    load_start: str
    edge: list[str]
    across: str
    step: str
    exit: str
    turn: str
    next: str
    groups: str
    updates: str
    signals: list[str]
    gather: str
    gather_end: str
    load_groups: str
    load_left: str
    load: list[str]
    left: str
    store: list[str]


class BpFrame(ABC):
    """Frame of a program.

    Parameters:
        parts: registers; the code goes to their writer. vault_bits: as for
            :func:`microkernels.bp.kernel.bp_builder`.
    """

    def __init__(self, parts: RunRegisters, vault_bits: int | None) -> None:
        self.vault_bits = vault_bits
        self.run = p = parts
        # Registers of the streams hold nothing between runs.
        self.flags = FlagCode(
            parts.writer,
            event=p.event,
            scratch=(p.load[0], p.load[1], p.store[0], p.store[1], p.left, p.load_left),
            one="one",
        )

    @abstractmethod
    def set_lengths(self) -> None:
        """Write the settings of vector length and matrix rows."""

    @abstractmethod
    def load_costs(self) -> None:
        """Write the load of the smoothness costs at ``costs``."""

    @abstractmethod
    def emit_streams(self) -> None:
        """Write the code for the lines of a run. It calls :meth:`describe` once on each of its
        ways, where it needs the run's words no more, and goes to ``run_end`` when the messages'
        stores are issued and no vector instruction is left."""

    def build(self) -> KernelBuilder:
        """The whole program."""
        p, w = self.run, self.run.writer
        self._start()
        w.note("Nothing to do in this sweep.")
        w.label("idle")
        self.describe()
        w.op("jmp", "run_end")

        w.label("run")
        self._begin_run()
        w.op("beq", p.lanes, p.zero, "idle")
        self.emit_streams()

        w.note("The run's messages are in memory before a flag reports them.")
        w.label("run_end")
        with w.unless("beq", p.signals[0], p.zero):
            self.flags.signal(*p.signals)
        with w.unless("beq", p.costs, p.zero):
            self.load_costs()
        with w.unless("beq", p.gather, p.zero):
            w.note("The step is over: wait for those who have to come so far.")
            self.flags.gather(p.gather, p.gather_end)
        w.op("bne", p.iterations, p.zero, "run")
        w.label("finish")
        w.op("halt")
        return w

    def _start(self) -> None:
        p, w = self.run, self.run.writer
        w.note("Parameter block.")
        sharers, part, own = p.load_groups, p.groups, p.load_left
        if self.vault_bits is None:
            w.op("mov", p.scratch, "parameters")
        else:
            w.op("sll", p.scratch, "vault", self.vault_bits)
            w.op("add", p.scratch, p.scratch, "parameters")
        w.read(p.iterations, p.scratch)
        w.read(sharers, p.scratch)
        w.set_constants()
        self.set_lengths()
        w.note("A PE that has the tile for itself takes the first part, others that of their slot.")
        w.op("beq", p.iterations, p.zero, "finish")
        with w.unless("beq", sharers, "one"):
            w.op("bge", "slot", sharers, "finish")
            w.op("sll", own, "slot", _LOG_WORD)
            w.op("add", p.scratch, p.scratch, own)
        w.op("ld.reg [64-bit]", part, p.scratch)
        w.read(own, part)
        w.read(p.runs, part)
        w.op("mov", p.first_run, part)
        w.op("mov", p.described, part)
        self.flags.resume(own)
        w.op("mov", p.runs_left, p.runs)
        w.op("mov", p.signals[0], p.zero)
        w.op("mov", p.gather, p.zero)

    def describe(self) -> None:
        """Read the next run's words except those about its end: the previous run still needs its
        own.

        The loads are in flight while that run ends.
        """
        p, w = self.run, self.run.writer
        w.note("Description of the next run.")
        for word in (
            p.lanes,
            p.wait,
            p.costs,
            p.load_start,
            p.edge[0],
            p.across,
            p.step,
            p.exit,
            p.turn,
            p.next,
            p.groups,
            p.updates,
        ):
            w.read(word, p.described)

    def _begin_run(self) -> None:
        """Read the words about the run's end; wait for its flag; count runs and iterations."""
        p, w = self.run, self.run.writer
        for word in (*p.signals, p.gather, p.gather_end):
            w.read(word, p.described)
        counted, full = "counted", "free"
        w.op("sub", p.runs_left, p.runs_left, 1)
        w.op("bne", p.runs_left, p.zero, counted)
        w.op("mov", p.runs_left, p.runs)
        w.op("mov", p.described, p.first_run)
        w.op("sub", p.iterations, p.iterations, 1)
        w.label(counted)
        w.op("beq", p.wait, p.zero, full)
        self.flags.wait_for(p.wait)
        w.label(full)
