"""Traces of the accesses that an engine makes to its vault's memory, on the timing model."""

import ctypes
from ctypes import POINTER, c_uint64

from isa.image import DramImage
from isa.run import Launch
from sim_tb.harness.trace import WORD_BYTES
from soc.tile.config import VaultTileConfig

from .vault_model import started_tile

__all__ = ["record_trace"]


def record_trace(
    launch: Launch, image: DramImage, *, config: VaultTileConfig, accesses: int
) -> bytes:
    """The accesses of a vault's only engine until it ends, at most so many; joined as
    :func:`sim_tb.harness.trace.joined` does.

    Parameters:
        config: of the vault, with one engine.
        accesses: 1 or more; the recording ends after the launch's ``max_cycles``, too.

    Raises:
        CosimError: as of :func:`sim_tb.timed.vault.vault_model.started_tile`.
        ValueError: several engines.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    if config.pes != 1:
        raise ValueError(f"a trace is of one engine, not of {config.pes}")
    words = (c_uint64 * accesses)()
    with started_tile(launch, image, config=config) as tile:
        count = tile.library.vip_tile_trace(
            tile.pointer, launch.max_cycles, ctypes.cast(words, POINTER(c_uint64)), accesses
        )
    return bytes(memoryview(words).cast("B")[: count * WORD_BYTES])
