"""What layers take, predicted and counted."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

import vip
from tests.onnx_models.graphs import model
from vip.models.layers import LayerFigures, worth_changing

node = helper.make_node


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[vip.CompileReport, vip.ModelRun]:
    """A convolution of 3 x 3, a step between rows and columns, and a matrix; two images."""
    folder = tmp_path_factory.mktemp("layers")
    random = np.random.default_rng(51)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], name="conv"),
        node("Transpose", ["a"], ["t"], perm=[0, 1, 3, 2], name="turn"),
        node("Flatten", ["t"], ["f"]),
        node("Gemm", ["f", "v"], ["y"], name="gemm"),
    ]
    constants = {"w": random.normal(0, 0.2, (8, 4, 3, 3)), "v": random.normal(0, 0.1, (512, 20))}
    onnx.save(model(nodes, ("n", 4, 8, 8), constants), folder / "m.onnx")
    x = random.normal(size=(2, 4, 8, 8)).astype(np.float32)
    report = vip.compile_model(folder / "m.onnx", {"x": x}, folder / "m", batch=2)
    return report, vip.run_model(folder / "m", {"x": x}, on="model")


def by_node(layers: tuple[LayerFigures, ...]) -> dict[str, LayerFigures]:
    return {layer.node: layer for layer in layers}


def test_bounds_are_those_of_lanes_and_memory(
    ran: tuple[vip.CompileReport, vip.ModelRun],
) -> None:
    """Of two images on a vault: 16 lanes, 8 bytes a cycle."""
    conv, gemm = (by_node(ran[0].layers)[name] for name in ("conv", "gemm"))
    assert conv.computing == 2 * 8 * 8 * 8 * 4 * 9 / 16
    # A column and a row around the map are read, too.
    assert conv.memory >= 2 * (2 * (8 * 8 * 4 + 8 * 8 * 8) + 8 * 4 * 9) / 8
    assert gemm.computing == 2 * 512 * 20 / 16
    assert gemm.memory == 2 * (2 * (512 + 20) + 512 * 20) / 8
    for layer in (conv, gemm):
        assert layer.bound == max(layer.computing, layer.memory)


def test_a_run_counts_every_cycle_once(ran: tuple[vip.CompileReport, vip.ModelRun]) -> None:
    compiled, run = ran
    assert sum(layer.cycles + layer.moves for layer in run.layers) == run.cycles
    planned = by_node(compiled.layers)
    for name, layer in by_node(run.layers).items():
        assert layer.taken == layer.cycles + layer.moves
        assert sum(layer.causes.values()) == 4 * layer.taken
        assert layer.bound <= layer.taken
        assert 0 < layer.busy <= 1 or layer.kind == "Rearrange"
        assert layer.bound == planned[name].bound
        assert layer.predicted == planned[name].predicted
        assert layer.use == layer.computing / layer.taken
        assert layer.costs["read_bytes"] > 0
    assert sum(layer.launches for layer in run.layers) <= len(run.launches)


PACE = {
    "Conv": {
        "cycles": {"launches": 200.0, "work": 1.0},
        "measured": [[1.0, 0.06, 0.01, 0.02, 0.01, 0.17, 0, 0, 0, 0, 0.05]],
    },
    "Pool": {
        "cycles": {"launches": 200.0, "work": 1.0},
        "measured": [[1.0, 0.06, 0.01, 0.02, 0.01, 0.17, 0, 0, 0, 0, 0.4]],
    },
    "Add": {"cycles": {"launches": 500.0, "work": 1.0}, "measured": []},
    "moves": {"cycles": {"pieces": 60.0}, "measured": []},
}


@pytest.fixture
def pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions that do not change when layers are measured again."""
    monkeypatch.setattr("vip.models.layers._pace", lambda: PACE)


@pytest.mark.usefixtures("pace")
def test_the_layers_with_most_cycles_beyond_their_bounds_are_named() -> None:
    base = {"output": (1, 1, 1), "vectors": 8, "launches": 1, "memory": 0.0}
    every = [
        LayerFigures(
            name=name,
            node=name,
            kind=kind,
            computing=bound,
            effort={"launches": 1, "work": work},
            **base,
        )
        for name, kind, bound, work in (
            ("near", "Conv", 90e3, 1e5),
            ("slow", "Conv", 1e4, 5e4),
            ("wide", "Conv", 0.0, 3e4),
            ("tiny", "Add", 0.0, 10.0),
        )
    ]
    assert [layer.name for layer in worth_changing(every)] == ["slow", "wide", "near"]
    assert [layer.name for layer in worth_changing(every[:1])] == ["near"]
    close = replace(every[0], computing=0.96 * every[0].taken)
    assert worth_changing([close]) == []
    assert "vectors of 8" in every[1].reason
    assert "a larger batch" in every[3].reason


def test_issued_instructions_are_no_reason() -> None:
    layer = LayerFigures(
        **{"name": "a", "node": "a", "kind": "Conv", "output": (1, 1, 1), "vectors": 8},
        **{"launches": 1, "memory": 0.0, "computing": 10.0, "effort": {}},
        cycles=100,
        causes={"ISSUED_VECTOR": 60, "STALL_FETCH": 10, "STALL_VECTOR": 30},
    )
    assert layer.reason == "in 30% of the engines' cycles the vector unit is busy"
    every = {"ISSUED_VECTOR": 100}
    assert "of the lanes' cycles are useful" in replace(layer, causes=every).reason


def test_only_a_run_has_counted_figures(ran: tuple[vip.CompileReport, vip.ModelRun]) -> None:
    counted = {"cycles", "moves", "causes", "vector_busy", "costs", "busy", "off"}
    for before, after in zip(ran[0].layers, ran[1].layers, strict=True):
        assert not counted & before.to_json().keys()
        assert before.to_json().keys() | counted == after.to_json().keys()


@pytest.mark.usefixtures("pace")
def test_predictions_of_layers_unlike_measured_ones_are_unknown() -> None:
    base = {"name": "a", "node": "a", "output": (1, 1, 1), "vectors": 8, "launches": 1}
    cycles = {"computing": 9e4, "memory": 5e3}
    effort = {"launches": 1, "work": 9e4, "columns": 10, "chain": 3e3, "weights": 2e3, **cycles}
    usual = LayerFigures(kind="Conv", effort=effort, **base, **cycles)
    assert usual.known
    assert usual.predicted == 9e4 + 200
    # A layer like it was off by 40 %.
    assert not LayerFigures(kind="Pool", effort=effort, **base, **cycles).known
    strange = {**effort, "computing": 0.0, "chain": 9e4, "columns": 900}
    assert not LayerFigures(kind="Conv", effort=strange, **base, **cycles).known
    assert not LayerFigures(kind="New", effort=effort, **base, **cycles).known
    moved = {**effort, "moves": 1, "pieces": 9e5, "descriptions": 0, "longest": 1, "elements": 1}
    assert not LayerFigures(kind="Conv", effort=moved, **base, **cycles).known
