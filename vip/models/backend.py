"""The machine as a backend of ONNX (:mod:`onnx.backend.base`), on the instruction set simulator.

A model is calibrated on the inputs of its run, as the interface has no data for that. Inputs that
must be constant on the machine, such as weights, are taken for constants of this run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto
from onnx.backend.base import Backend, BackendRep
from onnx.numpy_helper import to_array

from microkernels.common.fixed_point import as_elements, real_of
from microkernels.networks.jobs import NetworkLayout, network_job
from microkernels.networks.network import INPUT
from microkernels.networks.plan import plan_network
from microkernels.onnx_models.calibrate import Calibration
from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.model import MappedModel, integer_limits
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from microkernels.runtime.job import execute
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.engine import CosimError
from soc.generate.presets import design

_PRESET = "vault-logistic"


class VipRep(BackendRep):
    """A model that runs on the machine.

    Parameters:
        model: checked by :func:`microkernels.onnx_models.read.read_graph` when it runs.
    """

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        constants = {item.name for item in model.graph.initializer}
        self._names = [item.name for item in model.graph.input if item.name not in constants]

    def run(self, inputs: Sequence[NDArray[Any]], **kwargs: Any) -> tuple[NDArray[Any], ...]:
        """Outputs for these inputs, in the types of the model; every one equals the golden model's.

        Raises:
            VipError: nodes that are not supported, or inputs that do not fit.
        """
        del kwargs
        inputs = [to_array(item) if isinstance(item, TensorProto) else item for item in inputs]
        if not all(isinstance(array, np.ndarray | np.generic) for array in inputs):
            raise ModelError("inputs must be tensors of numbers")
        tensors = dict(zip(self._names, (np.asarray(array) for array in inputs), strict=False))
        if not all(array.dtype.kind in "biufV" for array in tensors.values()):
            raise ModelError("inputs must be tensors of numbers")
        model = self._mapped(tensors)
        engines = ChipEngines.of(design(_PRESET))
        maps = {port.layer: port.maps(tensors[port.tensor], model.batch) for port in model.inputs}
        plan = plan_network(model.network, batch=model.batch, engines=engines)
        done = Calibration(model, NetworkLayout(plan), maps)
        elements = {
            name: as_elements(values, done.formats[name].output, done.network.bits[name])
            for name, values in maps.items()
        }
        job = network_job(
            done.network,
            done.weights,
            elements.pop(INPUT),
            engines=engines,
            further={**elements, **done.constants},
        )
        run = execute(job, instructions=design(_PRESET).pe.instructions)
        if not run.match:
            raise CosimError("outputs differ from the golden model's")
        layers = job.of_layers(run.outputs)
        results = []
        for port, value in zip(model.outputs, self._model.graph.output, strict=True):
            values = real_of(layers[port.layer], done.formats[port.layer].output)
            flat = port.images(values).reshape(port.shape)
            kind = _type(value.type.tensor_type.elem_type)
            if port.integers:
                flat = np.clip(np.rint(flat), *integer_limits(kind.name))
            results.append(flat.astype(kind))
        return tuple(results)

    def _mapped(self, inputs: Mapping[str, NDArray[Any]]) -> MappedModel:
        """The model, with as few inputs as possible taken for constants."""
        tried: list[list[str]] = []
        for kinds in ("fV", "iu", "b"):
            names = [name for name in inputs if inputs[name].dtype.kind in kinds]
            tried += [names, *([name] for name in names if len(names) > 1)]
        refused: ModelError | None = None
        for model in filter(None, tried):
            frozen = {name: inputs[name] for name in inputs if name not in model}
            try:
                importer = map_graph(read_graph(self._model, frozen=frozen), OPERATORS)
            except ModelError as error:
                refused = refused or error
                continue
            if importer.model is not None:
                return importer.model
            refused = refused or importer.refused[0]
        raise refused or ModelError("the model has no input of numbers")


def _type(number: int) -> np.dtype[Any]:
    from onnx import helper

    return np.dtype(helper.tensor_dtype_to_np_dtype(number))


class VipBackend(Backend):
    """The machine: a vault with the logistic unit, on the instruction set simulator."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> VipRep:
        """A model that can run."""
        del device, kwargs
        return VipRep(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the host's processor, on which the simulator runs."""
        return device == "CPU"
