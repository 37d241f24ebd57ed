"""The commands of docs/commands.md: each finds its inputs where the lines before it have run in an
empty folder, and none writes over what another has written."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"
(BLOCK,) = re.findall(r"^```\n(printf .*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.M)
LINES = [shlex.split(line, comments=True) for line in BLOCK.splitlines()]
#: Options that name an output.
OUTPUTS = {
    *("-o", "--output", "--json", "--listing", "--picture"),
    *("--trace", "--pipeline"),
}
FILE = re.compile(r"[\w/]+\.(s|vip|bin|txt|lst|vcd|json|png|svg|log|pfm|onnx|npz|toml|html|lib)")
#: What other programs write.
WRITTEN = {"microkernels.apps.digits_onnx": ("digits_cnn.onnx", "digits_train.npz")}


def outputs(words: list[str]) -> set[str]:
    """The files and folders that a line writes."""
    found = {word for before, word in pairwise(words) if before in OUTPUTS}
    found |= {word for before, word in pairwise(words) if before == ">"}
    found |= {name for module, names in WRITTEN.items() if module in words for name in names}
    return found


def test_every_input_is_there_and_no_output_is_lost() -> None:
    there: set[str] = set()
    commands = 0
    for words in LINES:
        written = outputs(words)
        again = written & there
        assert not again, words
        appended = {word for before, word in pairwise(words) if before == ">>"}
        assert appended <= there, words
        if words[0] == "vip":
            commands += 1
            read = {word for word in words[1:] if FILE.fullmatch(word)} - written
            read |= {word for word in words[2:] if word == "cnn" and word not in written}
            assert read <= there, words
        there |= written
    assert commands > 30


@pytest.mark.parametrize("line", [words for words in LINES if words[0] == "vip"], ids=" ".join)
def test_every_command_knows_its_options(vip, line: list[str]) -> None:
    _, text, _ = vip(*line[1 : 3 if line[1] in ("cosim", "mrf", "bench", "nn") else 2], "--help")
    for word in line:
        if word.startswith("-"):
            assert re.search(rf"(?<![\w-]){word}(?![\w-])", text), word
