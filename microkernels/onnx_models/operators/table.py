"""The operators that are supported: the only list of them."""

from collections.abc import Mapping

from microkernels.onnx_models.importer import Operator

from . import elements, linear, pooling, views

__all__ = ["OPERATORS"]

#: Type of an operator -> the function that maps a node of it.
OPERATORS: Mapping[str, Operator] = {
    "Abs": elements.function("absolute"),
    "Add": elements.combined("add"),
    "AveragePool": pooling.average_pool,
    "BatchNormalization": linear.batch_normalization,
    "Clip": elements.clip,
    "Conv": linear.conv,
    "Div": elements.combined("divide"),
    "Dropout": views.dropout,
    "Flatten": views.flatten,
    "Gemm": linear.gemm,
    "GlobalAveragePool": pooling.global_average_pool,
    "GlobalMaxPool": pooling.global_max_pool,
    "HardSigmoid": elements.hard_sigmoid,
    "HardSwish": elements.hard_swish,
    "Identity": views.identity,
    "LeakyRelu": elements.leaky_relu,
    "MatMul": linear.matmul,
    "Max": elements.variadic("maximum"),
    "MaxPool": pooling.max_pool,
    "Mean": elements.variadic("add", mean=True),
    "Min": elements.variadic("minimum"),
    "Mul": elements.combined("multiply"),
    "Neg": elements.negative,
    "PRelu": elements.p_relu,
    "Pad": pooling.pad,
    "Relu": elements.relu,
    "Reshape": views.reshape,
    "Sigmoid": elements.function("sigmoid"),
    "Squeeze": views.squeeze,
    "Sub": elements.combined("subtract"),
    "Sum": elements.variadic("add"),
    "Swish": elements.swish,
    "Tanh": elements.function("tanh"),
    "Unsqueeze": views.unsqueeze,
}
