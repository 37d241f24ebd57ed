"""Parameters of the timing model of a vault's AXI back end."""

import ctypes
from ctypes import c_uint64

from memory.axi.layout import AxiConfig
from sim_tb.cosim.engine import CosimError

__all__ = ["AxiSizes"]


class AxiSizes(ctypes.Structure):
    """Parameters of an AXI back end; see ``axi_backend.h``."""

    _fields_ = tuple((name, c_uint64) for name in ("lanes", "lane_bits", "beats", "outstanding"))

    @classmethod
    def of(cls, config: AxiConfig) -> "AxiSizes":
        """Those of ``config``.

        Raises:
            CosimError: it has a preload memory.
        """
        if config.preload_bytes:
            raise CosimError("the timing model has no preload memory (preload_bytes must be 0)")
        return cls(
            lanes=config.lanes,
            lane_bits=config.lane_bits,
            beats=config.beats,
            outstanding=config.outstanding,
        )
