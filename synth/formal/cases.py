"""Goals taken apart: the cases for which they are shown one by one."""

from collections.abc import Mapping

from amaranth.hdl import Signal

from .cut import bits_of
from .relation import Split

__all__ = ["cases_of"]


def cases_of(split: Split, which: Signal, inputs: Mapping[str, Signal]) -> list[dict[str, bool]]:
    """Values of bits of inputs, by name, for each case; together the cases are all that there is.

    Parameters:
        which: input that chooses the thing. inputs: of the circuit, by what they stand for.
    """
    flag, number, register = (inputs[name] for name in (split.flag, split.number, split.register))

    def given(signal: Signal, bits: int, value: int) -> dict[str, bool]:
        names = bits_of(signal.name, len(signal))[:bits]
        return {name: bool(value >> bit & 1) for bit, name in enumerate(names)}

    inner = [given(number, place + 1, 1 << place) for place in range(len(number))]
    nothing = given(number, len(number), 0)
    inner += [nothing | given(register, split.bits, value) for value in range(1 << split.bits)]
    running = {flag.name: True}
    words = range(len(split.codes.words))
    return [
        {flag.name: False},
        *(running | given(which, len(which), word) | case for word in words for case in inner),
    ]
