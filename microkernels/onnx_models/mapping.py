"""Mapping of a graph onto layers: its batch, and the nodes that are refused."""

from collections import Counter
from collections.abc import Mapping

from isa.support.errors import VipError

from .errors import MixedImagesError, ModelError
from .graph import Graph
from .importer import Importer, Operator
from .integers import refused_integers
from .values import Coverage, Refusal

__all__ = ["map_graph"]


def map_graph(graph: Graph, operators: Mapping[str, Operator]) -> Coverage:
    """Map a graph.

    Its batch is what the graph declares. Where it declares nothing, the first axis is a batch if
    all inputs have the same size above 1 along it, and if no node mixes the images: each operator
    knows that of itself. Else all tensors together are one image.

    Parameters:
        operators: that are supported, by type.

    Raises:
        ModelError: a model without inputs, or with an input that does not have the batch.
    """
    if not graph.inputs:
        raise ModelError("the model has no input")
    if graph.batch is not None:
        return _mapped(Importer(graph, batch=graph.batch), operators)
    shapes = [graph.shapes[name] for name in graph.inputs]
    # A vector is no batch of numbers.
    sizes = {shape[0] if len(shape) > 1 else 1 for shape in shapes}
    if len(sizes) > 1 or sizes == {1}:
        return _mapped(Importer(graph, batch=1), operators)
    try:
        return _mapped(Importer(graph, batch=sizes.pop()), operators)
    except MixedImagesError as error:
        return _mapped(Importer(graph, batch=1, mixed=str(error)), operators)


def _mapped(importer: Importer, operators: Mapping[str, Operator]) -> Coverage:
    graph = importer.graph
    counts: Counter[str] = Counter()
    mapped: Counter[str] = Counter()
    refused = []
    known = set(graph.constants) | set(importer.values) | {""}
    for node in graph.nodes:
        counts[node.op] += 1
        operator = operators.get(node.op)
        why = ""
        if operator is None:
            why = "the operator is not supported"
        elif unknown := importer.extra_outputs(node):
            why = f"its output {unknown} is not supported"
        elif unlike := refused_integers(importer, node):
            why = unlike
        elif known.issuperset(node.inputs):
            try:
                operator(importer, node)
                mapped[node.op] += 1
                known.update(name for name in node.outputs if name in importer.values)
            except MixedImagesError as error:
                if graph.batch is None:
                    raise
                why = str(error)
            except VipError as error:
                why = str(error)
        if why:
            begin = str(node.refused(""))
            refused.append(Refusal(op=node.op, node=node.name, why=why.removeprefix(begin)))
    model = None if refused else importer.finish()
    operators_found = {op: (count, mapped[op]) for op, count in sorted(counts.items())}
    return Coverage(operators=operators_found, refused=tuple(refused), model=model)
