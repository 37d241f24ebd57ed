"""LSTM, GRU, magnitudes and other operators of networks for sound, against onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper

import vip
from microkernels.onnx_models.model import real_layers
from microkernels.onnx_models.operators.elements import MAGNITUDE_ERROR
from microkernels.onnx_models.rewrite import balanced
from support.errors import VipError
from tests.onnx_models.graphs import model, reference
from tests.onnx_models.test_mapping import check, mapped
from vip.models.backend import VipBackend

RANDOM = np.random.default_rng(7)
FEW = settings(
    max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@st.composite
def recurrent(draw: st.DrawFn) -> tuple[ModelProto, np.ndarray]:
    """A recurrent layer over some steps, with constant states, peepholes and biases or without."""
    kind = draw(st.sampled_from(["LSTM", "GRU", "RNN"]))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    steps, batch = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    inputs, cells = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    count, gates = 1 + (direction == "bidirectional"), {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]

    def values(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    constants = {
        "w": values(count, gates * cells, inputs),
        "r": values(count, gates * cells, cells),
    }
    names = ["x", "w", "r", "", "", ""]
    if draw(st.booleans()):
        names[3], constants["b"] = "b", values(count, 2 * gates * cells)
    if draw(st.booleans()):
        names[5], constants["h"] = "h", values(count, batch, cells)
    more = {}
    if kind == "GRU":
        more["linear_before_reset"] = draw(st.integers(0, 1))
    elif kind == "RNN":
        more["activations"] = draw(st.sampled_from([["Tanh"], ["Relu"]])) * count
    elif draw(st.booleans()):
        names += ["c", "p"]
        constants |= {"c": values(count, batch, cells), "p": values(count, 3 * cells)}
    outputs = ["y", "last", "cell"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(
        kind, names, outputs, hidden_size=cells, direction=direction, name="node", **more
    )
    return model([node], (steps, batch, inputs), constants, outputs=outputs), values(
        steps, batch, inputs
    )


@FEW
@given(recurrent())
def test_recurrent_layers(case: tuple[ModelProto, np.ndarray]) -> None:
    made, x = case
    for found, wanted in zip(VipBackend.prepare(made).run([x]), reference(made, x), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, atol=4e-3 * max(1.0, np.abs(wanted).max()))


def test_states_before_the_first_step_count_for_the_gates_range() -> None:
    cells = 4
    constants = {
        "w": np.full((1, cells, 2), 0.1),
        "r": np.eye(cells)[np.newaxis],
        "h": np.linspace(0, 12, cells).reshape(1, 1, cells),
    }
    node = helper.make_node(
        "RNN", ["x", "w", "r", "", "", "h"], ["y"], hidden_size=cells, activations=["Relu"]
    )
    check(model([node], (2, 1, 2), constants), RANDOM.uniform(0, 1, (2, 1, 2)).astype(np.float32))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activations": ["Relu", "Tanh", "Tanh"]}, "activations must be Sigmoid, Tanh, Tanh"),
        ({"clip": 1.0}, "clip is not supported"),
        ({"input_forget": 1}, "input_forget must be 0"),
    ],
)
def test_other_lstms_are_refused(attributes: dict[str, object], message: str) -> None:
    constants = {"w": RANDOM.normal(size=(1, 8, 3)), "r": RANDOM.normal(size=(1, 8, 2))}
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2, **attributes)
    made = model([node], (1, 1, 3), constants)
    with pytest.raises(VipError, match=message):
        VipBackend.prepare(made).run([np.ones((1, 1, 3), np.float32)])


def sequences(
    kind: str, steps: int, batch: int, inputs: int, cells: int, direction: str = "forward"
) -> ModelProto:
    """A recurrent layer of all outputs."""
    gates, count = {"LSTM": 4, "GRU": 3}[kind] * cells, 1 + (direction == "bidirectional")
    constants = {
        "w": RANDOM.normal(0, inputs**-0.5, (count, gates, inputs)),
        "r": RANDOM.normal(0, cells**-0.5, (count, gates, cells)),
        "b": RANDOM.normal(0, 0.1, (count, 2 * gates)),
    }
    outputs = ["y", "last", "cell"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(
        kind, ["x", "w", "r", "b"], outputs, hidden_size=cells, direction=direction, name="node"
    )
    return model([node], (steps, batch, inputs), constants, outputs=outputs)


def ran(folder: Path, made: ModelProto, preset: str, *on: str) -> list[vip.ModelRun]:
    """Runs of a model on an input."""
    shape = [size.dim_value for size in made.graph.input[0].type.tensor_type.shape.dim]
    x = RANDOM.normal(size=(2, *shape)).astype(np.float32)
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    vip.compile_model(folder / "m.onnx", {"x": x}, folder / "m", preset=preset)
    return [vip.run_model(folder / "m", {"x": x[:1]}, on=one) for one in on]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("preset", "on"),
    [("vault-logistic", ("golden", "iss", "model")), ("vault", ("golden", "iss", "model")),
     pytest.param("vault", ("golden", "rtl"), marks=pytest.mark.slow)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers_on_all_machines(
    tmp_path: Path, kind: str, preset: str, on: tuple[str, ...]
) -> None:
    first, *others = ran(tmp_path, sequences(kind, 3, 2, 5, 9, "bidirectional"), preset, *on)
    for other in others:
        for name, values in first.outputs.items():
            np.testing.assert_array_equal(other.outputs[name], values)


@pytest.mark.parametrize(("kind", "most"), [("LSTM", 27_000), ("GRU", 21_000)])
def test_cycles_of_a_step_of_128_cells(tmp_path: Path, kind: str, most: int) -> None:
    steps = 8
    (run,) = ran(tmp_path, sequences(kind, steps, 1, 128, 128), "vault", "model")
    assert run.cycles / steps < most


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0])
def test_powers(exponent: float) -> None:
    made = model([helper.make_node("Pow", ["x", "e"], ["y"])], (2, 3, 4), {"e": exponent})
    check(made, RANDOM.normal(size=(2, 3, 4)).astype(np.float32))


def magnitude() -> ModelProto:
    nodes = [
        helper.make_node("Slice", ["x", "zero", "half", "axis"], ["a"]),
        helper.make_node("Slice", ["x", "half", "end", "axis"], ["b"]),
        helper.make_node("Pow", ["a", "two"], ["aa"]),
        helper.make_node("Mul", ["b", "b"], ["bb"]),
        helper.make_node("Add", ["aa", "bb"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["y"], name="root"),
    ]
    numbers = {"zero": [0], "half": [4], "end": [8], "axis": [1]}
    constants = {name: np.array(values, np.int64) for name, values in numbers.items()}
    return model(nodes, ("n", 8, 5), {**constants, "two": 2.0})


def test_magnitudes_have_the_stated_error() -> None:
    made = magnitude()
    x = RANDOM.normal(size=(1, 8, 500)).astype(np.float32)
    wide = ModelProto()
    wide.CopyFrom(made)
    wide.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 500
    found = mapped(wide)
    # Squares are of no use any more.
    assert {layer.kind for layer in found.network.layers} == {
        "Activation", "Rearrange", "Combine", "Add",
    }  # fmt: skip
    maps = x.transpose(0, 2, 1)[:, np.newaxis].astype(np.float64)
    (*_, (_, values)) = real_layers(found, {"input": maps})
    wanted = np.hypot(x[0, :4], x[0, 4:])
    error = values[0, 0].T / wanted - 1
    assert 0.9 * MAGNITUDE_ERROR < np.abs(error).max() < 1.001 * MAGNITUDE_ERROR < 2.5e-3


def test_magnitudes_on_the_machine() -> None:
    x = RANDOM.normal(size=(1, 8, 5)).astype(np.float32)
    (found,) = VipBackend.prepare(magnitude()).run([x])
    np.testing.assert_allclose(found, np.hypot(x[:, :4], x[:, 4:]), atol=0.012)


def test_roots_of_negative_numbers_are_refused() -> None:
    made = model([helper.make_node("Sqrt", ["x"], ["y"])], (2, 3))
    with pytest.raises(VipError, match="sqrt is undefined for some of the calibration"):
        VipBackend.prepare(made).run([np.full((2, 3), -1, np.float32)])


@pytest.mark.parametrize(
    ("channels", "samples", "kernel", "stride", "pads"),
    [(1, 640, 256, 128, (0, 0)), (2, 61, 25, 8, (3, 5)), (1, 33, 4, 16, (0, 0))],
)
def test_convolutions_in_steps_of_many_samples(
    channels: int, samples: int, kernel: int, stride: int, pads: tuple[int, int]
) -> None:
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], strides=[stride], pads=pads)
    constants = {"w": RANDOM.normal(size=(5, channels, kernel)), "b": RANDOM.normal(size=5)}
    made = model([node], (2, channels, samples), constants)
    done = check(made, RANDOM.normal(size=(2, channels, samples)).astype(np.float32))
    assert done.network.layers[-1].kernel.width == -(-kernel // stride)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("Softmax", {"axis": 2}), ("ReduceMax", {"axes": [2]}), ("Transpose", {"perm": [0, 2, 3, 1]})],
)
def test_convolutions_of_one_row_in_long_steps_keep_all_axes(
    op: str, attributes: dict[str, object]
) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], strides=[1, 16]),
        helper.make_node(op, ["c"], ["y"], **attributes),
    ]
    made = model(nodes, (1, 1, 1, 64), {"w": RANDOM.normal(size=(4, 1, 1, 16))})
    check(made, RANDOM.normal(size=(1, 1, 1, 64)))


def test_balance_changes_weights_and_no_output() -> None:
    first, second = RANDOM.normal(size=(6, 3, 3, 3)), RANDOM.normal(size=(4, 6, 1, 1))
    first[2] /= 64
    second[:, 2] *= 64
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["y"], name="second"),
    ]
    found = mapped(model(nodes, (2, 3, 7, 6), {"w": first, "v": second}))
    given = {"input": RANDOM.normal(size=(2, 7, 6, 3))}
    changed = balanced(found, given)
    for name in ("first", "second"):
        before, after = found.real[name].weights, changed.real[name].weights
        assert np.abs(after).max() <= np.abs(before).max()
    assert np.abs(changed.real["second"].weights).max() < np.abs(second).max() / 8
    (*_, (_, wanted)), (*_, (_, values)) = real_layers(found, given), real_layers(changed, given)
    np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-12)


def summing() -> ModelProto:
    """y = x + s / 2, where s is the y of the image before."""
    nodes = [
        helper.make_node("Mul", ["s", "half"], ["a"]),
        helper.make_node("Add", ["x", "a"], ["y"]),
    ]
    return model(nodes, (1, 6), {"half": 0.5}, inputs=("x", "s"))


@pytest.mark.parametrize("on", ["golden", "iss"])
def test_an_output_is_an_input_of_the_next_image(tmp_path: Path, on: str) -> None:
    (tmp_path / "sum.onnx").write_bytes(summing().SerializeToString())
    x = RANDOM.normal(size=(5, 6)).astype(np.float32)
    vip.compile_model(tmp_path / "sum.onnx", {"x": x}, tmp_path / "sum", carry={"y": "s"})
    ran = vip.run_model(tmp_path / "sum", {"x": x}, on=on)  # type: ignore[arg-type]
    wanted, before = [], np.zeros(6)
    for image in x:
        before = image + before / 2
        wanted.append(before)
    np.testing.assert_allclose(ran.outputs["y"], wanted, atol=1e-3)
    found = vip.evaluate_model(tmp_path / "sum", {"x": x})
    assert found.largest < 1e-3


@pytest.mark.parametrize(
    ("carry", "message"),
    [
        ({"z": "s"}, "no output 'z' that can be carried; there is y"),
        ({"y": "x"}, "no input 'x' that can be carried; there is s"),
    ],
)
def test_a_carry_of_other_tensors_is_refused(
    tmp_path: Path, carry: dict[str, str], message: str
) -> None:
    (tmp_path / "sum.onnx").write_bytes(summing().SerializeToString())
    x = np.ones((2, 6), np.float32)
    with pytest.raises(VipError, match=message):
        vip.compile_model(tmp_path / "sum.onnx", {"x": x}, tmp_path / "sum", carry=carry)


def test_a_window_whose_program_is_too_long_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=8, strides=[2, 2])
    made = model([node], (1, 8, 49, 49), {"w": RANDOM.normal(size=(8, 1, 1, 40))})
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    problem = vip.check_model(tmp_path / "m.onnx", preset="tiny").problem
    assert "needs a program of" in problem
    assert "the engines of tiny have an instruction buffer of" in problem


def test_a_program_that_is_too_long_is_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Conv", ["a", "w"], ["y"], strides=[15], name="wide"),
    ]
    made = model(nodes, (1, 1, 640), {"w": RANDOM.normal(size=(258, 1, 256))})
    (tmp_path / "wide.onnx").write_bytes(made.SerializeToString())
    found = vip.check_model(tmp_path / "wide.onnx")
    assert not found.supported
    assert found.problem.startswith("wide: a window of 256 x 1 pixels needs a program of")
    with pytest.raises(VipError, match="the engines of vault have an instruction buffer of 1024"):
        vip.compile_model(
            tmp_path / "wide.onnx", {"x": np.ones((2, 1, 640), np.float32)}, tmp_path / "wide"
        )


def _cells(op: str, gates: int, recurrent: float) -> ModelProto:
    """A layer of six cells over three steps, with recurrent weights of about this magnitude."""
    random = np.random.default_rng(31)
    constants = {
        "w": random.normal(0, 0.5, (1, gates * 6, 4)),
        "r": random.normal(0, recurrent, (1, gates * 6, 6)),
    }
    node = helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=6, name="cells")
    return model([node], (3, 1, 4), constants)


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("scale", [300.0, 3000.0])
def test_inputs_of_hundreds_saturate_gates_alone(
    tmp_path: Path, op: str, gates: int, scale: float
) -> None:
    """Gates beyond 8 change nothing; fraction bits stay within those of the kernel."""
    onnx.save(_cells(op, gates, 0.4), tmp_path / "m.onnx")
    x = np.random.default_rng(32).uniform(-scale, scale, (8, 3, 1, 4)).astype(np.float32)
    report = vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m")
    assert report.outputs[0].error < 3e-3


def test_large_recurrent_weights_take_bits_from_the_gates(tmp_path: Path) -> None:
    """Their sums would need a shift to the left, which fewer bits of the states lengthen."""
    x = np.random.default_rng(33).uniform(-1, 1, (8, 3, 1, 4)).astype(np.float32)
    onnx.save(_cells("RNN", 1, 3e5), tmp_path / "m.onnx")
    report = vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m")
    assert report.outputs[0].error < 3e-3
    onnx.save(_cells("RNN", 1, 3e8), tmp_path / "m.onnx")
    with pytest.raises(VipError, match="node cells: its weights are too large for its states"):
        vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "n")
