"""The range of a preload memory."""

from hdl.config import ConfigurationError
from hdl.ports import COLUMN_BYTES
from support.checks import Checks, shown

_FEWEST_BYTES = 8 * COLUMN_BYTES
_MOST_BYTES = 1 << 20
_CHECK = Checks(ConfigurationError)


def check_preload(size: int, base: int, vault_bytes: int) -> None:
    """Check the range of a preload memory.

    Parameters:
        size: bytes: 0 (there is none), or a power of two, 256..2**20.
        base: its first byte address in the vault; a multiple of ``size``.
        vault_bytes: of the vault, which holds all of the range.

    Raises:
        ConfigurationError: a value is outside its range.
    """
    _CHECK.whole("preload_base", base)
    if type(size) is int and size == 0:
        if base:
            raise ConfigurationError(
                f"preload_base must be 0 without a preload memory, not {shown(base)}"
            )
        return
    _CHECK.power_of_two("preload_bytes", size, _FEWEST_BYTES, _MOST_BYTES)
    if base % size or not 0 <= base <= vault_bytes - size:
        raise ConfigurationError(
            f"preload_base must be a multiple of preload_bytes ({size}) from 0 to "
            f"{vault_bytes - size}, so that the range is in the vault, not {shown(base)}"
        )
