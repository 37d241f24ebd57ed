"""The belief propagation kernel's registers and the instructions it is made of."""

from microkernels.common.builder import KernelBuilder

from .parameters import SIGNALS
from .problem import element_type
from .schedule import ScratchpadPlan, Spacing

__all__ = ["LINE_NAMES", "BpParts"]

#: The two lines worked on at a time.
LINE_NAMES = "XY"


class BpParts:
    """Registers, named as in the comments of the program, and single instructions.

    Parameters:
        labels: labels of the problem.
        bits: element width.
        places: the scratchpad layout.
        writer: takes the text.

    Attributes (registers, unless said otherwise): see the purposes below, which the program lists.
    """

    def __init__(
        self, labels: int, bits: int, places: ScratchpadPlan, writer: KernelBuilder
    ) -> None:
        self.labels = labels
        self.bits = bits
        self.places = places
        self.spacing = Spacing.of(labels, bits)
        self.writer = writer
        reg = writer.register
        self.zero = writer.zero
        self.scratch = reg("scratch", "for the moment")
        self.iterations = reg("iterations", "iterations left")
        self.first_run = reg("first_run", "address of the first run's description")
        self.runs = reg("runs", "runs in an iteration")
        self.runs_left = reg("runs_left", "runs left in this iteration")
        self.described = reg("described", "address of the next word of a run's description")
        self.event = reg("event", "number of the step of a sweep that ends next")
        self.lanes = reg("lanes", "run: lines worked on at a time")
        self.wait = reg("wait", "run: address of a flag to wait for before, or 0")
        self.costs = reg("costs", "run: address of smoothness costs to load before, or 0")
        self.load_start = reg(
            "load_start", "run: address of a, b, c at the first pixel of the load stream's line"
        )
        self.edge = [
            reg(f"edge_{n.lower()}", f"address of the first message of the load stream's line {n}")
            for n in LINE_NAMES
        ]
        self.across = reg("across", "run: bytes from X to Y")
        self.step = reg("step", "run: bytes from pixel to pixel of a line")
        self.exit = reg("exit", "run: bytes from the last message but one of a line to the last")
        self.turn = reg(
            "turn", "run: bytes from the last message of a line to the next one's first"
        )
        self.next = reg("next", "run: bytes from a line to the next one of its lane")
        self.groups = reg("groups", "run: pairs or lines left in the update stream")
        self.updates = reg("updates", "run: updates in a line")
        self.signals = [
            reg(f"signal_{n}", f"run: address of flag {n} to write after it, or 0")
            for n in range(1, SIGNALS + 1)
        ]
        self.gather = reg("gather", "run: address of the first flag to wait for after it, or 0")
        self.gather_end = reg("gather_end", "run: end of those flags")
        self.load_groups = reg("load_groups", "pairs or lines left in the load stream")
        self.load_left = reg("load_left", "updates left in the load stream's line")
        self.load = [
            reg(f"load_{n.lower()}", f"address of the next a, b, c of line {n}") for n in LINE_NAMES
        ]
        self.left = reg("left", "updates left in the update stream's line")
        self.store = [
            reg(f"store_{n.lower()}", f"address of the next message written to line {n}")
            for n in LINE_NAMES
        ]
        self.store_step = [
            reg(f"store_step_{n.lower()}", f"bytes from there to the one after it, line {n}")
            for n in LINE_NAMES
        ]
        self.incoming = [
            reg(f"incoming_{n.lower()}", f"message that update h of line {n} starts from")
            for n in LINE_NAMES
        ]
        self.this_slot = reg("this_slot", "slot h")
        self.next_slot = reg("next_slot", "slot h + 1")
        self.a = reg("a", "a of the slot that q reads next")
        self.b = reg("b", "b of that slot")
        self.c = reg("c", "c of the slot that p reads next")
        self.first = reg("first", "where the first message of a line goes")
        for name, value, purpose in (
            ("one", 1, "1"),
            ("labels", labels, "labels"),
            ("inputs", self._input_elements(), "elements of a, b and c"),
            ("matrix_elements", labels * labels, "elements of S"),
            ("S", places.matrix, "smoothness costs"),
            ("q", places.presum, "a + b"),
            ("p", places.partial, "a + b + c"),
            ("t", places.total, "a + b + c + m"),
            ("pad", places.pad, "result of pads"),
            ("Xr", places.raw[0], "message of line X before it is normalised"),
            ("Yr", places.raw[1], "message of line Y before it is normalised"),
            ("Xm", places.message[0], "message of line X"),
            ("Ym", places.message[1], "message of line Y"),
            ("ring", places.ring, "ring of slots"),
            ("ring_end", places.ring_end, "end of the ring"),
        ):
            writer.constant(name, value, purpose)
        self.raw = ("Xr", "Yr")
        self.message = ("Xm", "Ym")

    def _input_elements(self) -> int:
        return 2 * self.places.vector // element_type(self.bits).itemsize + self.labels

    def normalise(self, lane: int) -> None:
        """New message of line ``lane`` (0: X, 1: Y): subtract the first entry from every entry."""
        self.writer.vector(
            "v.s.sub",
            self.message[lane],
            self.raw[lane],
            self.raw[lane],
            note=f"{LINE_NAMES[lane]}m = {LINE_NAMES[lane]}r - {LINE_NAMES[lane]}r[0]",
        )

    def store_message(self, lane: int) -> None:
        """Store the new message of line ``lane``."""
        note = f"message of line {LINE_NAMES[lane]}"
        self.writer.store(self.store[lane], self.message[lane], "labels", note=note)

    def add_presum(self) -> None:
        """``q`` of the slot that ``a`` and ``b`` point into."""
        self.writer.vector("v.v.add", "q", self.a, self.b, note="q = a + b")

    def add_partial(self) -> None:
        """``p`` of the slot that ``c`` points into."""
        self.writer.vector("v.v.add", "p", "q", self.c, note="p = q + c")

    def pads(self, count: int) -> None:
        """``count`` instructions whose result is not used."""
        for _ in range(count):
            self.writer.vector("v.v.add", "pad", "S", "S", note="pad")
