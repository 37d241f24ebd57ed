"""Access to the registers and the scratchpad of a simulated engine, past its ports."""

import ctypes
from ctypes import c_char_p, c_void_p
from typing import Any

from pe.interface import HistoryCounter

__all__ = ["CONTROL", "WATCH_CONTROL", "EngineMemories"]

#: Lines of a Verilator control file that make the memories, and nothing else, readable.
CONTROL = """public_flat_rd -module "sram_*" -var "words"
"""
#: The same for a watched engine (pe_watch.sv), whose places for transfers can be taken away.
WATCH_CONTROL = f"""{CONTROL}public_flat_rd -module "vip_*_watch" -var "most"
forceable -module "arc" -var "occupied"
forceable -module "arc" -var "conflicts"
forceable -module "load_store" -var "free"
"""

_BANKS = 8


class EngineMemories:
    """Registers and scratchpad of the simulated engine, read and written in place.

    An engine whose memories are not found (it keeps none, or not in plain arrays) has none: no
    registers and an empty scratchpad.
    """

    def __init__(self, simulator: ctypes.CDLL) -> None:
        simulator.vip_host_arrays.restype = c_char_p
        simulator.vip_host_array.restype = c_void_p
        self._simulator = simulator
        #: Readable memories: (scope, name) -> (bits of a word, words).
        arrays = {}
        for line in simulator.vip_host_arrays().decode().splitlines():
            scope, name, bits, words = line.rsplit(" ", 3)
            arrays[scope, name] = (int(bits), int(words))
        memories = {
            part: [
                self._array(scope, name, *arrays[scope, name])
                for scope, name in sorted(arrays)
                if f".{part}." in scope
            ]
            for part in ("registers", "scratchpad", "counters.history")
        }
        watched = {
            part: scope.removesuffix(".watch")
            for scope, _ in arrays
            for part in ("arc", "load_store")
            if scope.endswith(f".{part}.watch")
        }
        self._watched = watched
        self._most = {
            part: self._array(f"{scope}.watch", "most", *arrays[f"{scope}.watch", "most"])
            for part, scope in watched.items()
        }
        self._registers = memories["registers"][:1]
        self._history = memories["counters.history"][:1]
        self._banks = memories["scratchpad"] if len(memories["scratchpad"]) == _BANKS else []

    @property
    def registers(self) -> tuple[int, ...]:
        """All registers, as 64-bit patterns."""
        return tuple(self._registers[0]) if self._registers else ()

    @property
    def in_flight(self) -> tuple[int, int] | None:
        """Entries of the array range check, and memory requests, that were in use at once since the
        reset (pe_watch.sv); None if the engine is not watched."""
        if not self._most:
            return None
        return int(self._most["arc"][0]), int(self._most["load_store"][0])

    @property
    def history(self) -> dict[str, int]:
        """Counters of the load history, by name of :class:`pe.interface.HistoryCounter`; empty if
        the engine has none."""
        return {
            item.name: int(bank[item - min(HistoryCounter)])
            for bank in self._history
            for item in HistoryCounter
        }

    def limit(self, sizes: tuple[int, int], limits: tuple[int, int] | None) -> None:
        """Let a watched engine behave as one with smaller tables.

        Parameters:
            sizes: entries of the array range check, and tags, that it has. limits: those that it
                may use; None: all.
        """
        entries, tags = (
            (size, (1 << size) - (1 << limit))
            for size, limit in zip(sizes, limits or sizes, strict=True)
        )
        # A range of an earlier run may be left in an entry that is taken away: it must not count.
        for part, name, value, (size, beyond) in (
            ("arc", "occupied", True, entries),
            ("arc", "conflicts", False, entries),
            ("load_store", "free", False, tags),
        ):
            for suffix, pattern in (("Val", beyond if value else 0), ("En", beyond)):
                force = self._array(self._watched[part], f"{name}__Vforce{suffix}", size, 1)
                force[0] = pattern

    @property
    def scratchpad(self) -> bytes:
        """The scratchpad; byte ``i`` lies in bank ``i % 8``."""
        if not self._banks:
            return b""
        content = bytearray(_BANKS * len(self._banks[0]))
        for number, bank in enumerate(self._banks):
            content[number::_BANKS] = bytes(bank)
        return bytes(content)

    @scratchpad.setter
    def scratchpad(self, content: bytes) -> None:
        for number, bank in enumerate(self._banks):
            bank[:] = list(content[number::_BANKS])

    def _array(self, scope: str, name: str, bits: int, words: int) -> "ctypes.Array[Any]":
        """The words of such a memory (up to 64 bits each), to read and to write in place."""
        address = self._simulator.vip_host_array(scope.encode(), name.encode())
        kinds = {8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}
        kind: Any = next(kind for size, kind in kinds.items() if bits <= size)
        memory: ctypes.Array[Any] = (kind * words).from_address(address)
        return memory
