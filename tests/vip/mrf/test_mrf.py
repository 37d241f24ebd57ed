"""``vip mrf`` and its verbs."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vip as api
from microkernels.bp import golden
from microkernels.bp.golden import coarse_problem, copied
from microkernels.bp.problem import BpProblem
from microkernels.bp.smoothness import coarse_costs, smoothness_costs
from microkernels.common.errors import KernelError
from microkernels.mrf.disparities import read_truth

SHIFT = 3


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A random texture, moved by :data:`SHIFT` pixels, and the truth."""
    rng = np.random.default_rng(5)
    texture = rng.integers(0, 256, (20, 40), np.uint8)
    paths = tmp_path / "left.png", tmp_path / "right.png", tmp_path / "truth.npy"
    Image.fromarray(texture[:, :30]).save(paths[0])
    Image.fromarray(texture[:, SHIFT : 30 + SHIFT]).save(paths[1])
    np.save(paths[2], np.full((20, 30), SHIFT, np.float32))
    return paths


@pytest.fixture
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})


@pytest.mark.parametrize("cost", ["ad", "bt", "census"])
def test_a_moved_texture_has_one_disparity(vip, pair, cost: str) -> None:
    left, right, truth = pair
    code, out, err = vip(
        *("mrf", "stereo", left, right, "--labels", 8, "--cost", cost, "--truth", truth),
        *("-o", "d.pfm", "--json", "run.json", "--energies", "energies.json"),
    )
    assert code == 0, err
    assert "bad 1.0" in out
    found = read_truth(Path("d.pfm"), 1.0)
    assert (found[:, SHIFT:] == SHIFT).all()
    report = json.loads(Path("run.json").read_text())
    energies = json.loads(Path("energies.json").read_text())["energies"]
    assert report["energies"] == energies
    assert len(energies) == 6
    assert report["energy"] == energies[-1] <= energies[0]
    assert report["errors"]["all"]["bad_1"] == 100 * (np.abs(found - SHIFT) > 1).mean()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("bp", ()),
        ("hbp", ("--edges", "gradient:40,3", "--damping", 4)),
        ("hbp", ("--levels", 3)),
        ("trws", ("--edges", "gradient:40,3", "--bits", 32)),
        ("htrws", ("--levels", 3, "--bits", 32)),
    ],
)
@pytest.mark.usefixtures("one_processor")
def test_machines_agree_with_the_golden_model(vip, pair, method: str, options) -> None:
    left, right, _ = pair
    reports = {}
    for place in ("golden", "iss", "model"):
        code, _, err = vip(
            *("mrf", "stereo", left, right, "--labels", 8, "--iterations", 2, "--coarse", 1),
            *("--method", method, "--on", place, "--json", "run.json", "-o", f"{place}.npy"),
            *options,
        )
        assert code == 0, err
        reports[place] = json.loads(Path("run.json").read_text())
    assert reports["model"]["cycles"]
    on_machine = "host" if method.endswith("trws") else "machine"
    assert reports["model"]["labels_chosen_on"] == on_machine
    launches = {
        "bp": ["", "labels"],
        "hbp": ["construct", "coarse", "copy", "fine", "labels"],
        "trws": [""],
        "htrws": ["construct", "coarse", "copy", "fine"],
    }[method]
    if "--levels" in options:
        launches.insert(0, "coarse 2")
    assert list(reports["model"]["cycles"]) == launches
    assert len({report["energy"] for report in reports.values()}) == 1
    assert Path("model.npy").read_bytes() == Path("iss.npy").read_bytes()
    assert Path("model.npy").read_bytes() == Path("golden.npy").read_bytes()


def test_levels_are_problems_of_their_own() -> None:
    """Three levels, step by step."""
    costs = np.random.default_rng(8).integers(0, 90, (9, 7, 4))
    smoothness = smoothness_costs(4, "quadratic:5", 6)
    fine = BpProblem(costs, smoothness)
    given = coarse_costs(4, "quadratic:5", 6, 3)
    half = coarse_problem(fine, given[0])
    quarter = coarse_problem(half, given[1])
    messages = copied(half, golden.iterate(quarter, 3))
    messages = copied(fine, golden.iterate(half, 3, messages))
    expected = golden.labels(fine, golden.iterate(fine, 2, messages))
    options = api.MrfOptions(
        method="hbp", iterations=2, coarse_iterations=3, levels=3, coarse_smoothness=given
    )
    run = api.solve_mrf(fine, options)
    assert (run.labels == expected).all()
    assert len(run.coarse_energies) == 4


def test_a_wrong_message_gives_exit_code_1(vip, pair, monkeypatch) -> None:
    """The machine's results are compared, not copied."""
    left, right, _ = pair
    right_iterate = golden.iterate
    monkeypatch.setattr(
        "vip.mrf.run.iterate", lambda *given: right_iterate(*given) + np.int16(given[1])
    )
    code, out, _ = vip("mrf", "stereo", left, right, "--iterations", 1, "--on", "iss")
    assert code == 1
    assert "DIFFER" in out


def test_a_scaled_pair_keeps_all_of_the_picture(vip, pair) -> None:
    left, right, truth = pair
    code, _, err = vip(
        *("mrf", "stereo", left, right, "--labels", 4, "--scale", 0.5, "--truth", truth),
        *("-o", "d.npy", "--json", "run.json"),
    )
    assert code == 0, err
    assert np.load("d.npy").shape == (10, 15)
    # 1.5 pixels of the scaled pair are 3 of the files: a label is off by 1 at most.
    assert json.loads(Path("run.json").read_text())["errors"]["all"]["bad_2"] < 30


