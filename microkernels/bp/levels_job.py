"""Hierarchical belief propagation on a chip, as a host sees it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isa.program import Program
from microkernels.common.errors import CHECK
from microkernels.runtime.ring import VaultRing

from .contents import collect, contents, row_pieces
from .kernel import bp_program
from .levels import coarse_problem, iterate_levels
from .levels_kernel import construct_program, copy_program
from .levels_layout import LevelsLayout
from .problem import BpProblem, Messages

__all__ = ["BpLevelsJob", "Phase"]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One launch.

    Attributes:
        name: ``construct``, ``coarse``, ``copy`` or ``fine``.
        program: for all PEs.
        parameters: the start register of that name, the same for all PEs.
    """

    name: str
    program: Program
    parameters: int


@dataclass(frozen=True, kw_only=True, eq=False)
class BpLevelsJob:
    """A problem to solve on two levels (:mod:`microkernels.bp.levels`) with all vaults of a chip.

    As :class:`microkernels.bp.chip.BpChipJob`, but with one launch of all PEs after the other:
    those of :attr:`phases`, each when all PEs have halted.

    Attributes:
        problem: what to solve.
        coarse_iterations, iterations: BP-M iterations of the two levels, 0 or more.
        ring: of the chip's vaults.
        pes: PEs of each vault that work.
        smoothness: of the coarse problem (:func:`microkernels.bp.levels.coarse_problem`).
        scratchpad_bytes: of a PE.

    Raises:
        KernelError: as :class:`microkernels.bp.chip.BpChipJob` and
            :func:`microkernels.bp.levels.coarse_problem`.
    """

    problem: BpProblem
    coarse_iterations: int
    iterations: int
    ring: VaultRing = field(default_factory=VaultRing)
    pes: int = 1
    smoothness: NDArray[np.integer] | None = None
    scratchpad_bytes: int = 4096

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("coarse_iterations", "iterations"):
            CHECK.at_least(name, getattr(self, name), 0)
        # Refuses what can't be built.
        _ = self.phases, self._unmade

    @cached_property
    def layout(self) -> LevelsLayout:
        """Addresses of everything."""
        return LevelsLayout(
            problem=self.problem,
            sharers=self.pes,
            ring=self.ring,
            coarse_symmetric=self._unmade.symmetric,
        )

    @cached_property
    def _unmade(self) -> BpProblem:
        """The coarse problem before construct has run: no data costs."""
        coarse = coarse_problem(self.problem, self.smoothness)
        return BpProblem(np.zeros_like(coarse.data_costs), coarse.smoothness, coarse.bits)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The launches, in order."""
        labels, bits, layout = self.problem.labels, self.problem.bits, self.layout
        fit, vault_bits = self.scratchpad_bytes, self.ring.address_bits
        update = bp_program(labels, bits, scratchpad_bytes=fit, vault_bits=vault_bits)
        construct = construct_program(labels, bits, scratchpad_bytes=fit, vault_bits=vault_bits)
        copy = copy_program(labels, bits, scratchpad_bytes=fit, vault_bits=vault_bits)
        return (
            Phase(name="construct", program=construct, parameters=layout.construct_parameters),
            Phase(name="coarse", program=update, parameters=layout.coarse.parameters),
            Phase(name="copy", program=copy, parameters=layout.copy_parameters),
            Phase(name="fine", program=update, parameters=layout.fine.parameters),
        )

    def writes(self, coarse: Messages | None = None) -> Iterator[tuple[int, bytes]]:
        """Chip addresses and bytes for each, before the first launch.

        Parameters:
            coarse: messages of the coarse problem; None: all 0.
        """
        yield from contents(self.problem, self.layout.fine, iterations=self.iterations)
        yield from contents(
            self._unmade,
            self.layout.coarse,
            iterations=self.coarse_iterations,
            messages=coarse,
        )
        for vault in range(self.ring.vaults):
            yield from self.layout.parameters(vault)

    def reads(self) -> Iterator[tuple[int, int]]:
        """Chip addresses and lengths (bytes) of what holds the messages of the fine level."""
        for piece in row_pieces(self.layout.fine):
            yield piece.address, piece.length

    def result(self, data: Mapping[int, bytes]) -> Messages:
        """The messages in what was read: the bytes of each address of :meth:`reads`."""
        return collect(self.layout.fine, lambda address, _: data[address])

    def expected(self) -> Messages:
        """The messages that the golden model finds."""
        return iterate_levels(
            self.problem, self.coarse_iterations, self.iterations, self.smoothness
        )
