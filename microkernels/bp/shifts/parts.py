"""Vector instructions of the kernel with messages by shifts, and the registers that they need."""

from microkernels.common.builder import KernelBuilder

from ..variants.variant import USUAL, Variant
from .lane_parts import LaneParts
from .rhythm import Rhythm, TransformPlan
from .transform import Transform

__all__ = ["TransformParts"]

#: Most shifts whose addresses registers hold in a kernel on blocks.
_HELD_IN_BLOCKS = 2


class TransformParts(LaneParts):
    """Registers, named as in the comments of the program, and vector instructions.

    Parameters:
        labels, bits: of the problem.
        transform: of its smoothness costs.
        rhythm: order of the instructions. places: the scratchpad.
        writer: takes the text. in_blocks, variant: as of :class:`..lane_parts.LaneParts`.
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
        variant: Variant = USUAL,
    ) -> None:
        lanes, slots = rhythm.lanes, places.slots
        super().__init__(labels, bits, lanes, slots, writer, in_blocks=in_blocks, variant=variant)
        self.transform = transform
        self.places = places
        # With two shifts, a kernel on blocks has registers for the addresses of both.
        self.held = variant.usual and len(transform.shifts) <= (_HELD_IN_BLOCKS if in_blocks else 1)
        if not self.held:
            self.z = writer.register("z", "a result")
        self.set_places(places.messages, places.ring, places.slot, places.vector)
        constants = []
        self.plateau, self.idle = "P", "blank"
        scarce = in_blocks or not variant.usual
        if scarce:
            # Registers are scarce, and the plateau lies at address 0.
            self.plateau = self.idle = self.zero
        if transform.plateau is not None:
            if not scarce:
                plateau = "plateau of the smoothness costs, for each label"
                constants.append((self.plateau, places.plateau, plateau))
            constants.append(("g", places.least, "least total and plateau"))
        if transform.shifts:
            constants.append(("k", places.costs, "cost of the first shift"))
        for number in range(len(transform.shifts) if self.held else 0):
            constants += [
                (self._sum(number), places.sums[number], "total and cost of the shift"),
                (self._window(number), places.windows[number], "least of two shifted sums"),
            ]
        if None in map(rhythm.at, range(rhythm.period)):
            constants.append(("pad", places.pad, "result of pads"))
            if not scarce:
                constants.append((self.idle, places.idle, "operand of pads"))
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
            plateau = self.plateau
            if self.variant.weighted:
                plateau = self.x
                w.op("add", plateau, slot, 2 * vector)
            w.vector("m.v.add.min", "g", slot, plateau, note="g = min(t + P)")
        elif name == "u":
            w.vector("v.s.min", slot, slot, "g", note="u = min(t, g)")
        elif name == "m" and not self.variant.damped:
            w.vector("v.s.sub", self.message[lane], slot, slot, note=f"m of lane {lane}")
        elif name in ("k", "w"):
            self._scale(name, slot)
        elif name in ("n", "d", "f", "m"):
            self._damp(name, slot, self.message[lane])
        else:
            self._shift(name[0], int(name[1:]), slot)

    def _scale(self, name: str, slot: str) -> None:
        """Costs of the shifts, or the plateau, times the weight of the edge."""
        w, vector = self.writer, self.places.vector
        costs, place = ("k", vector) if name == "k" else (self.plateau, 2 * vector)
        w.op("add", self.y, slot, self.weight)
        w.op("add", self.x, slot, place)
        w.vector("v.s.mul", self.x, costs, self.y, note="times the weight of the edge")

    def _damp(self, name: str, slot: str, message: str) -> None:
        """The new message, mixed with the old one."""
        w, places = self.writer, self.places
        if name == "f":
            self.take_share(slot, places.damping)
            return
        w.op("add", self.x, slot, 2 * places.vector)
        if name == "n":
            w.vector("v.s.sub", self.x, slot, slot, note="n = u - u[0]")
        elif name == "d":
            w.op("add", self.y, slot, places.old)
            w.vector("v.v.sub", slot, self.y, self.x, note="d = o - n")
        else:
            w.vector("v.v.add", message, self.x, slot, note="m = n + f")

    @staticmethod
    def _sum(number: int) -> str:
        """Register with the address of ``s`` of a shift, if it is held."""
        return f"s{number}" if number else "s"

    @staticmethod
    def _window(number: int) -> str:
        """The same of ``x``."""
        return f"w{number}" if number else "w"

    def _shift(self, kind: str, number: int, slot: str) -> None:
        w, places = self.writer, self.places
        sums, windows = places.sums[number], places.windows[number]
        far = self.transform.shifts[number].labels * self.size
        if kind == "s":
            cost = "k"
            if self.variant.weighted:
                cost = self.x
                w.op("add", cost, slot, places.vector + number * self.size)
            elif number:
                cost = self.x
                w.op("add", cost, "k", number * self.size)
            result = self._sum(number) if self.held else self.y
            if not self.held:
                w.op("mov", result, sums)
            w.vector("v.s.add", result, slot, cost, note="s = u + cost")
        elif kind == "x":
            w.op("mov", self.x, sums - far)
            w.op("mov", self.y, sums + far)
            result = self._window(number) if self.held else self.z
            if not self.held:
                w.op("mov", result, windows)
            w.vector("v.v.min", result, self.x, self.y, note="both ways")
        else:
            operand = self._window(number) if self.held else self.x
            if not self.held:
                w.op("mov", operand, windows)
            w.vector("v.v.min", slot, slot, operand, note="u = min(u, both)")

    def pad(self) -> None:
        """An instruction whose result is not used."""
        self.writer.vector("v.v.add", "pad", self.idle, self.idle, note="pad")
