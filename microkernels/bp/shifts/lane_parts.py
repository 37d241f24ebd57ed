"""Registers of the kernels with messages by shifts."""

from microkernels.common.builder import KernelBuilder

from ..parameters import SIGNALS
from ..problem import element_type
from ..variants.variant import DAMPING_BITS, USUAL, Variant

__all__ = ["LaneParts"]


class LaneParts:
    """Registers of a kernel that works on several lines in turns, the lanes, and that has the
    addresses of its slots in registers.

    Parameters:
        labels, bits: of the problem.
        lanes: 1, 2 or 4.
        slots: of the ring.
        writer: takes the text.
        in_blocks: of the kernel on blocks of pixels
            (:mod:`microkernels.bp.shifts.block_kernel`).
        variant: of the updates; usual in a kernel on blocks.

    Attributes (registers, unless said otherwise): see the purposes below, which the program lists.
    """

    def __init__(
        self,
        labels: int,
        bits: int,
        lanes: int,
        slots: int,
        writer: KernelBuilder,
        *,
        in_blocks: bool = False,
        variant: Variant = USUAL,
    ) -> None:
        self.variant = variant
        self.size = element_type(bits).itemsize
        self.labels = labels
        self.slots = slots
        self.lane_count = lanes
        self.in_blocks = in_blocks
        self.writer = writer
        reg = writer.register
        self.zero = writer.zero
        self.scratch = self.x = reg("x", "an operand, or for the moment")
        self.y = reg("y", "an operand")
        self.iterations = reg("iterations", "iterations left")
        self.first_run = reg("first_run", "address of the first run's description")
        self.runs = reg("runs", "runs in an iteration")
        self.runs_left = reg("runs_left", "runs left in this iteration")
        self.described = reg("described", "address of the next word of a run's description")
        self.event = reg("event", "number of the step of a sweep that ends next")
        self.lanes = reg("lanes", "run: lines worked on at a time")
        self.wait = reg("wait", "run: address of a flag to wait for before, or 0")
        self.costs = reg("costs", "run: address of smoothness costs to load before, or 0")
        self.load_start = reg("load_start", "run: address of a, b, c at the load stream's line")
        self.edge = [reg("edge", "run: address of the first message of the load stream's line")]
        self.across = reg("across", "run: bytes from a line of a pair to the other")
        self.step = reg("step", "run: bytes from pixel to pixel of a line")
        self.exit = reg("exit", "run: bytes from the last message but one of a line to the last")
        self.turn = reg("turn", "run: bytes from the last message of a line to the next's first")
        self.next = reg("next", "run: bytes from a line to the next one of its lane")
        self.groups = reg("groups", "run: groups of lines left in the update stream")
        self.updates = reg("updates", "run: updates in a line")
        self.signals = [
            reg(f"signal_{n}", f"run: address of flag {n} to write after it, or 0")
            for n in range(1, SIGNALS + 1)
        ]
        self.gather = reg("gather", "run: address of the first flag to wait for after it, or 0")
        self.gather_end = reg("gather_end", "run: end of those flags")
        self.load_groups = reg("load_groups", "groups of lines left in the load stream")
        self.load_left = reg("load_left", "updates left in the load stream's line")
        self.load = [
            reg("load", "address of the next a, b, c of the first lane"),
            reg("load_slot", "slot of the block that is loaded next")
            if in_blocks
            else reg("load_lane", "the same of the lane that is loaded next"),
        ]
        self.left = reg("left", "updates left in the update stream's line")
        self.store = [reg("store", "address of the next message written of the first lane")]
        if not in_blocks:
            self.store.append(reg("store_lane", "the same of the lane that is stored next"))
        self.store_left = reg("store_left", "messages left to store in a line")
        self.incoming = [
            reg(f"incoming_{n}", f"message that lane {n} starts from") for n in range(lanes)
        ]
        if in_blocks:
            self.store.append(self.incoming[0])
        if lanes > 2 and not in_blocks:
            self.half = reg("half", "run: bytes from the first pair of lanes to the second")
        if lanes == 1:
            self.other_next = reg("other_next", "next of every second line")
            self.other_turn = reg("other_turn", "turn of every second line")
        if variant.weighted:
            self.weight = reg("weight", "run: bytes from a to the weight of the edge")
        if variant.damped:
            self.old = reg("old", "bytes from a, b, c in memory to the message that is replaced")
        self.message = [f"m{n}" for n in range(lanes)]

    def set_places(self, messages: tuple[int, ...], ring: int, slot: int, vector: int) -> None:
        """Allocate the constants that all such kernels have.

        Parameters:
            messages: scratchpad address of the message of each lane.
            ring, slot: address of the ring of slots, and bytes of one.
            vector: bytes from a vector of a slot to the next.
        """
        last = vector // self.size if self.in_blocks else self.labels + self.variant.tail
        inputs = 2 * vector // self.size + last
        self.vector_bytes = vector
        for name, value, purpose in (
            ("one", 1, "1"),
            ("labels", self.labels, "labels"),
            ("inputs", inputs, "elements of a, b and c"),
            *((f"m{n}", place, f"message of lane {n}") for n, place in enumerate(messages)),
            *((f"u{n}", ring + n * slot, f"slot {n}") for n in range(self.slots)),
        ):
            if self.in_blocks and name.startswith("u"):
                self.writer.register(name, f"a of update {name[1:]} of a block")
            elif not (self.in_blocks and name == "labels"):
                self.writer.constant(name, value, purpose)

    def set_fraction(self) -> None:
        """Write the setting of the fraction bits, if there are products."""
        w = self.writer
        if self.variant.damped and not self.variant.weighted:
            w.op("mov", self.y, DAMPING_BITS)
            w.op("set.fx", self.y)
        elif self.variant.weighted:
            w.op("set.fx", w.zero)

    def find_weight(self) -> None:
        """Write where in a slot a run finds its weights, if there are any: that of the edge forward
        comes first, then that of the edge back."""
        if not self.variant.weighted:
            return
        w = self.writer
        w.op("mov", self.weight, 2 * self.vector_bytes + self.labels * self.size)
        with w.unless("bge", self.step, self.zero):
            w.op("add", self.weight, self.weight, self.size)

    def take_share(self, vector: str, damping: int) -> None:
        """Write the share of a difference that a message keeps; ``damping`` is the scratchpad
        address of the sixteenths."""
        w = self.writer
        if self.variant.weighted:
            w.op("mov", self.y, DAMPING_BITS)
            w.op("set.fx", self.y)
        w.op("mov", self.y, damping)
        w.vector("v.s.mul", vector, vector, self.y, note="f = d * damping")
        if self.variant.weighted:
            w.op("set.fx", w.zero)

    def slot(self, update: int) -> str:
        """Register with the address of an update's slot."""
        return f"u{update % self.slots}"

    def lane(self, update: int) -> int:
        """Lane of an update."""
        return update % self.lane_count
