"""The C++ model of memories on AXI buses as seen from Python (axi_memory.h)."""

import ctypes
from ctypes import c_char_p, c_int32, c_uint32, c_uint64

__all__ = ["AXI_MEMORY_SOURCES", "AxiMemoryModel"]

#: Files of this room that a simulator with the model is built from.
AXI_MEMORY_SOURCES = ("axi_memory.sv", "axi_memory.h", "axi_memory.cpp")


class AxiMemoryModel:
    """The memories in a loaded library.

    Parameters:
        library: the simulator itself.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.vip_axi_open.argtypes = (c_int32, c_char_p, c_uint64, c_uint64, c_uint32)
        library.vip_axi_open.restype = c_int32

    def open(self, memory: int, path: str, *, base: int, size: int, latency: int) -> None:
        """Give a memory its contents: ``size`` bytes from ``base`` on of the file ``path``.

        Parameters:
            memory: its number. latency: cycles from a request to its answer at the earliest.

        Raises:
            OSError: the file can't be opened and mapped, or is too small.
        """
        if self.library.vip_axi_open(memory, path.encode(), base, size, latency) < 0:
            raise OSError(f"cannot map {size} bytes at {base} of the memory image {path}")
