"""What the generators of kernels share beside :mod:`microkernels.common.assembly`: constants,
element width."""

from isa.launch import START_REGISTERS
from isa.table import IMM14, Width

from .assembly import AssemblyWriter

__all__ = ["KernelWriter"]


class KernelWriter(AssemblyWriter):
    """Assembly of a kernel whose elements have one width.

    Parameters:
        title: lines of text for the head of the program.
        width: of the elements.
        uses_launch: the program reads registers that the launch sets; otherwise they are handed out
            like all others, and a trimmed engine needs fewer.

    Attributes:
        zero: name of the register that holds 0.
    """

    def __init__(self, *title: str, width: Width = Width.W16, uses_launch: bool = False) -> None:
        super().__init__(*title, first=max(START_REGISTERS) + 1 if uses_launch else 1)
        self.zero = self.fixed_register("zero", 0, "0, as the launch leaves it")
        self._elements = f"[{width.bits}-bit]"
        self._far = ""
        self._constants: list[tuple[str, int]] = []

    def constant(self, name: str, value: int, purpose: str) -> str:
        """Name a register that :meth:`set_constants` gives ``value`` and that never changes."""
        return self.variable(name, value, f"constant {value}: {purpose}")

    def variable(self, name: str, value: int, purpose: str) -> str:
        """Name a register that :meth:`set_constants` gives its first ``value``."""
        self._constants.append((self.register(name, purpose), value))
        return name

    def set_constants(self) -> None:
        """Give all constants and variables named so far their values."""
        self.note("Constants.")
        for name, value in self._constants:
            self.op("li", name, value)

    def offset(self, result: str, base: str, distance: int, note: str = "") -> None:
        """``result = base + distance`` for any distance."""
        if distance in IMM14.range:
            self.op("add", result, base, distance, note=note)
        else:
            self._far = self._far or self.register("far", "distance that no immediate holds")
            self.op("li", self._far, distance)
            self.op("add", result, base, self._far, note=note)

    def swap(self, first: str, second: str, between: str) -> None:
        """Exchange two registers by way of a third."""
        self.op("mov", between, first)
        self.op("mov", first, second)
        self.op("mov", second, between)

    def vector(self, mnemonic: str, *operands: str, note: str = "") -> None:
        """A vector instruction, load or store on elements."""
        self.op(f"{mnemonic} {self._elements}", *operands, note=note)

    def load(self, scratchpad: str, memory: str, elements: str, note: str = "") -> None:
        """Load elements from memory into the scratchpad."""
        self.vector("ld.sram", scratchpad, memory, elements, note=note)

    def store(self, memory: str, scratchpad: str, elements: str, note: str = "") -> None:
        """Store elements from the scratchpad into memory."""
        self.vector("st.sram", memory, scratchpad, elements, note=note)
