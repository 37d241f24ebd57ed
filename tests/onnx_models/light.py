"""The light graphs of the ``onnx`` package with seeded weights: ``python -m tests.onnx_models.light
FOLDER`` writes them there, each with an image for calibration (``NAME.npz``).

Their weights are constants of a node, all alike; here they are random, of the usual size. The last
Softmax is left out: the machine has no exponential.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

__all__ = ["LIGHT", "light_model"]

_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
#: Their names.
LIGHT = tuple(sorted(path.stem.removeprefix("light_") for path in _FOLDER.glob("*.onnx")))


def _values(random: np.random.Generator, op: str, number: int, shape: list[int]) -> np.ndarray:
    """Weights of the input ``number`` of an operator."""
    if op == "BatchNormalization":
        mean = 1.0 if number in (1, 4) else 0.0
        return np.abs(random.normal(mean, 0.1, shape)) if mean else random.normal(0, 0.1, shape)
    if op in ("Conv", "Gemm") and number == 1:
        inputs = np.prod(shape[1:])
        return random.normal(0, np.sqrt(2 / inputs), shape)
    if op == "Mul":
        return np.abs(random.normal(1, 0.1, shape))
    return random.normal(0, 0.05, shape)


def light_model(name: str) -> ModelProto:
    """A light graph with seeded weights, without its last Softmax."""
    model = onnx.load(_FOLDER / f"light_{name}.onnx")
    graph = model.graph
    random = np.random.default_rng(1)
    shapes = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    users = {name: (node.op_type, n) for node in graph.node for n, name in enumerate(node.input)}
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        made = node.output[0]
        values = _values(random, *users[made], shapes[node.input[0]].tolist())
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), made))
    last = kept[-1]
    if last.op_type == "Softmax":
        kept.pop()
        graph.output[0].name = last.input[0]
        graph.output[0].type.tensor_type.ClearField("shape")
        graph.output[0].type.tensor_type.shape.dim.add().dim_param = "images"
        graph.output[0].type.tensor_type.shape.dim.add().dim_param = "classes"
    model.ir_version = 8
    del graph.node[:]
    graph.node.extend(kept)
    return model


def write(folder: Path) -> None:
    """Write all models and their images."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in LIGHT:
        model = light_model(name)
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
        constants = {each.name for each in model.graph.initializer}
        (given,) = (each for each in model.graph.input if each.name not in constants)
        shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
        image = np.random.default_rng(2).normal(0, 1, shape).astype(np.float32)
        np.savez(folder / f"{name}.npz", **{given.name: image})


if __name__ == "__main__":
    write(Path(sys.argv[1]))
