"""Vector instructions of the kernel with messages by shifts, and the registers that they need."""

from microkernels.common.builder import KernelBuilder

from .lane_parts import LaneParts
from .rhythm import Rhythm, TransformPlan
from .transform import Transform

__all__ = ["TransformParts"]


class TransformParts(LaneParts):
    """Registers, named as in the comments of the program, and vector instructions.

    Parameters:
        labels, bits: of the problem.
        transform: of its smoothness costs.
        rhythm: order of the instructions. places: the scratchpad.
        writer: takes the text. in_blocks: as of :class:`..lane_parts.LaneParts`.
    """

    def __init__(
        self,
        labels: int,
        bits: int,
        transform: Transform,
        rhythm: Rhythm,
        places: TransformPlan,
        writer: KernelBuilder,
        *,
        in_blocks: bool = False,
    ) -> None:
        super().__init__(labels, bits, rhythm.lanes, places.slots, writer, in_blocks=in_blocks)
        self.transform = transform
        self.places = places
        if len(transform.shifts) > 1:
            self.z = writer.register("z", "a result")
        self.set_places(places.messages, places.ring, places.slot, places.vector)
        constants = []
        self.plateau = "P"
        if transform.plateau is not None:
            if in_blocks:
                # Registers are scarce, and the plateau lies at address 0.
                self.plateau = self.zero
            else:
                plateau = "plateau of the smoothness costs, for each label"
                constants.append((self.plateau, places.plateau, plateau))
            constants.append(("g", places.least, "least total and plateau"))
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
        for name, value, purpose in constants:
            writer.constant(name, value, purpose)

    def vector(self, name: str, update: int) -> None:
        """Write instruction ``name`` of an update (:mod:`microkernels.bp.shifts.rhythm`)."""
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
            w.vector("m.v.add.min", "g", slot, self.plateau, note="g = min(t + P)")
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
