"""The blocks of the pages that a reader copies: commands, programs, files and Python.

A block of the language ``sh`` has commands, one per line; ``console`` has them after ``$``, with
what they print. Those of docs/commands.md run in order in one empty folder. A comment that ends in
a time, such as ``(40 s)``, says how long a command takes on two idle cores; one that ends in
``(hours)``, or in ``(until Ctrl-C)``, is not run, nor is a command with a word in capitals, which
stands for what the reader has.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LANGUAGES", "ROOT", "Block", "Line", "blocks", "lines", "pages"]

ROOT = Path(__file__).parents[3]
#: Languages of blocks.
LANGUAGES = ("sh", "console", "python", "asm", "toml", "text", "bibtex")
_BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TIME = re.compile(r"\((?:(\d+) (s|minutes?)|hours|until Ctrl-C)\)$")
_PLACEHOLDER = re.compile(r"(?<![\w$-])[A-Z]{3,}(?![\w=])")
#: Programs that set VIP up, and those of the extra ``cluster`` that don't end.
_SET_UP = re.compile(r"(make|python3 -m venv|\.venv/bin/pip|\. \.venv|dask) ?")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        page: path of the page from the top folder.
        line: number of its first line.
        language: what stands after the fence.
        text: its lines.
    """

    page: str
    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Line:
    """A command of a page.

    Attributes:
        place: page and line.
        command: as written, without its comment.
        seconds: the time that the page names; 0: none, so it is quick.
        is_run: whether a test runs it.
    """

    place: str
    command: str
    seconds: int
    is_run: bool

    @property
    def words(self) -> list[str]:
        """The words of the command."""
        return shlex.split(self.command)


def pages() -> list[str]:
    """The pages with blocks, by their paths from the top folder."""
    found = ["README.md", "CONTRIBUTING.md", "examples/README.md"]
    found += [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/**/*.md"))]
    return found


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order, but those of Sphinx."""
    text = (ROOT / page).read_text("utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        if not match[1].startswith("{"):
            found.append(Block(page, line, match[1], match[2]))
    return found


def lines(block: Block) -> list[Line]:
    """The commands of a block of ``sh`` or ``console``."""
    found: list[Line] = []
    text = block.text.replace("\\\n", " ")
    if block.language == "sh":
        parts = list(enumerate(text.splitlines()))
    else:
        parts = [(0, line) for line in re.findall(r"^\$ (.*)", text, re.MULTILINE)]
    for number, written in parts:
        command, comment = _split(written)
        time = _TIME.search(comment)
        seconds = int(time[1]) * (1 if time[2] == "s" else 60) if time and time[1] else 0
        is_run = bool(command) and not (
            (time and not time[1]) or _SET_UP.match(command) or _PLACEHOLDER.search(command)
        )
        place = f"{block.page}:{block.line + number}"
        found.append(Line(place, command, seconds, is_run))
    return found


def _split(written: str) -> tuple[str, str]:
    """A command and its comment, which ``#`` begins outside quotes after a blank."""
    quoted = re.match(r"""((?:'[^']*'|"[^"]*"|[^'"#]|(?<=\S)#)*?)(?:\s+#\s*(.*))?$""", written)
    assert quoted, written
    return quoted[1].strip(), (quoted[2] or "").strip()
