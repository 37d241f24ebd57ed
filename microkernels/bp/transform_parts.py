"""Registers of the kernel with messages by shifts, and its vector instructions."""

from microkernels.common.builder import KernelBuilder

from .parameters import SIGNALS
from .problem import element_type
from .transform import Transform
from .transform_schedule import Rhythm, TransformPlan

__all__ = ["TransformParts"]


class TransformParts:
    """Registers, named as in the comments of the program, and vector instructions.

    Parameters:
        labels, bits: of the problem.
        transform: of its smoothness costs.
        rhythm: order of the instructions. places: the scratchpad.
        writer: takes the text.

    Attributes (registers, unless said otherwise): see the purposes below, which the program lists.
    """

    def __init__(
        self,
        labels: int,
        bits: int,
        transform: Transform,
        rhythm: Rhythm,
        places: TransformPlan,
        writer: KernelBuilder,
    ) -> None:
        self.size = element_type(bits).itemsize
        self.labels = labels
        self.transform = transform
        self.rhythm = rhythm
        self.places = places
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
            reg(f"signal_{n}", f"run: address of flag {n} to write behind it, or 0")
            for n in range(1, SIGNALS + 1)
        ]
        self.gather = reg("gather", "run: address of the first flag to wait for behind it, or 0")
        self.gather_end = reg("gather_end", "run: end of those flags")
        self.load_groups = reg("load_groups", "groups of lines left in the load stream")
        self.load_left = reg("load_left", "updates left in the load stream's line")
        self.load = [
            reg("load", "address of the next a, b, c of the first lane"),
            reg("load_lane", "the same of the lane that is loaded next"),
        ]
        self.left = reg("left", "updates left in the update stream's line")
        self.store = [
            reg("store", "address of the next message written of the first lane"),
            reg("store_lane", "the same of the lane that is stored next"),
        ]
        self.store_left = reg("store_left", "messages left to store in a line")
        if len(transform.shifts) > 1:
            self.z = reg("z", "a result")
        lanes = range(rhythm.lanes)
        self.incoming = [reg(f"incoming_{n}", f"message that lane {n} starts from") for n in lanes]
        if rhythm.lanes > 2:
            self.half = reg("half", "run: bytes from the first pair of lanes to the second")
        if rhythm.lanes == 1:
            self.other_next = reg("other_next", "next of every second line")
            self.other_turn = reg("other_turn", "turn of every second line")
        inputs = 2 * places.vector // self.size + labels
        constants = [
            ("one", 1, "1"),
            ("labels", labels, "labels"),
            ("inputs", inputs, "elements of a, b and c"),
        ]
        if transform.plateau is not None:
            constants += [
                ("P", places.plateau, "plateau of the smoothness costs, for each label"),
                ("g", places.least, "least total and plateau"),
            ]
        if transform.shifts:
            constants.append(("k", places.costs, "cost of the first shift"))
        if len(transform.shifts) == 1:
            constants += [
                ("s", places.sums[0], "total and cost of the shift"),
                ("w", places.windows[0], "least of two shifted sums"),
            ]
        if None in map(rhythm.at, range(rhythm.period)):
            constants += [
                ("pad", places.pad, "result of pads"),
                ("blank", places.idle, "operand of pads"),
            ]
        constants += [
            (f"m{n}", places.messages[n], f"message of lane {n}") for n in range(rhythm.lanes)
        ]
        constants += [
            (f"u{n}", places.ring + n * places.slot, f"slot {n}") for n in range(places.slots)
        ]
        for name, value, purpose in constants:
            writer.constant(name, value, purpose)
        self.message = [f"m{n}" for n in lanes]

    def slot(self, update: int) -> str:
        """Register with the address of an update's slot."""
        return f"u{update % self.places.slots}"

    def lane(self, update: int) -> int:
        """Lane of an update."""
        return update % self.rhythm.lanes

    def vector(self, name: str, update: int) -> None:
        """Write instruction ``name`` of an update (:mod:`microkernels.bp.transform_schedule`)."""
        w, slot, lane = self.writer, self.slot(update), self.lane(update)
        vector = self.places.vector
        if name == "q":
            w.op("add", self.x, slot, vector)
            w.vector("v.v.add", slot, slot, self.x, note="q = a + b")
        elif name == "p":
            w.op("add", self.y, slot, 2 * vector)
            w.vector("v.v.add", slot, slot, self.y, note="p = q + c")
        elif name == "t":
            w.vector("v.v.add", slot, slot, self.incoming[lane], note=f"t of lane {lane}")
            w.op("mov", self.incoming[lane], self.message[lane])
        elif name == "g":
            w.vector("m.v.add.min", "g", slot, "P", note="g = min(t + P)")
        elif name == "u":
            w.vector("v.s.min", slot, slot, "g", note="u = min(t, g)")
        elif name == "m":
            w.vector("v.s.sub", self.message[lane], slot, slot, note=f"m of lane {lane}")
        else:
            self._shift(name[0], int(name[1:]), slot)

    def _shift(self, kind: str, number: int, slot: str) -> None:
        w, places = self.writer, self.places
        alone = len(self.transform.shifts) == 1
        sums, windows = places.sums[number], places.windows[number]
        far = self.transform.shifts[number].labels * self.size
        if kind == "s":
            cost = "k"
            if number:
                cost = self.x
                w.op("add", cost, "k", number * self.size)
            if not alone:
                w.op("mov", self.y, sums)
            w.vector("v.s.add", "s" if alone else self.y, slot, cost, note="s = u + cost")
        elif kind == "x":
            w.op("mov", self.x, sums - far)
            w.op("mov", self.y, sums + far)
            if not alone:
                w.op("mov", self.z, windows)
            w.vector("v.v.min", "w" if alone else self.z, self.x, self.y, note="both ways")
        else:
            if not alone:
                w.op("mov", self.x, windows)
            w.vector("v.v.min", slot, slot, "w" if alone else self.x, note="u = min(u, both)")

    def pad(self) -> None:
        """An instruction whose result is not used."""
        self.writer.vector("v.v.add", "pad", "blank", "blank", note="pad")
