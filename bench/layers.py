"""Convolutions of the kinds that exporters write, and a CNN for MNIST, from ONNX on a vault."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from microkernels.data.models.layers import CONVOLUTIONS, mnist
from support.files import write_file
from vip.models.compile import compile_model
from vip.models.machine import model_machine
from vip.models.run import ModelRun, run_model

from .harness.experiment import Measurement, experiment
from .harness.options import NamesOption, chosen

if TYPE_CHECKING:
    from onnx import ModelProto

_PRESET = "vault"
#: Products of an engine per cycle.
_LANES = 4
#: Stem of the CNN's figures -> preset and batch.
_MNIST = {
    "mnist": ("vault", 1),
    "mnist_logistic": ("vault-logistic", 1),
    "mnist_batch_16": ("vault", 16),
}


def ran(model: "ModelProto", folder: Path, *, preset: str = _PRESET, batch: int = 1) -> ModelRun:
    """A model on the timing model, which refuses outputs that differ from the golden model's."""
    path = folder / "model.onnx"
    write_file(path, model.SerializeToString())
    shape = [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim[1:]]
    images = np.random.default_rng(5).normal(0, 1, (16, *shape)).astype(np.float32)
    compile_model(path, {"x": images}, folder / "compiled", preset=preset, batch=batch)
    return run_model(folder / "compiled", {"x": images[:batch]}, on="model")


@experiment(presets=("vault", "vault-logistic"), tools=("amaranth", "onnx"), minutes=5)
def layers(only: NamesOption = None) -> Iterator[Measurement]:
    """Convolutions from ONNX on a vault, as a share of its multipliers, and a CNN for MNIST.

    Cycles of all launches on the timing model, moves included; the products that the layer needs
    over the four lanes of the vault's engines; and the CNN's cycles per image, plain, with the
    logistic unit and of a batch, with those of its layers, moves before them included.

    Example: vip bench layers --only dilation_4 --only mnist
    """
    engines = model_machine(_PRESET).engines.pes
    names = chosen(only, [*CONVOLUTIONS, *_MNIST])
    for name in sorted(CONVOLUTIONS.keys() & names):
        shape = CONVOLUTIONS[name]
        with TemporaryDirectory() as scratch:
            cycles = ran(shape.model(), Path(scratch)).cycles
        yield Measurement(f"{name}_cycles", cycles, "cycles")
        use = 100 * shape.products / (_LANES * engines * cycles)
        yield Measurement(f"{name}_use", use, "%", more_is_better=True)
    for name in sorted(_MNIST.keys() & names):
        preset, batch = _MNIST[name]
        with TemporaryDirectory() as scratch:
            run = ran(mnist(), Path(scratch), preset=preset, batch=batch)
        yield Measurement(f"{name}_cycles", run.cycles / batch, "cycles")
        parts: Counter[str] = Counter()
        for launch, cycles in run.launches.items():
            parts[launch.split()[0].replace(".", "_")] += cycles
        for layer, cycles in parts.items():
            yield Measurement(f"{name}_{layer}_cycles", cycles / batch, "cycles")
