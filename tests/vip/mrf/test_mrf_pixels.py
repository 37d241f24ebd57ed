"""``vip mrf denoise``, ``segment``, ``flow`` and ``solve``."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from microkernels.common.errors import KernelError
from microkernels.mrf.pixels import (
    denoising_costs,
    grey_levels,
    read_seeds,
    segmentation_costs,
)

SHAPE = (14, 18)


@pytest.fixture
def parts() -> np.ndarray:
    """Grey levels of two halves."""
    values = np.full(SHAPE, 60, np.uint8)
    values[:, SHAPE[1] // 2 :] = 180
    return values


@pytest.fixture
def noisy(parts: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(3).normal(0, 25, SHAPE)
    return np.clip(parts + noise, 0, 255).astype(np.uint8)


def save(name: str, values: np.ndarray) -> str:
    Image.fromarray(values).save(name)
    return name


def rms(picture: np.ndarray, right: np.ndarray) -> float:
    return float(np.sqrt(((picture.astype(float) - right) ** 2).mean()))


def test_denoising_comes_closer_to_the_picture(vip, noisy, parts) -> None:
    path = save("noisy.png", noisy)
    code, _, err = vip(
        *("mrf", "denoise", path, "--labels", 32, "--smooth", "linear:8", "--weight", 8),
        *("--on", "iss", "-o", "clean.png", "--json", "run.json"),
    )
    assert code == 0, err
    clean = np.asarray(Image.open("clean.png"))
    assert set(np.unique(clean)) <= set(grey_levels(32).tolist())
    assert rms(clean, parts) < 0.5 * rms(noisy, parts)
    report = json.loads(Path("run.json").read_text())
    assert report["match"]
    assert report["energies"][-1] < report["energies"][0]


def test_segmentation_keeps_seeds_and_parts(vip, noisy, parts) -> None:
    seeds = np.zeros(SHAPE, np.uint8)
    seeds[3:6, 2:5], seeds[3:6, -5:-2] = 1, 2
    code, _, err = vip(
        *("mrf", "segment", save("noisy.png", noisy), save("seeds.png", seeds)),
        *("-o", "parts.npy", "--energies", "energies.json"),
    )
    assert code == 0, err
    labels = np.load("parts.npy")
    assert (labels[seeds > 0] + 1 == seeds[seeds > 0]).all()
    assert ((labels == 1) != (parts == 180)).mean() < 0.02
    assert len(json.loads(Path("energies.json").read_text())["energies"]) == 6


def test_flow_finds_two_motions_on_a_machine(vip) -> None:
    """A square moves right and up before a scene that moves left; 25 labels in bytes."""
    scene = np.random.default_rng(7).integers(0, 256, (16, 20), np.uint8)
    moved = np.roll(scene, -1, 1)
    moved[3:9, 7:15] = scene[5:11, 5:13]
    code, _, err = vip(
        *("mrf", "flow", save("first.png", scene), save("second.png", moved), "-o", "motion.npy"),
        *("--bits", 8, "--cut", 60, "--weight", 3, "--on", "model", "--json", "run.json"),
    )
    assert code == 0, err
    motion = np.load("motion.npy")
    assert motion.shape == (16, 20, 2)
    assert (motion[6:9, 8:12] == (2, -2)).all()
    assert (motion[12:, 2:-1] == (-1, 0)).all()
    assert json.loads(Path("run.json").read_text())["match"]
    assert vip("mrf", "flow", "first.png", "second.png", "--window", 4)[0] == 2


def test_graph_of_differing_lengths_is_solved(vip) -> None:
    """A path of three variables, on which belief propagation finds the least energy."""
    random, sizes = np.random.default_rng(11), (3, 1, 5)
    own = [random.integers(0, 50, size) for size in sizes]
    pairs = [random.integers(0, 50, size) for size in ((3, 1), (1, 5))]
    np.savez(
        "graph.npz",
        labels=sizes,
        costs=np.concatenate(own),
        edges=[(0, 1), (1, 2)],
        pairs=np.concatenate([part.ravel() for part in pairs]),
    )
    arguments = ("--iterations", 3, "--on", "model", "-o", "labels.npy", "--json", "run.json")
    code, out, err = vip("mrf", "graph", "graph.npz", *arguments)
    assert code == 0, err
    assert "exact" in out
    first, last = (own[0] + pairs[0][:, 0]).argmin(), (own[2] + pairs[1][0]).argmin()
    assert np.load("labels.npy").tolist() == [first, 0, last]
    run = json.loads(Path("run.json").read_text())
    assert run["updates"] == 12
    assert run["differing"] == 0
    assert run["marginals"] is None
    code, out, err = vip("mrf", "graph", "graph.npz", *arguments, "--marginals")
    assert code == 0, err
    shares = np.load("labels.npy")
    assert shares.shape == (3, 5)
    assert shares[1].tolist() == [1, 0, 0, 0, 0]
    for row, costs in ((0, own[0] + pairs[0][:, 0]), (2, own[2] + pairs[1][0])):
        weights = np.exp(-costs / 256)
        assert shares[row, : len(costs)] == pytest.approx(weights / weights.sum(), abs=0.005)
    np.savez("bad.npz", labels=[2], costs=[1, 2], edges=[(0, 1)], pairs=[1, 2])
    code, _, err = vip("mrf", "graph", "bad.npz")
    assert (code, err.count("\n")) == (2, 1)
    assert "an edge of variable 1; there are 1 variables, from 0" in err


@pytest.mark.parametrize("edges", [None, [5, 0, 1, 9, 2]])
def test_costs_of_a_file_are_solved(vip, edges: list[int] | None) -> None:
    """A line is a tree, on which belief propagation finds the least energy."""
    costs = np.random.default_rng(1).integers(0, 40, (1, 6, 3))
    np.save("costs.npy", costs)
    np.savez("edges.npz", right=[edges or [1] * 5], down=np.ones((0, 6), int))
    code, _, err = vip(
        *("mrf", "solve", "costs.npy", "--smooth", "quadratic:3", "--weight", 7),
        *("--iterations", 1, "--json", "run.json", "-o", "labels.npy"),
        *(("--edges", "edges.npz") if edges else ()),
    )
    assert code == 0, err
    grids = np.stack(np.meshgrid(*[range(3)] * 6, indexing="ij"), axis=-1).reshape(-1, 6)
    steps = np.abs(np.diff(grids, axis=1))
    energies = costs[0, np.arange(6), grids].sum(axis=1)
    energies = energies + 7 * (np.minimum(steps**2, 3) * (edges or [1] * 5)).sum(axis=1)
    assert json.loads(Path("run.json").read_text())["energy"] == energies.min()
    assert (np.load("labels.npy")[0] == grids[energies.argmin()]).all()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"right": np.ones((2, 2), int)}, "not a NumPy archive"),
        ({"right": np.ones((2, 2)), "down": np.ones((1, 3))}, "edges.npz: edge weights must be"),
        ({"right": np.full((2, 2), 256), "down": np.ones((1, 3), int)}, "from 0 to 255"),
        ({"right": np.ones((2, 3), int), "down": np.ones((1, 3), int)}, "the shape (2, 2)"),
    ],
)
def test_edges_that_cannot_be_used(vip, arrays: dict[str, np.ndarray], message: str) -> None:
    np.save("costs.npy", np.zeros((2, 3, 2), int))
    np.savez("edges.npz", **arrays)
    code, _, err = vip("mrf", "solve", "costs.npy", "--edges", "edges.npz")
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_costs_of_pixels() -> None:
    picture = np.array([[[10, 10, 10], [200, 200, 200]]], np.uint8)
    assert denoising_costs(picture, 2, 100).tolist() == [[[10, 100], [100, 55]]]
    colour = np.array([[[10, 20, 30], [0, 0, 0], [40, 40, 41]]], np.uint8)
    costs = segmentation_costs(colour, np.array([[1, 2, 0]]))
    assert costs.tolist() == [[[0, 255], [255, 0], [20, 40]]]


def test_seeds_are_samples_as_they_are(tmp_path: Path) -> None:
    """Not grey levels of a photograph."""
    path = tmp_path / "seeds.png"
    seeds = np.array([[0, 1, 2], [256, 0, 3]], np.uint16)
    Image.fromarray(seeds).save(path)
    assert read_seeds(path).tolist() == seeds.tolist()
    path.write_bytes(b"P2 3 1 3\n0 1 3\n")
    assert read_seeds(path).tolist() == [[0, 1, 3]]
    Image.fromarray(seeds + 1).save(path)
    with pytest.raises(KernelError, match="label \\+ 1, at most 256"):
        read_seeds(path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((2, 2, 3), np.nan), "12 costs are NaN"),
        (np.full((2, 2, 3), 0.5), "whole numbers"),
        (np.full((2, 2, 3), 1 << 40), "below 2**31"),
        (np.full((2, 2, 3), 40000), "16 bits hold"),
        (np.zeros((2, 2, 257), int), "257 labels"),
        (np.zeros((2, 2), int), "(height, width, labels)"),
        (np.array([["a"]]), "not a NumPy array of numbers"),
    ],
)
def test_costs_that_cannot_be_used(vip, values: np.ndarray, message: str) -> None:
    np.save("costs.npy", values)
    code, _, err = vip("mrf", "solve", "costs.npy")
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: denoising_costs(p, 1), "labels"),
        (lambda p: denoising_costs(p + np.array([0, 0, 1], np.uint8), 4), "in colour"),
        (lambda p: segmentation_costs(p, np.ones((1, 2), int)), "the seeds have 2 x 1"),
        (lambda p: segmentation_costs(p, np.ones((2, 2), int)), "the largest is 1"),
        (lambda p: segmentation_costs(p, np.array([[1, 3], [0, 0]])), "1 are missing"),
    ],
)
def test_pictures_that_cannot_be_used(make, message: str) -> None:
    with pytest.raises(KernelError) as error:
        make(np.zeros((2, 2, 3), np.uint8))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
