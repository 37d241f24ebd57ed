"""Random programs that compute all the time, for faults that few operands show."""

from random import Random

from pe.config import PeConfig
from sim_tb.random.programs import _Generator
from sim_tb.random.random_program import RandomProgram

#: Words of a program that compute, at most, in proportion to the instruction buffer.
_SHARE = 0.7


class _Computing(_Generator):
    """Vector and scalar instructions in a row, without branches, loads and stores of the program's
    choice."""

    def block(self, budget: int, depth: int) -> None:
        end = len(self.code.words) + int(_SHARE * self.config.instruction_words)
        while len(self.code.words) < end:
            makes = (self.vector, self.scalar, self.settings)
            self.random.choices(makes, (60, 40, 6))[0]()


def computing_program(seed: int, config: PeConfig, disturbed: float = 0.0) -> RandomProgram:
    """The program of ``seed`` for an engine of ``config``."""
    return _Computing(Random(f"computing {seed}"), config).program(seed)
