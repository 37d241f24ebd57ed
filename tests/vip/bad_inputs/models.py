"""Files of models, of their data, and of compiled ones: good and bad."""

import json
from functools import cache
from io import BytesIO
from random import Random
from typing import Any

import numpy as np
from onnx import ModelProto, helper

from .oddity import oddity


@cache
def onnx_file() -> bytes:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "relu",
        [helper.make_tensor_value_info("x", 1, ["n", 2, 3])],
        [helper.make_tensor_value_info("y", 1, ["n", 2, 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content


def bad_onnx(random: Random) -> bytes:
    kind = random.randrange(4)
    if kind == 0:
        return oddity(random)
    good = onnx_file()
    if kind == 1:
        return good[: random.randrange(len(good) - 1)]
    model = ModelProto.FromString(good)
    graph = model.graph
    if kind == 2:
        shape = random.choice(([1 << 40], [1 << 31] * 4, [-2], [1] * 99, [1, 0, 3]))
        info = helper.make_tensor_value_info("x", 1, shape)
        graph.input[0].CopyFrom(info)
    else:
        spoil = random.randrange(7)
        node = graph.node[0]
        if spoil == 0:
            node.op_type = random.choice(("NoSuchOperator", "[/b]", "\x1b[2J", ""))
        elif spoil == 1:
            node.input[0] = "y"
        elif spoil == 2:
            node.domain = "of.nobody"
        elif spoil == 3:
            tensor = graph.initializer.add()
            tensor.name, tensor.data_type = "x", 1
            tensor.dims.extend([1 << 20, 1 << 20])
            tensor.raw_data = b"1234"
        elif spoil == 4:
            del graph.output[:]
        elif spoil == 5:
            model.opset_import[0].version = random.choice((0, -1, 1, 10**6))
        else:
            graph.input[0].type.tensor_type.shape.dim[1].dim_param = "w"
    content: bytes = model.SerializeToString()
    return content


@cache
def arrays_file() -> bytes:
    content = BytesIO()
    np.savez(content, x=np.ones((2, 2, 3), np.float32))
    return content.getvalue()


def bad_arrays(random: Random) -> bytes:
    kind = random.randrange(4)
    if kind == 0:
        return oddity(random)
    if kind == 1:
        good = arrays_file()
        return good[: random.randrange(len(good) - 1)]
    content = BytesIO()
    if kind == 2:
        shape = random.choice(((), (0,), (2, 3), (2, 2, 4), (2, 2, 3, 1), (0, 2, 3)))
        np.savez(content, x=np.ones(shape))
    else:
        values = np.ones((2, 2, 3)) * random.choice((np.nan, np.inf, -np.inf))
        np.savez(
            content, x=random.choice((values, values.astype(complex), np.full((2, 2, 3), "x")))
        )
    return content.getvalue()


def bad_compiled(random: Random) -> bytes:
    if random.random() < 0.3:
        return oddity(random)
    content: dict[str, Any] = {"schema": "vip-model-4", "preset": "vault", "sha256": {}}
    content[random.choice(("schema", "sha256", "x"))] = random.choice(
        (None, 7, "x", [], {}, {"/etc/passwd": "x"}, {"../x": "x"}, {"model.onnx": 7}, [[1]])
    )
    return json.dumps(content).encode()
