"""The steps of the pages that a reader follows: commands, Python, and files to save.

A block of the language ``sh`` has commands, one per line; ``console`` has them after ``$``, with
what they print. A block of Python is a step, too, unless it is an excerpt of an example or an
experiment; a block of ``text`` right after it is what it prints. Any other block is a file if the
paragraph before it ends in a colon and names one.

The steps of a page run in order in one folder, which has a copy of examples/ alone. A comment that
ends in a time, such as ``(40 s)``, says how long a command takes on two idle cores with an empty
cache: ``make pages`` runs these, ``make test`` those without. A comment that ends in ``(hours)``
or the like says why a command is not run, nor is one with a word in capitals, which stands for
what the reader has.
"""

import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).parents[3]
#: Languages of blocks.
LANGUAGES = ("sh", "console", "python", "asm", "toml", "text", "bibtex")
#: Any lines, and any text in a line.
REST = "..."
_BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TIME = re.compile(r"\((?:(\d+) (s|minutes?)|hours|until Ctrl-C|other engine)\)$")
_PLACEHOLDER = re.compile(r"(?<![\w$-])[A-Z]{3,}(?![\w=])")
_FILE = re.compile(r"`([\w./]+\.(?:s|txt|toml))`")
#: Programs that set VIP up or change the checkout, and those of the extra ``cluster``.
_CHECKOUT = re.compile(r"(make|python3 -m venv|\.venv/bin/pip|\. \.venv|dask|.* --record) ?")


@dataclass(frozen=True)
class Step:
    """A step of a page.

    Attributes:
        place: page and line.
        language: ``sh`` of a command, else that of the block.
        text: the command without its comment, or the block.
        seconds: the time that the page names; 0: none, so it is quick.
        is_run: whether a test runs it.
        shown: what it prints.
        file: the name of the file that the block is; "": none.
    """

    place: str
    language: str
    text: str
    seconds: int = 0
    is_run: bool = True
    shown: str = REST
    file: str = ""

    @property
    def words(self) -> list[str]:
        """The words of a command, the strings of Python."""
        return (
            shlex.split(self.text) if self.language == "sh" else re.findall(r'"(.*?)"', self.text)
        )


def pages() -> list[str]:
    """The pages with blocks, by their paths from the top folder."""
    found = ["README.md", "CONTRIBUTING.md", "examples/README.md"]
    found += [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/**/*.md"))]
    return found


def steps(page: str) -> list[Step]:
    """The steps of a page, in order, but the blocks of Sphinx."""
    text = (ROOT / page).read_text("utf-8")
    found: list[Step] = []
    matches = [match for match in _BLOCK.finditer(text) if not match[1].startswith("{")]
    for at, match in enumerate(matches):
        line = text.count("\n", 0, match.start()) + 2
        language, block = match[1], match[2]
        if language in ("sh", "console"):
            found += _commands(page, line, language, block)
            continue
        place = f"{page}:{line}"
        if language == "python":
            after = matches[at + 1] if at + 1 < len(matches) else None
            is_shown = after and after[1] == "text" and after.start() == match.end() + 2
            seconds, _ = _time(block.splitlines()[0])
            shown = after[2] if after and is_shown else REST
            found.append(Step(place, language, block, seconds, not _is_excerpt(block), shown))
            continue
        paragraph = text[: match.start()].strip().rsplit("\n\n", 1)[-1]
        names = _FILE.findall(paragraph) if paragraph.endswith(":") else []
        found.append(Step(place, language, block, file=names[-1] if names else ""))
    return found


@cache
def _programs() -> list[str]:
    """The text of all examples and experiments."""
    files = [*ROOT.glob("examples/*.py"), *ROOT.glob("bench/*.py")]
    return [file.read_text("utf-8") for file in files]


def _is_excerpt(block: str) -> bool:
    """Whether an example or an experiment has the text of a block."""
    return any(
        text in program for program in _programs() for text in (block, indent(block, "    "))
    )


def _commands(page: str, first: int, language: str, block: str) -> list[Step]:
    """The commands of a block."""
    found: list[Step] = []
    lines = block.replace("\\\n", " \0").splitlines()
    line = first
    for at, written in enumerate(lines):
        place = f"{page}:{line}"
        line += 1 + written.count("\0")
        is_command = language == "sh" or written.startswith("$ ")
        if not is_command:
            continue
        command, comment = _split(written.replace("\0", "").removeprefix("$ "))
        seconds, is_run = _time(comment)
        shown = [REST]
        if language == "console":
            shown = lines[at + 1 :]
            following = [n for n, each in enumerate(shown) if each.startswith("$ ")]
            shown = shown[: following[0]] if following else shown
        if command:
            runs = is_run and not (_CHECKOUT.match(command) or _PLACEHOLDER.search(command))
            found.append(Step(place, "sh", command, seconds, runs, "\n".join(shown)))
    return found


def _time(comment: str) -> tuple[int, bool]:
    """The seconds that a comment names, and whether what it stands beside is run."""
    time = _TIME.search(comment)
    seconds = int(time[1]) * (1 if time[2] == "s" else 60) if time and time[1] else 0
    return seconds, not time or bool(time[1])


def _split(written: str) -> tuple[str, str]:
    """A command and its comment, which ``#`` begins outside quotes after a blank."""
    quoted = re.match(r"""((?:'[^']*'|"[^"]*"|[^'"#]|(?<=\S)#)*?)(?:\s+#\s*(.*))?$""", written)
    assert quoted, written
    return quoted[1].strip(), (quoted[2] or "").strip()
