"""Random bits of hardware: a linear feedback shift register that makes sixteen steps at once."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Signal, Value

__all__ = ["RANDOM_BITS", "after_steps"]

RANDOM_BITS = 16
#: Bits whose sum enters at the top; the period is 2**16 - 1.
_TAPS = (0, 2, 3, 5)


def after_steps(state: Signal) -> Value:
    """The register after as many steps as it has bits, so that all are new."""
    # Which bits of ``state`` each bit is the sum of.
    bits = [frozenset({number}) for number in range(RANDOM_BITS)]
    for _ in range(RANDOM_BITS):
        new: frozenset[int] = frozenset()
        for tap in _TAPS:
            new ^= bits[tap]
        bits = [*bits[1:], new]
    return Cat(reduce(xor, (state[number] for number in sorted(bit))) for bit in bits)
