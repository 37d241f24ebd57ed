"""A memory within the process, for a place without files that can be mapped."""

from isa.image import DramImage, ImageError

__all__ = ["PlainMemory"]

_PAGE = 1 << 16


class PlainMemory(DramImage):
    """Bytes of the DRAM, zero until written; pages that are not written take no space.

    Only :meth:`read`, :meth:`write` and :meth:`close` of the base class are there: the file is not.

    Parameters:
        size_bytes: at least 1.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size = size_bytes
        self._pages: dict[int, bytearray] = {}

    def close(self) -> None:
        """Nothing has to be let go of."""

    def _check_range(self, address: int, length: int) -> None:
        if address < 0 or length < 0 or address + length > self.size:
            raise ImageError(
                f"{length} bytes at address {address:#x} are outside the memory of {self.size} "
                "bytes"
            )

    def read(self, address: int, n: int) -> bytes:
        """A copy of the ``n`` (0 or more) bytes from byte ``address`` on.

        Raises:
            ImageError: a byte outside the memory.
        """
        self._check_range(address, n)
        result = bytearray(n)
        for page, start, end in _parts(address, n):
            if (content := self._pages.get(page)) is not None:
                at = page * _PAGE + start - address
                result[at : at + end - start] = content[start:end]
        return bytes(result)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Put ``data`` (bytes) at byte ``address``.

        Raises:
            ImageError: a byte outside the memory.
        """
        view = memoryview(data).cast("B")
        self._check_range(address, len(view))
        for page, start, end in _parts(address, len(view)):
            content = self._pages.setdefault(page, bytearray(_PAGE))
            at = page * _PAGE + start - address
            content[start:end] = view[at : at + end - start]


def _parts(address: int, length: int) -> list[tuple[int, int, int]]:
    """The bytes page by page: its number, and the first byte and the end within it."""
    first, last = address // _PAGE, (address + length - 1) // _PAGE
    return [
        (
            page,
            max(0, address - page * _PAGE),
            min(_PAGE, address + length - page * _PAGE),
        )
        for page in range(first, last + 1)
        if length
    ]
