"""The pseudo-instruction ``li``: any 64-bit constant from instructions on one register."""

from functools import lru_cache

from isa.table import BY_KEY, IMM14, IMM20

__all__ = ["CONSTANT_RANGE", "load_constant"]

#: Constants that ``li`` takes: every signed and every unsigned 64-bit number.
CONSTANT_RANGE = range(-(1 << 63), 1 << 64)

_BITS = 64
#: ``mov.imm`` gives 20 bits, each shift with an addition 14 more: 20 + 4 * 14 >= 64.
_MOST_STEPS = 9

_MOV = BY_KEY["mov.imm"].key
_ADD = BY_KEY["add.imm"].key
_SLL = BY_KEY["sll.imm"].key
_SRL = BY_KEY["srl.imm"].key

_Steps = tuple[tuple[str, int], ...]


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _search(value: int, bits: int, steps: int) -> _Steps | None:
    """At most ``steps`` steps to a number whose low ``bits`` bits are those of ``value``.

    Bits above those are free, because a later shift drops them.
    """
    value = _signed(value, bits)
    if value in IMM20.range:
        return ((_MOV, value),)
    if steps < 2:
        return None
    zeros = (value & -value).bit_length() - 1
    if zeros:
        before = _search(value >> zeros, bits - zeros, steps - 1)
        if before is not None:
            return (*before, (_SLL, zeros))
    # Of all numbers that can be added, these two leave the most zeros below.
    half = -IMM14.range[0]
    for added in (value % half, value % half - half):
        if added:
            before = _search(value - added, bits, steps - 1)
            if before is not None:
                return (*before, (_ADD, added))
    # Just beyond what mov.imm can load.
    for nearest in (IMM20.range[0], IMM20.range[-1]):
        if value - nearest in IMM14.range:
            return ((_MOV, nearest), (_ADD, value - nearest))
    return None


@lru_cache(maxsize=1024)
def load_constant(value: int) -> tuple[tuple[str, int], ...]:
    """The instructions that put ``value`` into a register, 1 to 9 of them.

    Parameters:
        value: one of :data:`CONSTANT_RANGE`.

    Returns:
        For each instruction its key (:attr:`isa.table.Instruction.key`) and its constant. The
        register is the destination of each and, where it has one, its source.

    Raises:
        ValueError: ``value`` is outside :data:`CONSTANT_RANGE`.
    """
    if value not in CONSTANT_RANGE:
        raise ValueError(
            f"a 64-bit constant is from {CONSTANT_RANGE[0]} to {CONSTANT_RANGE[-1]}, not {value}"
        )
    pattern = value % (1 << _BITS)
    top_zeros = _BITS - pattern.bit_length()
    for steps in range(1, _MOST_STEPS + 1):
        sequence = _search(pattern, _BITS, steps)
        if sequence is not None:
            return sequence
        if 0 < top_zeros < _BITS:
            # Shifted to the top, with ones below: masks are -1 shifted right.
            shifted = (pattern << top_zeros) | ((1 << top_zeros) - 1)
            before = _search(shifted, _BITS, steps - 1)
            if before is not None:
                return (*before, (_SRL, top_zeros))
    raise AssertionError(f"no sequence for {value:#x}")
