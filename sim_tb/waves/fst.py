"""Converts waveforms from VCD to FST: several times smaller, and viewers open them immediately.

The package ``pylibfst``, which contains GTKWave's C code and needs no system library, writes FST.
"""

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from support.extras import need
from support.files import copy_atomically
from support.scratch import scratch_folder

from .cycles import TraceError

#: First character of a change of one bit.
_BITS = b"01xz"
#: An escaped character of a text in VCD.
_ESCAPED = re.compile(rb"\\(?:x([0-9a-f]{2})|\\)")


def write_fst(vcd: Path, target: Path) -> None:
    """Write the waveforms of ``vcd`` to ``target``, atomically.

    Parameters:
        vcd: bits, vectors and texts, one change per line, as written by Verilator and
            :mod:`sim_tb.waves.saved`.

    Raises:
        MissingExtraError: pylibfst is not installed.
        TraceError: ``vcd`` is not such a file.
        OSError: a file can't be read or written.
    """
    need("pylibfst", "FST waveforms")
    with scratch_folder("fst") as folder:
        fst = folder / "waves.fst"
        writer = _Writer(fst)
        try:
            with vcd.open("rb") as file:
                if not _declarations(file, writer):
                    raise TraceError(f"{vcd}: not a VCD file: it ends before its signals")
                _changes(vcd, file, writer)
        finally:
            writer.close()
        copy_atomically(fst, target)


class _Writer:
    """An FST file being written.

    Attributes:
        handles: code of a signal in the VCD file -> its handle and its width; 0: a text.
    """

    def __init__(self, path: Path) -> None:
        # Imported late: it belongs to an extra.
        package = import_module("pylibfst")
        ffi: Any = package.ffi
        lib: Any = package.lib
        self._ffi, self._lib = ffi, lib
        self._context = lib.fstWriterCreate(str(path).encode(), 1)
        if self._context == ffi.NULL:
            raise OSError(f"{path} can't be written")
        lib.fstWriterSetPackType(self._context, lib.FST_WR_PT_LZ4)
        self.handles: dict[bytes, tuple[int, int]] = {}

    def close(self) -> None:
        """Finish the file."""
        self._lib.fstWriterClose(self._context)

    def timescale(self, text: str) -> None:
        """Set the unit of time, such as ``1ps``."""
        self._lib.fstWriterSetTimescaleFromString(self._context, text.encode())

    def scope(self, name: str) -> None:
        """Enter a scope."""
        kind = self._lib.FST_ST_VCD_MODULE
        self._lib.fstWriterSetScope(self._context, kind, name.encode(), self._ffi.NULL)

    def up(self) -> None:
        """Leave a scope."""
        self._lib.fstWriterSetUpscope(self._context)

    def signal(self, kind: str, bits: int, code: bytes, name: str) -> None:
        """Declare a signal; a known code makes it an alias."""
        lib = self._lib
        text = kind == "string"
        alias, _ = self.handles.get(code, (0, 0))
        handle = lib.fstWriterCreateVar(
            self._context,
            lib.FST_VT_GEN_STRING if text else lib.FST_VT_VCD_WIRE,
            lib.FST_VD_IMPLICIT,
            0 if text else bits,
            name.encode(),
            alias,
        )
        self.handles.setdefault(code, (handle, 0 if text else bits))

    def time(self, time: int) -> None:
        """Advance to a time."""
        self._lib.fstWriterEmitTimeChange(self._context, time)

    def change(self, code: bytes, value: bytes) -> None:
        """Set a signal's value."""
        handle, bits = self.handles[code]
        if bits:
            # VCD omits leading zeros and leading undefined bits.
            fill = b"0" if value[:1] == b"1" else value[:1]
            self._lib.fstWriterEmitValueChange(self._context, handle, value.rjust(bits, fill))
        else:
            self._lib.fstWriterEmitVariableLengthValueChange(
                self._context, handle, value, len(value)
            )


def _declarations(file: Iterable[bytes], writer: _Writer) -> bool:
    """Declare all signals; returns whether the declarations are complete."""
    for line in file:
        words = line.decode("utf-8", "replace").split()
        match words:
            case ["$timescale", *unit, "$end"]:
                writer.timescale("".join(unit))
            case ["$scope", _, name, "$end"]:
                writer.scope(name)
            case ["$upscope", *_]:
                writer.up()
            case ["$var", kind, bits, code, *name, "$end"] if bits.isdigit():
                writer.signal(kind, int(bits), code.encode(), " ".join(name))
            case ["$enddefinitions", *_]:
                return True
    return False


def _character(escaped: re.Match[bytes]) -> bytes:
    return bytes([int(escaped[1], 16)]) if escaped[1] else b"\\"


def _changes(vcd: Path, file: Iterable[bytes], writer: _Writer) -> None:
    for line in file:
        try:
            if line[:1] == b"#":
                writer.time(int(line[1:]))
            elif line[:1] in (b"b", b"s"):
                value, _, code = line[1:].strip(b"\n").rpartition(b" ")
                writer.change(code, _ESCAPED.sub(_character, value))
            elif line[:1] and line[0] in _BITS:
                writer.change(line[1:].strip(), line[:1])
        except (KeyError, ValueError):
            text = line.decode(errors="replace").strip()
            raise TraceError(f"{vcd}: {text!r} is not a change of a signal") from None
