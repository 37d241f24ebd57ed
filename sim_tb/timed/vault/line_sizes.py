"""Parameters of the timing model of a vault's line buffer."""

import ctypes
from ctypes import c_uint64

from soc.tile.config import VaultTileConfig

__all__ = ["LineSizes"]


class LineSizes(ctypes.Structure):
    """Parameters of a line buffer; see ``line_buffer.h``."""

    _fields_ = tuple(
        (name, c_uint64) for name in ("lines", "merges", "memory_bits", "sources", "tags")
    )

    @classmethod
    def of(cls, config: VaultTileConfig) -> "LineSizes":
        """Those of ``config``; ``lines`` is 0 if it has none."""
        sources = 1 << (config.requesters - 1).bit_length()
        return cls(
            lines=config.line_buffer,
            merges=config.line_merges,
            memory_bits=config.vault.address_bits,
            sources=sources,
            tags=(1 << config.vault.tag_bits) // sources,
        )
