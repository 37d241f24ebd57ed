"""The machine: sixteen registers of 256 bytes, and the rule about addresses within them."""

from collections.abc import Callable, Sequence

import numpy as np

from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements

#: Vector registers, elements and bytes of each, bytes of an element.
REGISTERS, PACKED, REGISTER_BYTES, ELEMENT_BYTES = 16, 128, 256, 2
#: Engines of a vault.
ENGINES = 4
#: The machines, in the order of their kernels' classes.
MACHINES = ("memory", "registers", "no_reduction")


class RegisterBuilder(KernelBuilder):
    """Writes vector instructions on registers, and addresses that depend on the engine.

    Parameters:
        names: of the vector registers, at consecutive addresses; at most 16.
        lengths: of the vectors that instructions, loads and stores use.
        free: the machine is VIP: places are free, not registers.

    Raises:
        KernelError: too many names, or an instruction that the machine does not have.
    """

    def __init__(
        self, title: str, names: Sequence[str], lengths: Sequence[int], *, free: bool = False
    ) -> None:
        super().__init__(title, launch=("slot", "parameters"), place_drains=True)
        if len(names) > REGISTERS:
            raise KernelError(f"{len(names)} vector registers; the machine has {REGISTERS}")
        self._addresses = {name: number * REGISTER_BYTES for number, name in enumerate(names)}
        self._free_places = free
        self._length = 0
        self._lengths = {
            count: self.constant(f"count_{count}", count, "elements") for count in lengths
        }
        for name, address in self._addresses.items():
            self.constant(name, address, "vector register" if not free else "place")
        self._engine = self.register("engine", "engines before this one")
        self._at = [self.register(f"at_{number}", "place within a register") for number in (0, 1)]

    def length(self, count: int) -> str:
        """The register with ``count``."""
        return self._lengths[count]

    def _set_length(self, count: int) -> None:
        if count != self._length:
            self.op("set.vl", self.length(count))
            self._length = count

    def begin(self) -> None:
        """A point that code further down jumps to."""
        self._length = 0

    def within(self, name: str, offset: int, number: int) -> str:
        """A register with the address of element ``offset`` of a vector register."""
        if not offset:
            return name
        self.op("add", self._at[number], name, ELEMENT_BYTES * offset)
        return self._at[number]

    def compute(self, mnemonic: str, count: int, target: str, *sources: str) -> None:
        """An instruction on ``count`` elements of whole registers."""
        self._set_length(count)
        if not self._free_places and not {target, *sources} <= set(self._addresses):
            raise KernelError(f"{mnemonic} {target}, {sources}: not vector registers")
        self.vector(mnemonic, target, *sources)

    def move(self, count: int, target: tuple[str, int], source: tuple[str, int]) -> None:
        """Copy ``count`` elements between places within registers, of which one is a start."""
        if target[1] and source[1]:
            raise KernelError(f"a move from {source} to {target}: one must be a start")
        place = self.within(*target, 0)
        origin = self.within(*source, 1)
        self._set_length(count)
        self.vector("v.v.max", place, origin, origin)

    def engine_address(self, name: str, start: int, pitch: int, purpose: str) -> str:
        """A register that will be ``start`` plus ``pitch`` for each engine before this one."""
        self.register(name, purpose)
        self.note(purpose)
        self.op("mov", name, self.zero)
        self.op("mov", self._engine, "slot")
        with self.unless("beq", self._engine, self.zero), self.loop(f"{name}_of", self._engine):
            self.offset(name, name, pitch)
        self.offset(name, name, start)
        return name


def drawn(random: np.random.Generator) -> Callable[[int, int, tuple[int, ...]], Elements]:
    """Draws elements from a range, its end excluded."""

    def draw(low: int, high: int, shape: tuple[int, ...]) -> Elements:
        return random.integers(low, high, shape, np.int16)

    return draw