def test_energies_are_those_of_the_problem() -> None:
    rng = np.random.default_rng(2)
    costs = rng.integers(0, 50, (5, 6, 4))
    smoothness = 9 * np.minimum(np.abs(np.subtract.outer(np.arange(4), np.arange(4))), 2)
    run = api.solve_mrf(BpProblem(costs, smoothness), api.MrfOptions(iterations=2))
    labels = run.labels
    expected = sum(int(costs[y, x, labels[y, x]]) for y, x in np.ndindex(5, 6))
    expected += int(smoothness[labels[1:], labels[:-1]].sum())
    expected += int(smoothness[labels[:, 1:], labels[:, :-1]].sum())
    assert run.energy == run.energies[-1] == expected


def test_saturation_is_counted() -> None:
    costs = np.zeros((3, 3, 2), int)
    costs[..., 1] = 127
    problem = BpProblem(costs, np.array([[0, 127], [127, 0]]), 8)
    run = api.solve_mrf(problem, api.MrfOptions(iterations=1))
    assert run.saturated > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--labels", 31), "disparities 0 to 30 don't fit images 30 pixels wide"),
        (("--bits", 12), "8, 16, 32"),
        (("--bits", 8), "8 bits hold -128 to 127, 16 bits would hold them"),
        (("--weight", 40000), "16 bits hold -32768 to 32767, 32 bits would hold them"),
        (("--scale", 0.01), "leaves 0 x 0 pixels"),
        (("--scale", "nan"), "scale"),
        (("--truth-factor", 4), "needs a truth"),
        (("--truth", "left.png", "--truth-factor", -1), "above 0"),
        (("--mask", "left.png"), "needs a truth"),
        (("--smooth", "cubic"), "unknown smoothness"),
        (("-o", "d.jpg"), ".pfm"),
    ],
)
def test_bad_input_is_refused_in_one_line(vip, pair, arguments, message: str) -> None:
    code, _, err = vip("mrf", "stereo", *pair[:2], *arguments)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_pictures_that_do_not_belong_together(vip, pair) -> None:
    left, right, _ = pair
    Image.new("RGB", (30, 20), (1, 2, 3)).save("colour.png")
    code, _, err = vip("mrf", "stereo", left, "colour.png")
    assert code == 2
    assert "the left image is grey, the right one in colour" in err
    np.save("small.npy", np.zeros((3, 4)))
    code, _, err = vip("mrf", "stereo", left, right, "--truth", "small.npy")
    assert code == 2
    assert "small.npy: 4 x 3 pixels, but the photographs have 30 x 20" in err


def test_more_labels_than_fit_are_refused() -> None:
    # No function of the difference of labels, so the matrix is needed.
    problem = BpProblem(np.zeros((2, 2, 200), int), np.ones((200, 200), int))
    with pytest.raises(KernelError, match="200 labels of 16 bits do not fit"):
        api.solve_mrf(problem, api.MrfOptions(on="iss", iterations=1))


def test_trws_reports_a_bound(vip, pair) -> None:
    left, right, _ = pair
    code, out, err = vip(
        *("mrf", "stereo", left, right, "--labels", 8, "--method", "trws", "--iterations", 4),
        *("--energies", "energies.svg", "--json", "run.json"),
    )
    assert code == 0, err
    assert "lower bound" in Path("energies.svg").read_text()
    assert "lower bound" in out
    found = json.loads(Path("run.json").read_text())
    assert len(found["bounds"]) == len(found["energies"]) == 5
    assert all(a <= b for a, b in zip(found["bounds"], found["energies"], strict=True))
    code, _, err = vip(
        *("mrf", "stereo", left, right, "--method", "trws", "--on", "model", "--preset", "tiny")
    )
    assert code == 2
    assert "not on a chip" in err


@pytest.mark.usefixtures("one_processor")
def test_engines_of_a_vault_share_trws(vip, pair) -> None:
    left, right, _ = pair
    code, out, err = vip(
        *("mrf", "stereo", left, right, "--labels", 8, "--method", "trws", "--iterations", 1),
        *("--on", "model", "--preset", "vault", "--json", "run.json"),
    )
    assert code == 0, err
    report = json.loads(Path("run.json").read_text())
    assert report["match"]
    assert report["engines"] == 4
    # 20 rows of 30 pixels: 5 rows an engine, and three blocks of 5 pixels to begin.
    assert report["fill"] == pytest.approx(1 - 150 / 165)
    assert "9.1 %" in out


def test_edge_weights_lower_the_energy_of_their_own_problem(vip, pair) -> None:
    left, right, _ = pair
    base = ("mrf", "stereo", left, right, "--labels", 8, "--edges", "gradient:40,3", "--cut", 90)
    for method in ("bp", "hbp", "trws", "htrws"):
        code, _, err = vip(*base, "--method", method, "--json", "run.json")
        assert code == 0, err
        report = json.loads(Path("run.json").read_text())
        assert report["options"]["edges"] == "gradient:40,3"
        assert report["energies"][-1] <= report["energies"][0]
        assert all(a <= b for a, b in zip(report["bounds"], report["energies"], strict=False))
        assert bool(report["coarse_energies"]) == method.startswith("h")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--edges", "gradient:8,2", "--method", "trws", "--messages", "matrix", "--bits", 32),
            "works only by shifts",
        ),
        (("--edges", "gradient:8"), "unknown edges 'gradient:8'"),
        (("--damping", 4, "--method", "trws"), "damping is for BP-M"),
    ],
)
def test_what_has_no_kernel_is_refused_on_machines(vip, pair, arguments, message: str) -> None:
    code, _, err = vip("mrf", "stereo", *pair[:2], *arguments, "--on", "model")
    assert code == 2
    assert message in err
