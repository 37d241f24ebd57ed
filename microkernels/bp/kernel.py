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

from .frame import BpFrame
from .parts import BpParts
from .schedule import LANES, ScratchpadPlan, plan
from .stream import BpStream

__all__ = ["DEFAULT_SLOTS", "bp_builder", "bp_program"]

#: Slots of the ring. An update is loaded ``slots`` - 2 updates ahead: with 16 labels of 16 bits
#: more than 480 cycles, enough for a DRAM that four engines share.
DEFAULT_SLOTS = 8


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


class _BpKernel(BpFrame):
    """The program with a matrix of smoothness costs."""

    def __init__(
        self, labels: int, bits: int, places: ScratchpadPlan, vault_bits: int | None
    ) -> None:
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
        super().__init__(self.parts, vault_bits)

    def set_lengths(self) -> None:
        """All rows of the matrix."""
        self.parts.writer.op("set.vl", "labels")
        self.parts.writer.op("set.mr", "labels")

    def load_costs(self) -> None:
        """The matrix."""
        self.parts.writer.load("S", self.parts.costs, "matrix_elements")

    def emit_streams(self) -> None:
        """Lines in pairs, and lines one by one."""
        p, w = self.parts, self.parts.writer
        w.op("beq", p.lanes, "one", "lone")
        w.note("Lines in pairs.")
        BpStream(p, lanes=LANES, name="pair", at_end=self.describe, after="run_end").emit()
        w.note("Lines one by one.")
        w.label("lone")
        BpStream(p, lanes=1, name="lone", at_end=self.describe, after="run_end").emit()
