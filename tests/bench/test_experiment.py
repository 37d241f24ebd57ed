"""One file adds an experiment: it is listed, run, recorded and rendered."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import bench
from bench.harness import command, record
from bench.harness.experiment import Listed, find, listed
from soc.generate.presets import design

SOURCE = '''"""A dummy."""

from collections.abc import Iterator
from pathlib import Path

from .harness.experiment import Measurement, experiment


@experiment(presets=("pe-small",), tools=("amaranth",), minutes=1)
def dummy(size: int = 3, picture: Path | None = None) -> Iterator[Measurement]:
    """Numbers up to a size.

    Example: vip bench dummy --size 4
    """
    if picture is not None:
        picture.touch()
    for number in range(size):
        yield Measurement(f"number_{number}", number, "apples", more_is_better=True)
'''
Vip = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def dummy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of an experiment, in a folder of the package; and a folder for records."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "dummy.py").write_text(SOURCE)
    monkeypatch.setattr(bench, "__path__", [*bench.__path__, str(folder)])
    summaries = {name: one.summary for name, one in listed().items()}
    monkeypatch.setattr(command.Experiments, "panels", {None: summaries})
    results = tmp_path / "results"
    for function, place in (("read_record", "folder"), ("write_record", "folder")):
        real = getattr(record, function)
        monkeypatch.setattr(
            command,
            function,
            lambda *args, real=real, place=place, **options: real(
                *args, **options, **{place: results}
            ),
        )
    monkeypatch.setattr(command, "clean_commit", lambda: "0123456789abcdef" * 2 + "01234567")
    monkeypatch.setattr(command, "fingerprints", lambda module: {"bench": module})


def test_it_is_listed(vip: Vip) -> None:
    assert listed()["dummy"] == Listed("bench.dummy", "Numbers up to a size.")
    assert find("dummy").presets == ("pe-small",)
    code, text, _ = vip("bench", "--help")
    assert code == 0
    assert "Numbers up to a size." in text
    code, text, _ = vip("bench", "dummy", "--help")
    assert code == 0
    assert all(option in text for option in ("--size", "--record", "--stale", "--json"))


def test_it_runs_with_options_and_is_recorded(vip: Vip, tmp_path: Path) -> None:
    code, text, err = vip("bench", "dummy", "--size", "2", "--json", "dummy.json")
    assert code == 0, err
    assert "number_1" in text
    assert "number_2" not in text
    assert "recorded" not in text
    report = json.loads((tmp_path / "dummy.json").read_text())["experiments"]["dummy"]
    assert report["results"]["number_1"] == {"value": 1, "unit": "apples"}
    assert report["configurations"]["pe-small"]["registers"] == design("pe-small").registers
    code, text, _ = vip("bench", "dummy", "--stale")
    assert text == "stale: dummy: no record\n"
    code, _, err = vip("bench", "dummy", "--size", "2", "--record")
    assert (code, err) == (2, "vip: dummy: --record can't be combined with --size\n")
    code, text, err = vip("bench", "dummy", "--record", "--picture", "picture.png")
    assert code == 0, err
    assert (tmp_path / "picture.png").exists()
    results = tmp_path / "results"
    assert record.values("dummy", results) == {"number_0": 0, "number_1": 1, "number_2": 2}
    assert record.read_record("dummy", results).command == "vip bench dummy --record"
    code, text, _ = vip("bench", "dummy")
    assert text.count("as recorded") == 3
    code, text, _ = vip("bench", "dummy", "--stale")
    assert (code, text) == (0, "")


def test_a_figure_that_got_worse_is_exit_code_1(vip: Vip, tmp_path: Path) -> None:
    vip("bench", "dummy", "--record")
    path = tmp_path / "results" / "dummy.json"
    path.write_text(path.read_text().replace('"value": 2', '"value": 5'))
    code, text, _ = vip("bench", "dummy")
    assert code == 1
    assert "WORSE" in text


def test_several_run_one_after_the_other(vip: Vip, tmp_path: Path) -> None:
    code, _, err = vip("bench", "dummy", "nosuch")
    assert code == 2
    assert err.startswith("vip: unknown experiment 'nosuch'; there are: area, bad_inputs, ")
    code, text, _ = vip("bench", "dummy", "generate", "--stale")
    assert [line.split(":")[1] for line in text.splitlines()] == [" dummy", " generate"]


@pytest.mark.parametrize("name", [name for name in listed() if name != "dummy"])
def test_experiments_say_what_they_measure(name: str) -> None:
    experiment = find(name)
    doc = experiment.run.__doc__
    assert doc
    summary = listed()[name].summary
    assert summary == doc.split("\n\n")[0].strip()
    assert len(summary) < 97
    assert summary.endswith(".")
    assert experiment.minutes > 0
    for preset in experiment.presets:
        assert design(preset)
