"""Turns of phrase that are always wrong, in docstrings, comments, messages and pages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Places that nobody has revised yet; a revised one leaves this list.
PLACES = (
    "isa", "hdl", "pe", "memory", "noc", "soc", "support", "sim_tb", "microkernels", "synth", "vip",
    "bench", "docs", "examples", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile",
)  # fmt: skip
SUFFIXES = frozenset((".cpp", ".h", ".lark", ".md", ".py", ".s", ".sv", ".toml"))
#: What is counted, in the plural; some also in the singular.
_PLURALS = (
    "accesses|banks|beats|bits|bytes|columns|commands|cycles|elements|engines|flits|images|"
    "instructions|items|launches|lines|messages|operations|packets|pixels|products|requests|rows|"
    "samples|steps|updates|values|vaults|words"
)
_COUNTED = f"[kMG]?B|beat|byte|column|instruction|line|one|value|word|{_PLURALS}"
#: Pattern -> what a native reader expects.
PATTERNS = {
    rf"\b(?:{_COUNTED}) an? (?:beat|byte|cycle|line|message|pixel|second|update|word)\b"
    r"(?! (?:after|at a time|before|earlier|later))": "per",
    rf"(?:\d|\}}|\bone|\btwo|\bfour) (?:{_COUNTED}) an? (?:bank|engine|lane|row|tile|vault)\b": (
        "per"
    ),
    r"\b(?:[a-z]+s|B|one) (?:an?|per) (?:cycle|second|update|vault) and (?:engine|vault)\b": "per",
    rf"(?<![\w.,'/*^-])(?<![=+-] )(?<!to )(?<!else )(?<!x )1 (?:{_PLURALS})\b": "the singular",
    # "argument(s)" is a library's, which vip/cli/errors.py says in other words.
    r"\b(?!argument)[a-z]{3,}\(s\)": "support.errors.counted",
    r"(?<![Tt]here )\b(?:is|are|was|were) no (?!better|different|earlier|faster|fewer|larger|later|"
    r"less|longer|matter|more|need|one\b|slower|smaller|worse)[a-z`]": "not a",
    r"\bin place of\b": "instead of",
    r"\b(?:can|could|may|might|must|would|will) else\b": "otherwise",
    r"\ball else\b": "everything else",
    r"\b(?:after|at most|by|for|than|to|up to) so many\b": "this many",
    r"\ban own\b": "a ... of its own",
    r"\bbe it\b": "whether",
    r"\banew\b": "again",
    r"\btabulator\b": "Tab",
}
#: First sentence of a component's docstring, which stands in its Verilog, whose text is on record.
_HEAD = re.compile(r'(?<=\(Component\): """)[^.;:]*')
#: A unit of measurements in the records of bench, which compare it.
_UNIT = '"flits a cycle and vault"'


def _text(path: Path) -> str:
    """A file as one line, without indents and the marks of comments."""
    text = re.sub(r"\s*\n[ \t]*(?:#:? |// |\* )?", " ", path.read_text(encoding="utf-8"))
    return _HEAD.sub("", text).replace(_UNIT, "")


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    yield from (file for file in sorted(place.rglob("*")) if file.suffix in SUFFIXES)


@pytest.mark.parametrize("place", PLACES)
def test_text_has_no_known_mistake(place: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}: ...{text[max(0, match.start() - 30) : match.end() + 20]}... "
        f"(better: {better})"
        for file in _files(ROOT / place)
        for text in (_text(file),)
        for pattern, better in PATTERNS.items()
        for match in re.finditer(pattern, text)
    ]
    assert not found, "\n".join(found)


def test_every_place_exists() -> None:
    assert all((ROOT / place).exists() for place in PLACES)


@pytest.mark.parametrize(
    "text",
    [
        "8 bytes a cycle", "one beat a cycle", "GB a second", "36 cycles per update and engine",
        "1 words", "1 vault(s)", "a constant that is no register", "which must else fail",
        "at most so many words", "1 cycles later",
    ],
)  # fmt: skip
def test_patterns_match_mistakes(text: str) -> None:
    assert any(re.search(pattern, text) for pattern in PATTERNS)


@pytest.mark.parametrize(
    "text",
    [
        "a beat a cycle after its request", "n + 1 cycles", "there is no register", "is no longer",
        "once a cycle", "0 to 1 words", "11 words", "so many that it overflows",
    ],
)  # fmt: skip
def test_patterns_match_nothing_right(text: str) -> None:
    assert not any(re.search(pattern, text) for pattern in PATTERNS)
