"""CRC-32, as zlib computes it, a byte at a time."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Signal, Value

#: Bits of the register, its value before the first byte, and after a message and its CRC.
CRC_BITS = 32
CRC_START = (1 << CRC_BITS) - 1
CRC_RESIDUE = 0xDEBB20E3
_POLYNOMIAL = 0xEDB88320


def crc_step(crc: Signal, byte: Value) -> Value:
    """The register after ``byte``, from ``crc``, the one before; the CRC is its complement."""
    # Which bits of the register (from 0) and of the byte (from CRC_BITS) each bit is the sum of.
    bits = [{number} for number in range(CRC_BITS)]
    for number in range(8):
        bits[number] = bits[number] ^ {CRC_BITS + number}
    for _ in range(8):
        low, bits = bits[0], [*bits[1:], set[int]()]
        bits = [one ^ low if _POLYNOMIAL >> place & 1 else one for place, one in enumerate(bits)]
    both = Cat(crc, byte)
    return Cat(reduce(xor, (both[number] for number in sorted(one))) for one in bits)
