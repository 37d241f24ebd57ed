"""Making of ONNX models: nodes, seeded weights, and the shapes of outputs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from support.extras import need

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Reals = NDArray[np.floating[Any]]

_OPSET = 17
_IR_VERSION = 8


def model_of(
    nodes: "Sequence[NodeProto]",
    shape: Sequence[int | str],
    constants: Mapping[str, Any] | None = None,
    *,
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    opset: int = _OPSET,
) -> "ModelProto":
    """A model of nodes whose inputs are of one shape.

    Parameters:
        shape: of each input; text is a size that is open.
        constants: by name; those of real numbers become 32-bit ones.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    need("onnx", "models")
    from onnx import ModelProto, TensorProto, helper, numpy_helper, shape_inference

    initializers = []
    for name, values in (constants or {}).items():
        array = np.asarray(values)
        if np.issubdtype(array.dtype, np.floating):
            array = array.astype(np.float32)
        initializers.append(numpy_helper.from_array(array, name))
    graph = helper.make_graph(
        list(nodes),
        "model",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in inputs],
        [],
        initializers,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=_IR_VERSION
    )
    work = ModelProto()
    work.CopyFrom(model)
    for name in outputs:
        value = work.graph.output.add()
        value.name = name
    inferred = shape_inference.infer_shapes(work).graph.output
    model.graph.output.extend(value for value in inferred if value.name in outputs)
    return model


class GraphWriter:
    """A model that is being written, layer by layer; each method returns its output's name.

    Weights are random with a variance of 2 over the inputs of an output (He et al. 2015, equation
    10), so that activations neither vanish nor grow; normalisations have scales and variances from
    0.5 to 1.5.

    Parameters:
        seed: of the weights.

    Raises:
        MissingExtraError: onnx is not installed.
    """

    def __init__(self, seed: int) -> None:
        need("onnx", "models")
        self._random = np.random.default_rng(seed)
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, Reals] = {}

    def node(self, op: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """A node with one output of its own name."""
        from onnx import helper

        self._nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, values: Reals) -> str:
        """A constant."""
        self._constants[name] = values
        return name

    def conv(
        self,
        x: str,
        name: str,
        *,
        channels: int,
        filters: int,
        kernel: tuple[int, int] = (3, 3),
        stride: int = 1,
        depthwise: bool = False,
    ) -> str:
        """A convolution with as many outputs as inputs by the stride, and its normalisation.

        Parameters:
            depthwise: each channel has a filter of its own, and ``filters`` are as many.
        """
        inputs = 1 if depthwise else channels
        shape = (filters, inputs, *kernel)
        weights = self._random.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        output = self.node(
            "Conv",
            [x, self.constant(f"{name}.w", weights)],
            f"{name}.conv",
            group=channels if depthwise else 1,
            strides=[stride, stride],
            auto_pad="SAME_UPPER",
        )
        return self.normal(output, name, filters)

    def normal(self, x: str, name: str, channels: int) -> str:
        """A normalisation by statistics of the training."""
        random = self._random
        numbers = {
            "scale": random.uniform(0.5, 1.5, channels),
            "shift": random.normal(0, 0.1, channels),
            "mean": random.normal(0, 0.1, channels),
            "variance": random.uniform(0.5, 1.5, channels),
        }
        constants = [self.constant(f"{name}.{kind}", values) for kind, values in numbers.items()]
        return self.node("BatchNormalization", [x, *constants], name)

    def relu(self, x: str, limit: float | None = None) -> str:
        """The positive part, at most ``most``."""
        if limit is None:
            return self.node("Relu", [x], f"{x}.relu")
        limits = [self.constant(f"{x}.{end}", np.array(value))
                  for end, value in (("low", 0.0), ("high", limit))]  # fmt: skip
        return self.node("Clip", [x, *limits], f"{x}.relu")

    def add(self, one: str, other: str, name: str) -> str:
        """A residual connection."""
        return self.node("Add", [one, other], name)

    def pooled(self, x: str, name: str) -> str:
        """The mean of each channel, as a vector."""
        return self.node("Flatten", [self.node("GlobalAveragePool", [x], f"{name}.mean")], name)

    def dense(self, x: str, name: str, *, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """A fully connected layer.

        Parameters:
            gain: of its weights, such that a softmax of its outputs is not all 0 and 1.
        """
        weights = gain * self._random.normal(0, np.sqrt(2 / inputs), (outputs, inputs))
        bias = self._random.normal(0, 0.05, outputs)
        constants = [self.constant(f"{name}.w", weights), self.constant(f"{name}.b", bias)]
        return self.node("Gemm", [x, *constants], name, transB=1)

    def model(self, shape: Sequence[int], output: str) -> "ModelProto":
        """The model.

        Parameters:
            shape: of an image, in the order of ONNX; the model leaves the images' number open.
            output: name of the tensor.
        """
        return model_of(self._nodes, ("images", *shape), self._constants, outputs=(output,))
