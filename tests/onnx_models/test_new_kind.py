"""A kind of layers that the project does not have: a class, its place in KINDS, an operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from onnx import helper

from microkernels.common.feature_map import FeatureMap
from microkernels.common.fixed_point import Reals, as_elements, real_of
from microkernels.networks import network
from microkernels.networks.families import PixelLayer
from microkernels.networks.jobs import network_job
from microkernels.networks.layer import INPUT, ChipWork, LayerPlan
from microkernels.networks.maps import MapSize
from microkernels.networks.parameters import RealParameters
from microkernels.nn.element import ElementLayout
from microkernels.nn.element_shape import ElementOperation, element
from microkernels.onnx_models.importer import Operator
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.model import Value, real_layers
from microkernels.onnx_models.node import GraphNode
from microkernels.onnx_models.operators.arrange import straight
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from microkernels.runtime.job import execute
from tests.onnx_models.graphs import model
from tests.onnx_models.test_mapping import SEVERAL, calibrated
from vip.models.folder import network_from_json, network_to_json


@dataclass(frozen=True, kw_only=True)
class Doubled(PixelLayer):
    """Each element plus itself."""

    layouts = ElementLayout
    golden = staticmethod(lambda shape, image: element(shape, image, image))

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        return plan.timed(plan.tile.elements, work)

    def shape(self, size: MapSize) -> ElementOperation:
        return ElementOperation(function="add")

    def layout(
        self, tile: Any, sources: Sequence[FeatureMap], target: FeatureMap, **place: Any
    ) -> Any:
        return super().layout(tile, [*sources, *sources], target, **place)

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        return sources[0] + sources[0]


def doubled(node: GraphNode) -> Value:
    """The operator, which stands in the place of another one."""
    return node.apply(Doubled, straight(node, node.value()))


def test_a_kind_in_one_file_is_planned_calibrated_run_and_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of all other files, the list of kinds and the table of operators alone name it."""
    monkeypatch.setattr(network, "KINDS", (*network.KINDS, Doubled))
    random = np.random.default_rng(3)
    node = helper.make_node
    graph = model(
        [
            node("Conv", ["x", "w"], ["conv"], name="conv", pads=[1, 1, 1, 1]),
            node("Abs", ["conv"], ["doubled"], name="doubled"),
            node("MaxPool", ["doubled"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
            node("Flatten", ["pooled"], ["flat"]),
            node("Gemm", ["flat", "g"], ["y"]),
        ],
        (2, 3, 8, 8),
        {"w": random.normal(0, 0.3, (20, 3, 3, 3)), "g": random.normal(0, 0.1, (20 * 16, 9))},
    )
    coverage = map_graph(read_graph(graph), {**OPERATORS, "Abs": Operator(doubled)})
    assert coverage.model is not None, coverage.refused
    x = random.normal(0, 1, (2, 3, 8, 8))
    result = calibrated(coverage.model, x, SEVERAL)
    (port,), (end,) = coverage.model.inputs, coverage.model.outputs
    images = port.maps(x, 2)
    elements = as_elements(images, result.formats[port.layer].output)
    job = network_job(result.network, result.weights, elements, engines=SEVERAL)
    run = execute(job)
    assert run.match
    maps = job.of_layers(run.outputs)
    assert (maps["doubled"] == np.clip(2 * maps["conv"].astype(int), -32768, 32767)).all()
    real = {layer.name: values for layer, values in real_layers(coverage.model, {INPUT: images})}[
        end.layer
    ]
    values = real_of(maps[end.layer], result.formats[end.layer].output)
    assert np.abs(values - real).max() < 2e-3 * np.abs(real).max()
    assert network_from_json(network_to_json(result.network)) == result.network
