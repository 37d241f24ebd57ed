"""The verb ``report_run``: a page on a result."""

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from support.errors import VipError, clipped, printable
from support.files import read_bytes, write_atomically

from .page import run_page

__all__ = ["ResultError", "WrittenPage", "report_run"]

#: Bytes that a result and its page may have.
_RESULT_BYTES = 2 << 20
_PAGE_BYTES = 3 << 20


class ResultError(VipError):
    """A file that is no result of a command; one line says why."""


@dataclass(frozen=True, kw_only=True)
class WrittenPage:
    """A page. path: its HTML file. bytes: its size. figures: headings of its figures."""

    path: Path
    bytes: int
    figures: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """The same as plain JSON data."""
        return {"page": str(self.path), "bytes": self.bytes, "figures": list(self.figures)}


def report_run(result: Path, page: Path) -> WrittenPage:
    """Write an interactive page on a result of any command.

    ``report_run(Path("bp.json"), Path("bp.html"))`` draws what the result has: where the cycles of
    each engine went, roofline, DRAM bandwidth and rows, links of the torus, area before and after
    trimming, power. The page needs no other file and no network.

    Parameters:
        result: file that a command wrote with ``--json``, up to 2 MB.
        page: HTML file to write, below 3 MB.

    Raises:
        ResultError: it is no such file, or of another minor version of VIP.
        OSError: a file can't be read or written.
    """
    text = run_page(result.stem, _content(result))
    data = text.encode()
    if len(data) > _PAGE_BYTES:
        raise ResultError(f"{result}: its page would have {len(data):,} bytes, 3 MB are allowed")
    write_atomically(page, data)
    headings = tuple(part.split("</h2>")[0] for part in text.split("<section><h2>")[1:])
    return WrittenPage(path=page, bytes=len(data), figures=headings)


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_bytes(path, _RESULT_BYTES))
    except (ValueError, RecursionError) as error:
        why = clipped(printable(str(error)), 100)
        raise ResultError(f"{path}: no JSON: {why}") from None
    origin = content.get("provenance") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(origin, dict) or "version" not in origin:
        raise ResultError(f"{path}: no result of a command, as --json writes them")
    installed = version("vip-inference")
    if _series(str(origin["version"])) != _series(installed):
        writer = clipped(printable(str(origin["version"])), 20)
        raise ResultError(
            f"{path}: of version {writer}, this is {installed}; run the command again"
        )
    return content


def _series(text: str) -> list[str]:
    """Major and minor number of a version; results keep their form within a minor one."""
    return text.split(".")[:2]
