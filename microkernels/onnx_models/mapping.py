"""Mapping of a graph onto layers, node by node, and the nodes that are not supported.

:class:`microkernels.onnx_models.importer.Importer` has the state. Each function of
:mod:`microkernels.onnx_models.operators` maps one
:class:`microkernels.onnx_models.node.GraphNode`.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

import numpy as np

from microkernels.networks.network import INPUT, Layer, Network
from support.errors import VipError

from .errors import MixedImagesError, ModelError, RefusedError
from .importer import Importer, Operator
from .model import MappedModel, Value
from .node import GraphNode
from .read import OnnxGraph

ValueT = TypeVar("ValueT")


def map_graph(graph: OnnxGraph, operators: Mapping[str, Operator]) -> Importer:
    """Map a graph: its importer, which has the mapped model, or refused nodes.

    The batch is that declared by the graph. If it declares none, the first axis is a batch if all
    inputs have the same size above 1 along it and no node mixes images, which each operator checks.
    Otherwise all tensors together are one image.

    Parameters:
        operators: the supported ones, by type.

    Raises:
        ModelError: the model has no inputs, or an input without the batch.
    """
    if not graph.inputs:
        raise ModelError("the model has no input")
    if graph.batch is not None:
        return _mapped(Importer(graph, operators, batch=graph.batch))
    shapes = [graph.shapes[name] for name in graph.inputs]
    # A vector is not a batch of numbers.
    sizes = {shape[0] if len(shape) > 1 else 1 for shape in shapes}
    if len(sizes) > 1 or sizes == {1}:
        return _mapped(Importer(graph, operators, batch=1))
    try:
        return _mapped(Importer(graph, operators, batch=sizes.pop()))
    except MixedImagesError as error:
        return _mapped(Importer(graph, operators, batch=1, mixed=str(error)))


def _mapped(importer: Importer) -> Importer:
    graph = importer.graph
    available = set(graph.constants) | set(importer.values) | {""}
    for proto in graph.nodes:
        node = GraphNode(importer, proto)
        try:
            operator = _operator(node)
            if not available.issuperset(node.inputs):
                continue
            if (value := operator.maps(node)) is not None:
                node.name_output(node.output, value)
            importer.mapped[node.op] += 1
            available.update(name for name in node.outputs if name in importer.values)
        except VipError as error:
            if isinstance(error, MixedImagesError) and graph.batch is None:
                raise
            refused = error if isinstance(error, RefusedError) else node.refused(str(error))
            importer.refused.append(refused)
    if not importer.refused:
        importer.model = _model(importer)
    return importer


def _operator(node: GraphNode) -> Operator:
    """The operator of a node.

    Raises:
        RefusedError: there is none, or it does not support the node's outputs or integers.
    """
    importer = node.importer
    operator = importer.operators.get(node.op)
    if operator is None:
        raise node.refused("the operator is not supported")
    further = next(filter(importer.used, node.outputs[1:]), "")
    if further and not operator.several:
        raise node.refused(f"its output {further} is not supported")
    kinds = importer.graph.integers
    integers = [name for name in node.inputs if name in importer.values and name in kinds]
    if integers and not operator.integers:
        raise node.refused(
            f"its input {integers[0]} has integers; convert them to real numbers by Cast before"
        )
    return operator


def _model(importer: Importer) -> MappedModel:
    """The mapped model.

    Raises:
        ModelError: no layer computes an output.
    """
    from onnx import helper

    outputs = []
    for name in importer.graph.outputs:
        node = GraphNode(importer, helper.make_node("Constant", [], [name], name))
        value = importer.values[name] if name in importer.values else _constant(node)
        if importer.is_input(value):
            value = node.affine(value, 1.0, 0.0)
        importer.values[name] = value
        outputs.append(importer.port(name, value))
    layers = _needed(importer, {port.layer for port in (*outputs, *importer.inputs)})

    def of_layers(values: Mapping[str, ValueT]) -> dict[str, ValueT]:
        return {name: value for name, value in values.items() if name in layers}

    return MappedModel(
        network=Network(input=importer.inputs[0].size, layers=tuple(layers.values())),
        batch=importer.batch,
        real=of_layers(importer.real),
        bounds=of_layers(importer.bounds),
        affine=of_layers(importer.affine),
        curves=of_layers(importer.curves),
        epsilons=of_layers(importer.epsilons),
        constants=of_layers(importer.constants),
        inputs=tuple(importer.inputs),
        outputs=tuple(outputs),
        origins=importer.origins,
        norms=of_layers(importer.norms),
        integers=frozenset(_integer_layers(importer) & {INPUT, *layers}),
        rounded=frozenset(importer.rounded & set(layers)),
        steps=of_layers(importer.steps),
        exact=_exact_layers(importer),
        inner=_inner(importer, layers),
        approximation=importer.approximation,
    )


def _constant(node: GraphNode) -> Value:
    """A constant that is an output."""
    values = node.importer.folded[node.output]
    if values.dtype.kind in "OSU":
        raise node.refused("an output must be of numbers, not of text")
    real = values.astype(np.float64)
    if not np.isfinite(real).all():
        raise node.refused("an output that is constant must be finite")
    return node.constant_of(real)


def _needed(importer: Importer, names: set[str]) -> dict[str, Layer]:
    """These layers and all layers that they depend on."""
    needed = set(names)
    for layer in reversed(importer.layers.values()):
        if layer.name in needed:
            needed.update(layer.sources)
    return {name: layer for name, layer in importer.layers.items() if name in needed}


def _inner(importer: Importer, layers: Collection[str]) -> tuple[Value, ...]:
    """Tensors of real numbers that are outputs of these layers: the last one of each, since earlier
    ones may lack nodes merged into the layer."""
    graph, values = importer.graph, importer.values
    last = {
        values[name].layer: name
        for name in graph.makers
        if name in values and name not in graph.integers and values[name].layer in layers
    }
    return tuple(importer.port(name, values[name]) for name in last.values())


def _integer_layers(importer: Importer) -> set[str]:
    """Layers and inputs that have only integers."""
    integers: set[str] = set(importer.whole)
    reals: set[str] = set()
    for name, value in importer.values.items():
        is_integer = name in importer.graph.integers and name not in importer.scaled
        (integers if is_integer else reals).add(value.layer)
    return integers - (reals - importer.whole)


def _exact_layers(importer: Importer) -> dict[str, tuple[str, str]]:
    """Layers and inputs whose integers affect integer outputs -> the tensor, and the type of its
    integers."""
    kinds = importer.graph.integers
    exact = {name for name in importer.graph.outputs if name in kinds}
    for node in reversed(importer.graph.nodes):
        if exact.intersection(node.output):
            names = [name for name in node.input if name in kinds and name in importer.values]
            exact.update(name for name in names if name not in importer.scaled)
    return {importer.values[name].layer: (name, kinds[name]) for name in sorted(exact)}
