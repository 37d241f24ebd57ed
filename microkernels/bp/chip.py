"""Belief propagation on a chip, as a host sees it: what to write, what to launch, what to read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from isa.program import Program
from microkernels.common.errors import CHECK, KernelError
from microkernels.runtime.ring import VaultRing

from .contents import collect, contents, row_pieces
from .golden import iterate
from .kernel import bp_program
from .layout import BpLayout
from .problem import BpProblem, Messages

__all__ = ["BpChipJob"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BpChipJob:
    """A problem to solve with all vaults of a chip. A host does this, whatever its transport:

    1. write :meth:`writes` to the DRAM, each piece of bytes to its chip address; nothing else needs
       a defined value;
    2. load :attr:`program`, the same into all PEs (processing engines);
    3. launch all PEs with the start register ``parameters`` = :attr:`parameters`, the same for all,
       and ``vault`` and ``slot`` as :mod:`isa.launch` says; the other start registers are not used.
       PEs may start at different times. PEs in slots from :attr:`pes` on end at once;
    4. wait until all have halted. Each waits for others, so one that faults holds up the rest;
    5. read the pieces that :meth:`reads` names and give them to :meth:`result`, which should equal
       :meth:`expected`.

    To go on with as many iterations more, launch again; nothing has to be written again.

    Attributes:
        problem: what to solve; any size.
        iterations: BP-M iterations of four directions each, 0 or more.
        ring: of the chip's vaults, with the bits of an address within a vault; vault ``v`` begins
            at chip address ``v << ring.address_bits``.
        pes: PEs of each vault that work, in the slots from 0 on.
        messages: where to begin; None: all 0.
        scratchpad_bytes, instruction_words: of a PE.

    Raises:
        KernelError: tiles that don't fit their vault, a program that does not fit the PEs, labels
            that don't fit the scratchpad, negative iterations.
    """

    problem: BpProblem
    iterations: int
    ring: VaultRing = field(default_factory=VaultRing)
    pes: int = 1
    messages: Messages | None = None
    scratchpad_bytes: int = 4096
    instruction_words: int = 1024

    def __post_init__(self) -> None:
        CHECK.fields(self)
        if self.iterations < 0:
            raise KernelError(f"iterations must be 0 or more, not {self.iterations}")
        words = len(self.program.words)
        if words > self.instruction_words:
            raise KernelError(
                f"the program of {words} words does not fit an instruction buffer of "
                f"{self.instruction_words}"
            )
        # Refuses what does not fit its vault.
        _ = self.layout

    @cached_property
    def layout(self) -> BpLayout:
        """Addresses of everything."""
        return BpLayout.of(self.problem, sharers=self.pes, ring=self.ring)

    @cached_property
    def program(self) -> Program:
        """What all PEs execute."""
        return bp_program(
            self.problem.labels,
            self.problem.bits,
            scratchpad_bytes=self.scratchpad_bytes,
            vault_bits=self.ring.address_bits,
        )

    @property
    def parameters(self) -> int:
        """The start register of that name: where in each vault its parameter block lies."""
        return self.layout.parameters

    @property
    def updates(self) -> int:
        """Messages updated by one launch."""
        return self.problem.updates * self.iterations

    def writes(self) -> Iterator[tuple[int, bytes]]:
        """Chip addresses (multiples of 32), and bytes for each; they do not overlap."""
        return contents(
            self.problem, self.layout, iterations=self.iterations, messages=self.messages
        )

    def reads(self) -> Iterator[tuple[int, int]]:
        """Chip addresses (multiples of 32) and lengths (bytes) of what holds the messages."""
        for piece in row_pieces(self.layout):
            yield piece.address, piece.length

    def result(self, data: Mapping[int, bytes]) -> Messages:
        """The messages in what was read: the bytes of each address of :meth:`reads`.

        :func:`microkernels.bp.golden.labels` makes labels of them.
        """
        return collect(self.layout, lambda address, _: data[address])

    def expected(self) -> Messages:
        """The messages that the golden model finds, after one launch."""
        return iterate(self.problem, self.iterations, self.messages)
