"""Models in folders: compiled, run on every machine, evaluated."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import vip
from microkernels.apps.digits import load_digits, trained
from microkernels.apps.digits_onnx import digits_model
from sim_tb.cosim.machine import Place
from support.errors import VipError
from tests.onnx_models.graphs import model
from vip.cli.app import main


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timing model waits on all processors that it may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """A folder with the CNN compiled, and the test digits."""
    folder = tmp_path_factory.mktemp("digits")
    (train, _), (test, labels) = load_digits()
    (folder / "cnn.onnx").write_bytes(digits_model(trained("CNN")).SerializeToString())
    images = train[:200].transpose(0, 3, 1, 2).astype(np.float32)
    report = vip.compile_model(str(folder / "cnn.onnx"), images, str(folder / "cnn"))
    assert not report.saturated
    assert repr(report).startswith("CompileReport: vault, batch 1, 5 maps, ")
    return folder, {"x": test.transpose(0, 3, 1, 2).astype(np.float32), "y": labels}


def test_accuracy_is_within_one_percent_of_floating_point(
    digits: tuple[Path, dict[str, np.ndarray]],
) -> None:
    folder, test = digits
    found = vip.evaluate_model(folder / "cnn", test)
    assert found.accuracy is not None
    assert found.float_accuracy is not None
    assert found.float_accuracy > 0.9
    assert abs(found.accuracy - found.float_accuracy) <= 0.01
    assert found.error < 1e-3
    assert not found.saturated


@pytest.mark.parametrize("on", ["iss", "model", pytest.param("rtl", marks=pytest.mark.slow)])
def test_a_model_in_bytes_is_as_accurate_and_faster(
    digits: tuple[Path, dict[str, np.ndarray]],
    on: Place,
    tmp_path: Path,
) -> None:
    folder, test = digits
    images = {"x": test["x"][:100]}
    report = vip.compile_model(folder / "cnn.onnx", images, tmp_path / "cnn", preset="vault-int8")
    assert max(map_.weight_fraction or 0 for map_ in report.model.maps) < 8
    found = vip.evaluate_model(tmp_path / "cnn", test)
    assert found.accuracy is not None
    assert found.float_accuracy is not None
    assert found.accuracy >= found.float_accuracy - 0.005
    assert found.error > 1e-3, "not in bytes"
    image = {"x": test["x"][:1]}
    run = vip.run_model(tmp_path / "cnn", image, on=on)
    exact = vip.run_model(tmp_path / "cnn", image, on="golden")
    np.testing.assert_array_equal(run.outputs["scores"], exact.outputs["scores"])
    if on == "model":
        # Multipliers need half the cycles; starts of launches and passes stay (0.876 measured).
        assert run.cycles < 0.88 * vip.run_model(folder / "cnn", image, on="model").cycles


@pytest.mark.parametrize(
    "on", ["golden", "iss", "model", pytest.param("rtl", marks=pytest.mark.slow)]
)
def test_machines_agree(digits: tuple[Path, dict[str, np.ndarray]], on: str) -> None:
    folder, test = digits
    run = vip.run_model(str(folder / "cnn"), test["x"][:1], on=on)  # type: ignore[arg-type]
    if on != "golden":
        with pytest.raises(VipError, match="a batch of 1 image, not 2; vip nn compile --batch 2"):
            vip.run_model(folder / "cnn", test["x"][:2], on=on)  # type: ignore[arg-type]
    with pytest.raises(VipError, match=r"cnn.onnx: not a .npy or .npz file of NumPy$"):
        vip.run_model(folder / "cnn", folder / "cnn.onnx")
    with pytest.raises(VipError, match="the inputs: an array, arrays by name, or a file"):
        vip.run_model(folder / "cnn", [1])  # type: ignore[arg-type]
    exact = vip.run_model(folder / "cnn", {"x": test["x"][:1]}, on="golden")
    np.testing.assert_array_equal(run.outputs["scores"], exact.outputs["scores"])
    assert (run.cycles > 0) == (on in ("model", "rtl"))
    assert (run.instructions > 0) == (on == "iss")


def test_a_budget_keeps_16_bits_where_bytes_exceed_it(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    sizes = {"a": (12, 2, 3, 3), "b": (6, 12, 1, 1), "c": (24, 6, 3, 3), "d": (4, 24 * 2 * 2)}
    constants = {name: random.normal(size=size) for name, size in sizes.items()}
    # Few of the bytes' steps are left for this layer's other weights.
    constants["b"][0, 0] *= 40
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["p"], name="first"),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Conv", ["q", "b"], ["r"], name="uneven"),
        helper.make_node("Conv", ["r", "c"], ["s"], name="third"),
        helper.make_node("Relu", ["s"], ["t"]),
        helper.make_node("Flatten", ["t"], ["u"]),
        helper.make_node("Gemm", ["u", "d"], ["y"], transB=1, name="last"),
    ]
    (tmp_path / "m.onnx").write_bytes(model(nodes, (1, 2, 6, 6), constants).SerializeToString())
    x = {"x": random.normal(size=(12, 2, 6, 6)).astype(np.float32)}

    def compiled(name: str, budget: float | None, preset: str = "vault-int8") -> Any:
        return vip.compile_model(
            tmp_path / "m.onnx", x, tmp_path / name, preset=preset, budget=budget
        )

    bytes_ = compiled("bytes", None)
    assert bytes_.error_in_bytes == 100 * bytes_.outputs[0].error > 1
    assert bytes_.widened == compiled("loose", 2 * bytes_.error_in_bytes).widened == ()
    report = compiled("mixed", bytes_.error_in_bytes / 2)
    assert report.outputs[0].error <= bytes_.outputs[0].error / 2
    assert 0 < len(report.widened) < 4, "the network's input and three maps"
    one = {"x": x["x"][:1]}
    exact = vip.run_model(tmp_path / "mixed", one, on="golden").outputs["y"]
    for on in ("iss", "model"):
        run = vip.run_model(tmp_path / "mixed", one, on=on)  # type: ignore[arg-type]
        np.testing.assert_array_equal(run.outputs["y"], exact)
    with pytest.raises(VipError, match=r"0\.0001 % is too small: the error is .* layer \w+ adds"):
        compiled("small", 0.0001)
    with pytest.raises(VipError, match="those of vault do not: vault-int8"):
        compiled("vault", 1.0, preset="vault")
    with pytest.raises(VipError, match="a budget is a percentage above 0, not -1"):
        compiled("negative", -1.0)


def test_values_beyond_the_calibration_are_counted(
    digits: tuple[Path, dict[str, np.ndarray]],
) -> None:
    folder, test = digits
    run = vip.run_model(folder / "cnn", {"x": 1.9 * test["x"][:1]}, on="golden")
    assert sum(run.saturated.values()) > 0
    assert set(run.saturated) <= {"conv1", "conv2", "scores"}


@pytest.mark.parametrize(("most", "limited", "beyond"), [(1.0, 0, 0), (1.5, 0, 3), (2.5, 3, 7)])
def test_arguments_and_inputs_beyond_the_calibration_are_counted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    most: float,
    limited: int,
    beyond: int,
) -> None:
    """Of a function whose argument was up to 1; elements of the input hold up to 2."""
    made = model([helper.make_node("Exp", ["x"], ["y"])], ("n", 16))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    vip.compile_model(tmp_path / "m.onnx", {"x": np.linspace(-1, 1, 16)[None]}, tmp_path / "m")
    x = np.linspace(-1, most, 16)[None]
    assert (x > 2).sum() == limited
    assert (x > 1).sum() == beyond
    run = vip.run_model(tmp_path / "m", {"x": x}, on="golden")
    assert run.saturated == ({"x": limited} if limited else {})
    assert sum(run.beyond.values()) == beyond
    found = vip.evaluate_model(tmp_path / "m", {"x": x.astype(np.float32)})
    assert (found.saturated, found.beyond) == (run.saturated, run.beyond)
    np.savez(tmp_path / "x.npz", x=x)
    command = ["nn", "run", tmp_path / "m", "--input", tmp_path / "x.npz", "--on", "golden"]
    monkeypatch.setattr("sys.argv", ["vip", *map(str, command)])
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr().err
    warned = f"range: {beyond} function arguments exceeded the range of the calibration data"
    assert (warned in " ".join(shown.split())) == (beyond > 0)


@pytest.mark.parametrize(
    ("op", "warning"),
    [
        ("Relu", "saturation: on the calibration data, "),
        ("Exp", "range: on the calibration data, "),
    ],
)
def test_compilation_warns_of_the_calibration_data(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    op: str,
    warning: str,
) -> None:
    """Of all of them, as a run on them does: one image has partial sums that 16 bits do not hold,
    or a weight takes bits from others, so that an argument is beyond its range."""
    if op == "Relu":
        random = np.random.default_rng(0)
        weights = random.normal(size=(64, 8))
        x = random.normal(size=(40, 64))
        # None of the images on which fractions are searched.
        x[17] *= 10
    else:
        random = np.random.default_rng(1)
        weights = random.normal(size=(64, 4)) * 0.01
        weights[0, 0] = 3
        x = random.uniform(-1, 1, (40, 64))
        x[:, 0] *= 0.01
    nodes = [helper.make_node("Gemm", ["x", "w"], ["g"]), helper.make_node(op, ["g"], ["y"])]
    onnx.save(model(nodes, ("n", 64), {"w": weights}), tmp_path / "m.onnx")
    x = x.astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    report = vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m")
    run = vip.run_model(tmp_path / "m", {"x": x}, on="golden")
    assert {each.layer: each.saturated for each in report.saturated} == run.saturated
    assert {each.layer: each.beyond for each in report.beyond} == run.beyond
    assert run.saturated if op == "Relu" else run.beyond
    command = ["nn", "compile", tmp_path / "m.onnx", "--calibrate", tmp_path / "x.npy", "-o"]
    monkeypatch.setattr("sys.argv", ["vip", *map(str, [*command, tmp_path / "again"])])
    with pytest.raises(SystemExit):
        main()
    assert warning in " ".join(capsys.readouterr().err.split())


def test_inputs_at_the_limit_of_a_logistic_function_are_not_counted(tmp_path: Path) -> None:
    onnx.save(model([helper.make_node("Sigmoid", ["x"], ["y"])], ("n", 16)), tmp_path / "m.onnx")
    x = np.linspace(-60, 60, 64).reshape(4, 16).astype(np.float32)
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "m", preset="vault-logistic")
    assert not vip.run_model(tmp_path / "m", {"x": x}, on="golden").saturated


def test_a_folder_that_exists_stays_as_it_is(
    digits: tuple[Path, dict[str, np.ndarray]],
) -> None:
    folder, test = digits
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(VipError, match="it exists"):
        vip.compile_model(folder / "cnn.onnx", {"x": test["x"]}, folder / "cnn")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": np.ones((2, 1, 8, 7))}, "input x needs the shape images x 1 x 8 x 8, not"),
        ({"z": np.ones((2, 1, 8, 8)), "w": np.ones(1)}, "there is no array 'x', only 'z', 'w'"),
        ({"x": np.full((2, 1, 8, 8), np.nan)}, "values must be finite"),
    ],
)
def test_bad_calibration_data_are_refused(
    digits: tuple[Path, dict[str, np.ndarray]],
    data: dict[str, np.ndarray],
    message: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(VipError, match=message):
        vip.compile_model(digits[0] / "cnn.onnx", data, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.iterdir())


def test_changed_files_are_refused(
    digits: tuple[Path, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    source = digits[0] / "cnn"
    for path in source.rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(source)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["schema"] == "vip-model-4"
    program = tmp_path / manifest["launches"][0]["program"]
    program.write_bytes(program.read_bytes() + b" ")
    with pytest.raises(VipError, match="it was changed; compile the model again"):
        vip.run_model(tmp_path, {"x": digits[1]["x"][:1]}, on="golden")


def test_check_counts_operators_and_names_what_is_missing(
    digits: tuple[Path, dict[str, np.ndarray]],
) -> None:
    path = digits[0] / "cnn.onnx"
    found = vip.check_model(path)
    assert found.supported
    assert found.operators["Conv"] == (2, 2)
    assert found.cycles > 5_000
    assert vip.check_model(path, preset="vault-small").vaults == 1


def test_layers_that_share_a_program_run(tmp_path: Path) -> None:
    one = np.eye(16).reshape(16, 16, 1, 1)
    nodes = [
        helper.make_node("Conv", ["x", "two"], ["a"]),
        helper.make_node("Conv", ["x", "one"], ["b"]),
    ]
    made = model(nodes, (1, 16, 4, 4), {"one": one, "two": 2 * one}, outputs=("a", "b"))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    x = np.random.default_rng(1).normal(size=(1, 16, 4, 4)).astype(np.float32)
    report = vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out")
    assert report.programs < len(report.model.launches)
    run = vip.run_model(tmp_path / "out", {"x": x}, on="iss")
    np.testing.assert_allclose(run.outputs["b"], x, atol=1e-3)
    np.testing.assert_allclose(run.outputs["a"], 2 * x, atol=1e-3)
