"""``vip bench vault``: its report and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sim_tb.workloads.traffic import TRAFFICS

Vip = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("machine", ["rtl", "model"])
def test_report_has_a_figure_a_traffic(tmp_path: Path, vip: Vip, machine: str) -> None:
    options = ["--accesses", "1000", "--only", "open-page", "--on", machine, "--json", "v.json"]
    code, out, err = vip("bench", "vault", *options)
    assert code == 0, err
    report = json.loads((tmp_path / "v.json").read_text())
    results = report["experiments"]["vault"]["results"]
    assert set(results) == {f"open_page_{traffic}" for traffic in TRAFFICS}
    for traffic in ("sequential_read", "random_read", "mixed"):
        assert 5 < results[f"open_page_{traffic}"]["value"] <= 10
    assert results["open_page_idle_random_read"]["unit"] == "cycles"
    assert report["provenance"]["tools"]["verilator"]
    assert "open_page_mixed" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["vault", "--only", "none"],
            "--only: unknown part 'none'; there are: open-page, closed-page, ",
        ),
        (["vault", "--accesses", "10"], "at least 1000"),
        (["vault", "--seed", "-1"], "at least 0"),
        (["vault", "--json", "nowhere/report.json"], "nowhere/report.json: can't be written: "),
        (
            ["memory_variants", "--only", "none"],
            "--only: unknown part 'none'; there are: open-page",
        ),
        (
            ["kernels", "--only", "conv9_9"],
            "--only: unknown part 'conv9_9'; there are: bp_m, bp_construct",
        ),
        (["kernels", "--picture", "nowhere/x.png"], "there is no folder nowhere"),
        (["fit", "--only", "sort"], "unknown application 'sort'; there are: matrix-addition, "),
    ],
)
def test_bad_arguments_are_one_clear_line(arguments: list[str], message: str, vip: Vip) -> None:
    code, _, err = vip("bench", *arguments)
    assert code == 2
    assert message in " ".join(err.replace("│", " ").split())


def test_help_has_an_example(vip: Vip) -> None:
    code, text, _ = vip("bench", "vault", "--help")
    assert code == 0
    assert "vip bench vault --only open-page" in text
