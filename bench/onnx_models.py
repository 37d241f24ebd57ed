"""Models in ONNX files: coverage, cycles, and the error beside onnxruntime; convolutions of the
kinds that exporters write, and a CNN for MNIST."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from microkernels.data.models.collection import inputs_of, light_names, make
from microkernels.data.models.layers import CONVOLUTIONS, mnist
from microkernels.data.models.small import SMALL
from sim_tb.cosim.machine import Place
from soc.generate.presets import design
from support.files import write_file
from vip.models.check import check_model
from vip.models.compile import compile_model
from vip.models.evaluate import evaluate_model
from vip.models.run import ModelRun, run_model

from .harness.experiment import SIMULATION, BenchError, Measurement, NamesOption, chosen, experiment

if TYPE_CHECKING:
    from onnx import ModelProto

_VAULT, _CHIP = "vault", "thesis"
#: Suffix of a small model's figures -> preset of the vault that it is compiled for.
_WIDTHS = {"": _VAULT, "_int8": "vault-int8"}
#: Models that fit the memory on the chip of ``edge-int8``.
_ON_CHIP = frozenset({"resnet8", "dscnn", "mobilenet_v1", "autoencoder"})

_SMALL = (*SMALL, "encoder")

#: Seed of the inputs of the error, which calibration has not seen.
_SEED = 9


def _checked(name: str, model: Path, preset: str) -> Iterator[Measurement]:
    """The seconds of the check for a vault, whose memory may be too small, and the predicted time
    on a preset."""
    start = time.process_time()
    check_model(model, preset=_VAULT)
    yield Measurement(f"{name}_check_s", time.process_time() - start, "s", tolerance=None)
    checked = check_model(model, preset=preset)
    if not checked.supported:
        raise BenchError(f"{name}: not supported: {checked.refused or checked.problem}")
    yield Measurement(f"{name}_predicted_ms", checked.ms, "ms")


def _small(name: str, folder: Path) -> Iterator[Measurement]:
    """A small model, in 16 bits and in bytes, and in bytes with all data on the chip."""
    model = make(name)
    path = folder / f"{name}.onnx"
    write_file(path, model.SerializeToString())
    yield from _checked(name, path, _VAULT)
    for suffix, preset in _WIDTHS.items():
        compiled = path.with_name(name + suffix)
        start = time.process_time()
        compile_model(path, inputs_of(name, model), compiled, preset=preset)
        seconds = time.process_time() - start
        yield Measurement(f"{name}{suffix}_compile_s", seconds, "s", tolerance=None)
        yield from _accuracy(name, suffix, compiled)
        yield from _run(name, suffix, compiled, "model")
    if name in _ON_CHIP:
        compiled = path.with_name(f"{name}_on_chip")
        compile_model(path, inputs_of(name, model), compiled, preset="edge-int8")
        # The timing model has no memory on the chip.
        yield from _run(name, "_on_chip", compiled, "rtl")


def _accuracy(name: str, suffix: str, compiled: Path) -> Iterator[Measurement]:
    """The error of a compiled model; ``suffix`` is that of the figures."""
    evaluated = evaluate_model(compiled, inputs_of(name, make(name), seed=_SEED))
    name += suffix
    yield Measurement(f"{name}_error", 100 * evaluated.error, "%", tolerance=0.01)
    yield Measurement(f"{name}_agreement", 100 * evaluated.agreement, "%", more_is_better=True)
    yield Measurement(f"{name}_saturated", sum(evaluated.saturated.values()), "")


def _run(name: str, suffix: str, compiled: Path, machine: Place) -> Iterator[Measurement]:
    """Cycles and costs of one input; ``suffix`` is that of the figures."""
    one = {key: values[:1] for key, values in inputs_of(name, make(name), seed=_SEED).items()}
    # Both refuse outputs that differ from the golden model's.
    run_model(compiled, one, on="iss")
    ran = run_model(compiled, one, on=machine)
    name += suffix
    yield Measurement(f"{name}_cycles", ran.cycles, "cycles")
    yield Measurement(f"{name}_loading_cycles", ran.loading, "cycles")
    yield Measurement(f"{name}_launches", len(ran.launches), "")
    yield from _cost(name, ran)


def _cost(name: str, ran: ModelRun) -> Iterator[Measurement]:
    """Bytes of DRAM, microjoules by part, and all of these."""
    for kind, value in ran.costs.items():
        yield Measurement(f"{name}_{kind}", value, "uJ" if kind.endswith("_uj") else "bytes", 0.02)
    energy = sum(value for kind, value in ran.costs.items() if kind.endswith("_uj"))
    yield Measurement(f"{name}_uj", energy, "uJ", 0.02)


@experiment(
    presets=("vault", "vault-int8", "edge-int8", "thesis"),
    tools=(*SIMULATION, "onnx", "onnxruntime"),
    minutes=15,
)
def onnx() -> Iterator[Measurement]:
    """Models in ONNX files: seconds of check and compile, the error beside onnxruntime, cycles.

    The architectures of MLPerf Tiny, MobileNet-v2 and an encoder, with seeded weights, on a vault,
    in 16 bits and in bytes: seconds of a processor for ``vip nn check`` and ``compile``; over 64
    inputs, vectors 512, that calibration has not seen, the error beside onnxruntime, of the
    outputs' magnitude, the share of the inputs with the same highest output, and saturated values;
    cycles on the timing model, with every output that of the golden model and of the simulator,
    and those in which the launches' programs are loaded; bytes of DRAM and microjoules
    (:mod:`vip.energy`). Those of MLPerf Tiny also on a chip with all data in a memory beside its
    vault, in Verilog. And the light graphs of the ``onnx`` package: the check, with the predicted
    time on the thesis's chip, and for ResNet-50 the compilation for a vault.
    """
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in _SMALL:
            yield from _small(name, folder)
        for name in light_names():
            model = make(name)
            path = folder / f"{name}.onnx"
            write_file(path, model.SerializeToString())
            yield from _checked(name, path, _CHIP)
            if name == "resnet50":
                start = time.process_time()
                compile_model(path, inputs_of(name, model), folder / name)
                seconds = time.process_time() - start
                yield Measurement(f"{name}_compile_s", seconds, "s", tolerance=None)
            path.unlink()


#: Products of an engine per cycle.
_LANES = 4
#: Stem of the CNN's figures -> preset and batch.
_MNIST = {
    "mnist": ("vault", 1),
    "mnist_logistic": ("vault-logistic", 1),
    "mnist_batch_16": ("vault", 16),
}


def _on_model(
    model: "ModelProto", folder: Path, *, preset: str = _VAULT, batch: int = 1
) -> ModelRun:
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
    engines = design(_VAULT).slots
    names = chosen(only, [*CONVOLUTIONS, *_MNIST])
    for name in sorted(CONVOLUTIONS.keys() & names):
        shape = CONVOLUTIONS[name]
        with TemporaryDirectory() as scratch:
            cycles = _on_model(shape.model(), Path(scratch)).cycles
        yield Measurement(f"{name}_cycles", cycles, "cycles")
        use = 100 * shape.products / (_LANES * engines * cycles)
        yield Measurement(f"{name}_use", use, "%", more_is_better=True)
    for name in sorted(_MNIST.keys() & names):
        preset, batch = _MNIST[name]
        with TemporaryDirectory() as scratch:
            run = _on_model(mnist(), Path(scratch), preset=preset, batch=batch)
        yield Measurement(f"{name}_cycles", run.cycles / batch, "cycles")
        parts: Counter[str] = Counter()
        for launch, cycles in run.launches.items():
            parts[launch.split()[0].replace(".", "_")] += cycles
        for layer, cycles in parts.items():
            yield Measurement(f"{name}_{layer}_cycles", cycles / batch, "cycles")
