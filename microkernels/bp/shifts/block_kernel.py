"""Generates the BP-M kernel with messages by shifts on blocks of pixels
(:mod:`microkernels.bp.block_frame`).

The vector instructions and their order are those of :mod:`microkernels.bp.shifts.kernel` with four
lanes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.scratchpad import ScratchpadPlan

from ..block_frame import BLOCK_LANES, TURN_UPDATES, BlockFrame, add_ring
from ..record import BLOCK, LOADED_VECTORS, vector_stride
from .base import BUS_BYTES, SharedImage
from .kernel import LINE_ENDS, LaneShifts, TransformKernel


@dataclass(frozen=True, kw_only=True)
class BlockShifts(LaneShifts):
    """The kernel on blocks of pixels, with :data:`BLOCK_LANES` lanes."""

    lanes: int = BLOCK_LANES

    in_blocks: ClassVar[bool] = True

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """As for :class:`.kernel.LaneShifts`, with one slot per turn.

        Raises:
            KernelError: it does not fit, or the schedule keeps updates for too long.
        """
        pad, beat = self._lane_pad(), self.rhythm
        pad.used = pad.ring
        fits = add_ring(pad, vector_stride(self.labels, self.bits))
        again = TURN_UPDATES * beat.period
        if pad.used > self.scratchpad_bytes or not fits or beat.freed >= again + beat.places["q"]:
            raise KernelError(
                f"blocks of {self.labels} labels of {self.bits} bits do not fit a scratchpad of "
                f"{self.scratchpad_bytes} bytes by shifts"
            )
        return pad

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """As for :class:`.base.Shifts`."""
        return _BlockKernel(self, vault_bits).build()

    @cached_property
    def cycles(self) -> float:
        """Cycles of the loop, which stores messages two at a time, and of line ends."""
        return self.loop_cycles / BLOCK + LINE_ENDS

    def shared_cycles(self, place: SharedImage) -> float:
        """As for :class:`.base.Shifts`; columns of DRAM are full."""
        bus = (LOADED_VECTORS + 1) * vector_stride(self.labels, self.bits) / BUS_BYTES
        return max(self.cycles, place.pes * bus)


class _BlockKernel(BlockFrame, TransformKernel):
    """The BP-M kernel on blocks."""

    def set_lengths(self) -> None:
        """Set one row and the vector length."""
        w = self.writer
        w.op("mov", self.y, self.labels)
        w.op("set.vl", self.y)
        w.op("set.mr", "one")

    def end_of_group(self, n: int) -> None:
        """End the last update of a turn, and its line if this was the last."""
        if self.second(n):
            super().end_of_group(n)

    def finish(self, end: int) -> None:
        """Write the end of a run, which is the end of a turn."""
        if not self.second(end):
            return
        pending = self.complete(end)
        self.store_pairs(sorted(self.lane(update) for update in pending if self.lane(update) % 2))
