"""DRAM contents in a file that several processes can map at once."""

import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from support.checks import Checks
from support.errors import VipError
from support.files import check_regular, open_without_waiting, write_atomically
from support.scratch import remove_scratch, scratch_file

#: Largest image: the address space of the thesis's chip (33 bits).
MAX_IMAGE_BYTES = 1 << 33
#: Smallest unit in which a file system allocates space, in bytes.
PAGE_BYTES = mmap.PAGESIZE
#: Bytes compared at a time.
_BLOCK = 1 << 16


class ImageError(VipError):
    """An access outside the image, or a file that can't be used; the message says which."""


_CHECK = Checks(ImageError)


def _open(path: Path, size: int, *, create: bool) -> int:
    """A descriptor of the file, which has ``size`` bytes afterwards."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
    try:
        size_before = os.fstat(descriptor).st_size
        if size_before > size:
            raise ImageError(f"{path} has {size_before} bytes, more than the image's {size}")
        if size_before < size:
            os.ftruncate(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Mapping(NamedTuple):
    """An image's bytes as C++ code sees them.

    Attributes:
        memory: the mapping, to be accessed only in pages that are held.
        held: for each :data:`PAGE_BYTES`, 1 if their space is allocated. Elsewhere, reads and
            writes go through ``file``, and a write sets it.
        file: descriptor.
    """

    memory: "np.ndarray[Any, Any]"
    held: "np.ndarray[Any, Any]"
    file: int


class DramImage:
    """The DRAM's bytes, zero until written; a sparse file takes up only what was written.

    The file is mapped shared: writes of another process that maps :attr:`path` are visible here at
    once, and vice versa. Use it in a ``with`` statement or call :meth:`close`.

    Parameters:
        size_bytes: 1..2**33 (:data:`MAX_IMAGE_BYTES`).
        path: file that holds the bytes and stays after :meth:`close`. It is created when missing;
            one that exists keeps its contents, is extended with zeros, and must not be larger.
            None: a temporary file, which is deleted on :meth:`close` or with the object.

    Attributes:
        path: the file, temporary or not.
        size: bytes.

    Raises:
        ImageError: a size outside its range, or a file that can't be created, read or mapped.
    """

    def __init__(self, size_bytes: int, path: Path | None = None) -> None:
        _CHECK.within("bytes of an image", size_bytes, 1, MAX_IMAGE_BYTES)
        self.size = size_bytes
        self._map: mmap.mmap | None = None
        self._closing: weakref.finalize[Any, Any] | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        try:
            if path is None:
                self.path = scratch_file("dram", ".bin")
                self._finalizer = weakref.finalize(self, remove_scratch, self.path)
            else:
                self.path = Path(path)
            self._file = _open(self.path, size_bytes, create=path is not None)
            self._closing = weakref.finalize(self, os.close, self._file)
            self._map = mmap.mmap(self._file, size_bytes, flags=mmap.MAP_SHARED)
            # Whether each page has its space and may be accessed in the mapping. Elsewhere, a full
            # file system would kill this process at the first access.
            self._held = bytearray(-(-size_bytes // PAGE_BYTES))
        except OSError as error:
            if self._finalizer is not None:
                self._finalizer()
            where = getattr(self, "path", None) or error.filename or "a temporary file"
            raise ImageError(
                f"{where} can't hold an image of {size_bytes} bytes: {error.strerror or error}"
            ) from error

    def __enter__(self) -> "DramImage":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and delete it if it is temporary. Closing twice is allowed.

        Views given by :meth:`array` stay usable; every method but this one raises
        :class:`ImageError` afterwards.
        """
        mapped, self._map = self._map, None
        if mapped is not None:
            # Refused while a view exists; the mapping then goes with the last view.
            with suppress(BufferError):
                mapped.close()
        if self._closing is not None:
            self._closing()
        if self._finalizer is not None:
            self._finalizer()

    def _check(self, address: int, length: int) -> mmap.mmap:
        if self._map is None:
            raise ImageError(f"the image {self.path} is closed")
        if address < 0 or length < 0 or address + length > self.size:
            raise ImageError(
                f"{length} bytes at address {address:#x} are outside the image of {self.size} bytes"
            )
        return self._map

    def read(self, address: int, n: int) -> bytes:
        """A copy of the ``n`` (0 or more) bytes starting at ``address``.

        Raises:
            ImageError: a byte outside the image, or the image is closed.
        """
        mapped = self._check(address, n)
        if self._is_held(address, n):
            return mapped[address : address + n]
        content = os.pread(self._file, n, address)
        while len(content) < n:
            part = os.pread(self._file, n - len(content), address + len(content))
            if not part:
                raise ImageError(f"{self.path} has become shorter than {address + n} bytes")
            content += part
        return content

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write ``data`` (bytes) at ``address``.

        Raises:
            ImageError: a byte outside the image, the image is closed, or its file system is full.
        """
        view = memoryview(data).cast("B")
        mapped = self._check(address, len(view))
        if self._is_held(address, len(view)):
            mapped[address : address + len(view)] = view
            return
        done = 0
        try:
            while done < len(view):
                done += os.pwrite(self._file, view[done:], address + done)
        except OSError as error:
            raise self._full(len(view), error) from error
        self._hold(address, len(view))

    def _is_held(self, address: int, length: int) -> bool:
        first, last = address // PAGE_BYTES, (address + length - 1) // PAGE_BYTES
        if first == last:
            return self._held[first] == 1
        return self._held.find(0, first, last + 1) < 0

    def _hold(self, address: int, length: int) -> None:
        if length:
            first, end = address // PAGE_BYTES, (address + length - 1) // PAGE_BYTES + 1
            self._held[first:end] = b"\1" * (end - first)

    def _full(self, length: int, error: OSError) -> ImageError:
        return ImageError(f"{self.path} can't take {length} more bytes: {error.strerror or error}")

    def _reserve(self, address: int, length: int) -> None:
        """Allocate the space first: writing to the mapping with none left would kill this
        process."""
        if length and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(self._file, address, length)
            except OSError as error:
                raise self._full(length, error) from error
            self._hold(address, length)

    def array(
        self, address: int, shape: int | Sequence[int], dtype: DTypeLike
    ) -> "np.ndarray[Any, Any]":
        """A writable view of the image itself: ``shape`` elements of ``dtype``, rows contiguous.

        It takes up the space of all its bytes, written or not.

        Parameters:
            address: of the first byte; any alignment.

        Raises:
            ImageError: a byte outside the image, the image is closed, or its file system is full.
        """
        element = np.dtype(dtype)
        dimensions = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        if any(size < 0 for size in dimensions):
            raise ImageError(f"shape {dimensions} has a negative size")
        length = element.itemsize
        for size in dimensions:
            length *= size
        mapped = self._check(address, length)
        if not length:
            return np.empty(dimensions, element)
        self._reserve(address, length)
        # Unlike np.ndarray(buffer=...), this prevents closing the mapping under the view.
        data = np.frombuffer(mapped, np.uint8, length, address)
        return data.view(element).reshape(dimensions)

    def mapping(self) -> "Mapping":
        """The mapping, for C++ code that accesses the bytes as :meth:`read` and :meth:`write` do.

        Raises:
            ImageError: the image is closed.
        """
        mapped = self._check(0, 0)
        return Mapping(
            memory=np.frombuffer(mapped, np.uint8),
            held=np.frombuffer(self._held, np.uint8),
            file=self._file,
        )

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Address and contents of every aligned block of 64 KiB (the last one may be shorter) that
        is not all zero, in order; unwritten parts cost no time.

        Raises:
            ImageError: the image is closed.
        """
        self._check(0, 0)
        zero = bytes(_BLOCK)
        with self.path.open("rb") as file:
            place = 0
            while place < self.size:
                try:
                    place = os.lseek(file.fileno(), place, os.SEEK_DATA)
                except OSError:
                    # Nothing but a hole up to the end.
                    break
                place -= place % _BLOCK
                block = self.read(place, min(_BLOCK, self.size - place))
                if block != zero[: len(block)]:
                    yield place, block
                place += _BLOCK

    def differences(self, other: "DramImage") -> Iterator[int]:
        """Addresses of the bytes that differ from those of ``other``, which has the same size, in
        order.

        Raises:
            ImageError: an image is closed, or the sizes differ.
        """
        if self.size != other.size:
            raise ImageError(f"images of {self.size} and {other.size} bytes can't be compared")
        places = {place for image in (self, other) for place, _ in image.blocks()}
        for place in sorted(places):
            length = min(_BLOCK, self.size - place)
            mine, theirs = (
                np.frombuffer(image.read(place, length), np.uint8) for image in (self, other)
            )
            yield from (place + int(at) for at in np.flatnonzero(mine != theirs))

    def load_file(self, address: int, path: Path) -> int:
        """Copy a file's contents to ``address``; returns its length in bytes.

        Raises:
            ImageError: the file can't be read or does not fit, or the image is closed. Of a file
                that shrinks while it is read, the bytes that were read are written.
        """
        try:
            length = check_regular(path)
            with open(path, "rb", opener=open_without_waiting) as file:
                mapped = self._check(address, length)
                self._reserve(address, length)
                with memoryview(mapped) as view, view[address : address + length] as target:
                    done = file.readinto(target)
        except OSError as error:
            raise ImageError(f"can't read {path}: {error.strerror or error}") from error
        if done != length:
            raise ImageError(f"{path} gave {done} bytes instead of {length}")
        return length

    def save_file(self, address: int, n: int, path: Path) -> None:
        """Write the ``n`` bytes starting at ``address`` to a file, atomically.

        Raises:
            ImageError: a byte outside the image, the file can't be written, or the image is closed.
        """
        mapped = self._check(address, n)
        try:
            with memoryview(mapped) as view, view[address : address + n] as source:
                write_atomically(Path(path), source)
        except OSError as error:
            raise ImageError(f"can't write {path}: {error.strerror or error}") from error
