"""Row, bank and column of a vault's byte address.

The order of the fields is a :data:`memory.config.AddressMap`, from the top of the address; the low
five bits select a byte within the column. ``row-bank-column`` is the thesis's (Table 7.1):
consecutive rows of addresses are in different banks. ``row-column-bank`` spreads consecutive
columns over the banks; ``bank-row-column`` gives each bank one contiguous range.
"""

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Value

from hdl.config import ConfigurationError
from hdl.ports import COLUMN_BYTES

from .config import VaultConfig

#: Bits of an address that select a byte within a column.
BYTE_BITS = (COLUMN_BYTES - 1).bit_length()


class DramAddress(NamedTuple):
    """A column of a vault: numbers in Python, values in RTL."""

    row: Any
    bank: Any
    column: Any


def _fields(config: VaultConfig) -> list[tuple[str, int]]:
    """Fields of an address and their bits, from just above the byte offset upwards."""
    bits = {"row": config.row_bits, "bank": config.bank_bits, "column": config.column_bits}
    return [(name, bits[name]) for name in reversed(config.address_map.split("-"))]


def slice_address(config: VaultConfig, address: Value) -> DramAddress:
    """The fields of a byte address (RTL), as slices; bits above the vault's are ignored."""
    fields = {}
    low = BYTE_BITS
    for name, bits in _fields(config):
        fields[name] = address[low : low + bits]
        low += bits
    return DramAddress(**fields)


def join_address(config: VaultConfig, dram_address: DramAddress) -> Any:
    """Address of the first byte of ``dram_address``.

    The inverse of :func:`slice_address` when the fields are RTL values of their exact widths.

    Raises:
        ConfigurationError: a number outside its range.
    """
    values = dram_address._asdict()
    if isinstance(dram_address.row, Value):
        return Cat(Const(0, BYTE_BITS), *(values[name] for name, _ in _fields(config)))
    address = 0
    low = BYTE_BITS
    for name, bits in _fields(config):
        if not 0 <= values[name] < 1 << bits:
            raise ConfigurationError(
                f"{name} must be from 0 to {(1 << bits) - 1}, not {values[name]}"
            )
        address |= values[name] << low
        low += bits
    return address
