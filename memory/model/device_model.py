"""Python interface of the C++ model of a vault's DRAM (device_model.h)."""

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_uint32, c_uint64
from typing import Annotated, Any

from hdl.ports import COLUMN_BYTES
from memory.address_map import DramAddress, join_address
from memory.config import VaultConfig
from memory.controller.dram_port import DramCommand
from memory.timing import POSTPONED_REFRESHES
from support.schema import U32, C, Record

#: Source files of the model, for building a simulator.
DEVICE_SOURCES = ("device_model.sv", "device_model.h", "mapped_file.h", "dram.h", "dram.cpp")


class DeviceSetup(Record):
    """``VipDramSetup`` of device_model.h, which describes each field."""

    base: int
    banks: U32
    rows: U32
    columns: U32
    bank_shift: U32
    row_shift: U32
    column_shift: U32
    tcl: U32
    tcwl: U32
    tccd: U32
    trcd: U32
    trp: U32
    tras: U32
    trc: U32
    twr: U32
    trtp: U32
    twtr: U32
    trrd: U32
    tfaw: U32
    trfc: U32
    trefi: U32
    postponed: U32
    turnaround: U32
    noise: U32


class _Counts(Record):
    """``VipDramCounts``."""

    cycles: int
    commands: Annotated[Any, C(c_uint64 * len(DramCommand))]


class _Window(Record):
    """``VipDramWindow``."""

    reads: U32
    writes: U32


def device_setup(config: VaultConfig, *, base: int = 0, noise: int = 1) -> DeviceSetup:
    """The device that ``config`` describes.

    Parameters:
        config: geometry, address map and timing.
        base: first byte of the vault in its memory image; 0 or more.
        noise: start of the random data on the bus when nothing is read; 0..2**32 - 1.
    """
    timing = config.timing

    def shift(**one: int) -> int:
        fields = DramAddress(**({"row": 0, "bank": 0, "column": 0} | one))
        return int(join_address(config, fields)).bit_length() - 1

    return DeviceSetup(
        base=base,
        banks=config.banks,
        rows=config.rows,
        columns=config.row_bytes // COLUMN_BYTES,
        bank_shift=shift(bank=1),
        row_shift=shift(row=1),
        column_shift=shift(column=1),
        tcl=timing.tcl,
        tcwl=timing.tcwl,
        tccd=timing.tccd,
        trcd=timing.trcd,
        trp=timing.trp,
        tras=timing.tras,
        trc=timing.trc,
        twr=timing.twr,
        trtp=timing.trtp,
        twtr=timing.twtr,
        trrd=timing.trrd,
        tfaw=timing.tfaw,
        trfc=timing.trfc,
        trefi=timing.trefi,
        postponed=POSTPONED_REFRESHES,
        turnaround=timing.turnaround_clocks,
        noise=noise,
    )


class DeviceModel:
    """The devices in a loaded library.

    Parameters:
        library: the simulator itself, or a library made of the model alone.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.vip_dram_open.argtypes = (c_int32, c_char_p)
        library.vip_dram_open.restype = c_int64
        library.vip_dram_configure.argtypes = (c_int32, POINTER(DeviceSetup))
        library.vip_dram_configure.restype = c_int32
        library.vip_dram_violation.argtypes = (c_int32,)
        library.vip_dram_violation.restype = c_char_p
        library.vip_dram_counts.argtypes = (c_int32, POINTER(_Counts))
        library.vip_dram_counts.restype = None
        library.vip_dram_record.argtypes = (c_int32, c_uint32)
        library.vip_dram_record.restype = None
        library.vip_dram_recorded.argtypes = (c_int32, POINTER(_Window), c_uint64)
        library.vip_dram_recorded.restype = c_uint64

    def open(self, device: int, path: str, setup: DeviceSetup) -> None:
        """Make ``device`` as described, fresh from reset, with its contents in the file ``path``.

        Raises:
            OSError: the file can't be opened and mapped, or is too small.
        """
        if self.library.vip_dram_open(device, path.encode()) < 0:
            raise OSError(f"cannot map the memory image {path}")
        if self.library.vip_dram_configure(device, byref(setup)):
            raise OSError(f"the memory image {path} is smaller than the vault")

    def violation(self, device: int) -> str:
        """The first rule that the controller of ``device`` violated, "" if none."""
        return str(self.library.vip_dram_violation(device).decode())

    def counts(self, device: int) -> Mapping[str, int]:
        """``cycles`` since reset, and the commands of each kind, by name in lower case."""
        raw = _Counts()
        self.library.vip_dram_counts(device, byref(raw))
        named = {kind.name.lower(): int(raw.commands[kind.value]) for kind in DramCommand}
        return {"cycles": int(raw.cycles), **named}

    def record(self, device: int, cycles: int) -> None:
        """From now on, count the columns moved in each window of ``cycles``, 1..2**32 - 1."""
        self.library.vip_dram_record(device, cycles)

    def recorded(self, device: int) -> tuple[tuple[int, int], ...]:
        """Columns read and written in each window since :meth:`record`, by the cycle of their
        command; the last window may be shorter."""
        count = self.library.vip_dram_recorded(device, None, 0)
        windows = (_Window * count)()
        self.library.vip_dram_recorded(device, windows, count)
        return tuple((window.reads, window.writes) for window in windows)
