"""Generator of the BP-M kernel: all four directions of a tile, any number of iterations.

The program reads everything about the tile from the parameter block
(:mod:`microkernels.bp.parameters`); only the number of labels and the element width are built into
its code. Its arithmetic is that of :mod:`microkernels.bp.golden`, its schedule that of
:mod:`microkernels.bp.schedule`.

An engine works through *runs* of lines, in pairs or one by one. Before a run the engine may wait
for the flag of another engine, and after a run it may write flags. After the last run of a tile it
may wait until other engines have reached the same point (:mod:`microkernels.runtime.barrier`,
:mod:`microkernels.bp.steps`). The description of a run is read while the previous run ends. The
last message of a line may go into another vault, in which the line continues.

Two streams go over the lines of a run, without a stop at their ends: the *load stream* fills the
ring of slots and is ahead of the *update stream* by the ring's length.

The following rules keep the program correct under any timing of the memory and the front end. The
vector unit has no interlock. It holds at most :data:`isa.timing.VECTOR_HELD` (2) instructions. So
when it takes an instruction, the one two places before has read its last operands, and every
instruction before that one ended at least the beats between them earlier.

- *Vector after vector*: at least :data:`isa.timing.VECTOR_LATENCY` cycles apart even when the unit
  never waits, which is the worst case, as a stall only adds cycles
  (:class:`microkernels.bp.schedule.Spacing`).
- *Store after vector* (a message): a store may issue at once, while instructions before it wait in
  the vector unit. ``m`` is stored after the ``q`` that follows the ``r`` computed from ``m``. Pair:
  ``m p r' q t m' p r q``, store; lone: ``m t p r q``, store. When the vector unit has taken the
  last ``q``, ``p`` has read its operands, and ``m`` was complete before the instructions between
  them.
- *Load after vector* (a slot): slot ``h`` is reloaded after the same instruction. Its three
  vectors were last read by ``q`` and ``p`` of earlier updates, its first message by ``t`` of update
  ``h``; all of these come before the ``p`` that has read its operands.
- *Vector after store* (``m`` computed anew while it is being stored) and *vector after load*: the
  array range check of the hardware holds the vector instruction.
- *Load after store* in memory: a sweep reads no message that it writes, with one exception: the
  message from which the rest of a cut line continues (:mod:`microkernels.bp.partition`). A
  ``memfence`` and a flag separate two sweeps, and the first part of such a line from its rest.
"""

from isa.program import Program
from isa.table import Width
from microkernels.common.builder import DEFAULT_SCRATCHPAD, KernelBuilder
from microkernels.common.errors import CHECK
from microkernels.runtime.barrier import FlagCode

from .parts import BpParts
from .schedule import LANES, ScratchpadPlan, plan
from .stream import BpStream

__all__ = ["DEFAULT_SLOTS", "bp_builder", "bp_program"]

#: Slots of the ring. An update is loaded ``slots`` - 2 updates ahead: with 16 labels of 16 bits
#: more than 480 cycles, enough for a DRAM that four engines share.
DEFAULT_SLOTS = 8

_LOG_WORD = 3


@CHECK.arguments
def bp_program(
    labels: int,
    bits: int = 16,
    *,
    slots: int = DEFAULT_SLOTS,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
    vault_bits: int | None = None,
) -> Program:
    """The assembled kernel; see :func:`bp_builder`."""
    builder = bp_builder(
        labels, bits, slots=slots, scratchpad_bytes=scratchpad_bytes, vault_bits=vault_bits
    )
    return builder.program(f"bp_m_{labels}x{bits}.s")


@CHECK.arguments
def bp_builder(
    labels: int,
    bits: int = 16,
    *,
    slots: int = DEFAULT_SLOTS,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
    vault_bits: int | None = None,
) -> KernelBuilder:
    """BP-M on the tiles that a parameter block describes.

    Parameters:
        labels: 1 up to what fits the scratchpad.
        bits: element width, 8, 16 or 32.
        slots: update inputs held or in flight; even, at least 4. Fewer when they don't fit.
        scratchpad_bytes: size of the scratchpad.
        vault_bits: bits of an address within a vault, if each vault has a block of its own; the
            start register ``parameters`` is then its address within the vault, the same for all
            engines of the chip. None: it is the address of the only block.

    Raises:
        KernelError: a value outside its range; names the most labels that fit.
    """
    places = plan(labels, bits, slots, scratchpad_bytes)
    return _BpKernel(labels, bits, places, vault_bits).build()


class _BpKernel:
    """Frame of the program: parameters, iterations, sweeps; the streams do the work."""

    def __init__(
        self, labels: int, bits: int, places: ScratchpadPlan, vault_bits: int | None
    ) -> None:
        self.vault_bits = vault_bits
        writer = KernelBuilder(
            f"BP-M on a tile: {labels} labels of {bits} bits, thesis section 6.1.",
            "Generated by microkernels.bp.kernel, which explains the schedule and its safety.",
            "X and Y are the two lines worked on at a time; h counts updates.",
            "",
            f"Scratchpad ({places.used} bytes)",
            f"  {places.matrix:>4} smoothness costs S",
            f"  {places.presum:>4} presum q   {places.partial} partial sum p   "
            f"{places.total} total t   {places.pad} pad",
            f"  {places.raw[0]:>4} Xr, {places.raw[1]} Yr: new messages before normalisation",
            f"  {places.message[0]:>4} Xm, {places.message[1]} Ym: new messages",
            f"  {places.ring:>4} ring of {places.slots} slots of {places.slot} bytes: a, b, c, "
            "first message of a line",
            launch=("vault", "slot", "parameters"),
            width=Width[f"W{bits}"],
        )
        self.parts = BpParts(labels, bits, places, writer)

        p = self.parts
        # Registers of the streams hold nothing between runs.
        self.flags = FlagCode(
            writer,
            event=p.event,
            scratch=(p.load[0], p.load[1], p.store[0], p.store[1], p.left, p.load_left),
            one="one",
        )

    def build(self) -> KernelBuilder:
        """The whole program."""
        p, w = self.parts, self.parts.writer
        self._start()
        w.note("Nothing to do in this sweep.")
        w.label("idle")
        self._describe()
        w.op("jmp", "run_end")

        w.label("run")
        self._begin_run()
        w.op("beq", p.lanes, p.zero, "idle")
        w.op("beq", p.lanes, "one", "lone")
        w.note("Lines in pairs.")
        BpStream(p, lanes=LANES, name="pair", at_end=self._describe, behind="run_end").emit()
        w.note("Lines one by one.")
        w.label("lone")
        BpStream(p, lanes=1, name="lone", at_end=self._describe, behind="run_end").emit()

        w.note("The run's messages are in memory before anyone is told so.")
        w.label("run_end")
        with w.unless("beq", p.signals[0], p.zero):
            self.flags.signal(*p.signals)
        with w.unless("beq", p.costs, p.zero):
            w.load("S", p.costs, "matrix_elements")
        with w.unless("beq", p.gather, p.zero):
            w.note("The step is over: wait for those who have to come so far.")
            self.flags.gather(p.gather, p.gather_end)
        w.op("bne", p.iterations, p.zero, "run")
        w.label("finish")
        w.op("halt")
        return w

    def _start(self) -> None:
        p, w = self.parts, self.parts.writer
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
        w.op("set.vl", "labels")
        w.op("set.mr", "labels")
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

    def _describe(self) -> None:
        """Read the next run's words except those about its end: the previous run still needs its
        own.

        The loads are in flight while that run ends.
        """
        p, w = self.parts, self.parts.writer
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
        p, w = self.parts, self.parts.writer
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
