"""The same work on the processor of this machine."""

import ctypes
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microkernels.bp.golden import iterate as golden
from microkernels.bp.problem import BpProblem, Messages
from microkernels.data.models.graphs import GraphWriter
from microkernels.data.networks import photographs, usual_network_weights
from microkernels.networks.families import WeightLayer
from microkernels.networks.layer import Layer
from microkernels.networks.network import Conv, Dense, Network, Pool
from microkernels.networks.parameters import Weights
from microkernels.networks.vgg16 import vgg16
from support.extras import need
from support.native import compile_library

from .belief import FULL_HD
from .harness.experiment import BenchError, Measurement, experiment

#: Labels of the program, of 16 bits.
LABELS = 16

_SOURCE = Path(__file__).with_name("bp_avx2.cpp")

_FLAGS = ("-O3", "-std=c++17", "-mavx2", "-pthread")


def _library() -> ctypes.CDLL:
    flags = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or (flags.is_file() and " avx2 " not in flags.read_text()):
        raise BenchError("BP-M on a processor needs one with AVX2")
    return compile_library("bp_avx2", _SOURCE, _FLAGS)


def iterate_bp(problem: BpProblem, messages: Messages, *, threads: int = 1) -> float:
    """One iteration of BP-M on ``messages``, in place; bit for bit as
    :func:`microkernels.bp.golden.iterate`.

    Parameters:
        problem: of 16 labels and 16 bits, without edge weights. messages: contiguous.
        threads: at least 1.

    Returns:
        Processor seconds: per sweep, those of the slowest thread.

    Raises:
        BenchError: another problem, or a processor without AVX2.
        support.native.CompilerError: there is no C++ compiler.
    """
    if problem.labels != LABELS or problem.bits != 16 or problem.weights is not None:
        raise BenchError(f"the program is for {LABELS} labels of 16 bits, without edge weights")
    if not messages.flags.c_contiguous or messages.dtype != np.dtype("<i2"):
        raise BenchError("messages must be contiguous, of 16 bits")
    data = np.ascontiguousarray(problem.data_costs)
    smoothness = np.ascontiguousarray(problem.smoothness)
    run = _library().vip_bp_iterate
    run.restype = ctypes.c_double
    seconds: float = run(
        *(ctypes.c_void_p(array.ctypes.data) for array in (data, messages, smoothness)),
        ctypes.c_long(problem.width),
        ctypes.c_long(problem.height),
        ctypes.c_int(threads),
    )
    return seconds


def seconds_an_iteration(problem: BpProblem, *, threads: int, runs: int) -> float:
    """Seconds per iteration: per sweep, those of its slowest thread; the minimum of ``runs``."""
    messages = problem.no_messages()
    # The first run allocates the memory's pages.
    iterate_bp(problem, messages, threads=threads)
    return min(iterate_bp(problem, messages, threads=threads) for _ in range(runs))


if TYPE_CHECKING:
    from onnx import ModelProto

#: Kind of layer -> its operator, and this one's attributes.
_OPERATORS: Mapping[type[Layer], tuple[str, Callable[[Any], Mapping[str, Any]]]] = {
    Conv: ("Conv", lambda layer: {"pads": list(layer.sides)}),
    Pool: ("MaxPool", lambda layer: {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Dense: ("Gemm", lambda layer: {"transB": 1}),
}
#: Fraction bits of biases.
_BIAS_FRACTION = 8


def _floats(values: NDArray[np.integer[Any]], fraction: int) -> NDArray[np.float32]:
    return (values / (1 << fraction)).astype(np.float32)


def onnx_model(network: Network, weights: Mapping[str, Weights]) -> "ModelProto":
    """``network`` in float32, with the values that ``weights`` stand for.

    Its input ``x`` is 1 x channels x height x width; its output 1 x outputs, in the order of the
    network's activations.

    Parameters:
        network: convolutions, pooling and fully connected layers, one after the other.

    Raises:
        BenchError: another layer. MissingExtraError: onnx is not installed.
    """
    writer, at, flat = GraphWriter(seed=0), "x", False
    for layer in network.layers:
        name, parts = layer.name, list[str]()
        if type(layer) not in _OPERATORS:
            raise BenchError(f"{name}: no such layer on a processor")
        operator, attributes = _OPERATORS[type(layer)]
        if isinstance(layer, WeightLayer):
            # Filters x rows x columns x channels, or outputs x inputs.
            kernel = np.moveaxis(_floats(weights[name].weights, layer.fraction), -1, 1)
            bias = _floats(weights[name].bias, _BIAS_FRACTION)
            parts = [writer.constant(f"{name}.w", kernel), writer.constant(f"{name}.b", bias)]
        if operator == "Gemm" and not flat:
            # Activations have their channels last.
            last = writer.node("Transpose", [at], "last", perm=[0, 2, 3, 1])
            at, flat = writer.node("Flatten", [last], "flat"), True
        at = writer.node(operator, [at, *parts], name, **attributes(layer))
        if isinstance(layer, WeightLayer) and layer.relu:
            at = writer.relu(at)
    size = network.input
    return writer.model((size.channels, size.height, size.width), at)


def session(model: "ModelProto", threads: int) -> Any:
    """onnxruntime's session of ``model`` on ``threads`` processors."""
    need("onnxruntime", "networks on a processor")
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Waiting threads would count as work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def seconds_an_image(
    model: "ModelProto", image: NDArray[np.float32], *, threads: int, runs: int
) -> float:
    """Processor seconds per image, over ``threads``; the minimum of ``runs``."""
    running = session(model, threads)
    running.run(None, {"x": image})
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        running.run(None, {"x": image})
        seconds.append(time.process_time() - start)
    return min(seconds) / threads


_RUNS = 7

#: Pixels of the problem whose messages are compared with the golden model's.
_COMPARED = (97, 61)

_FRACTION = 8


def _problem(width: int, height: int) -> BpProblem:
    """Random costs: no value of a message changes the time."""
    random = np.random.default_rng(1)
    costs = random.integers(0, 2000, (height, width, LABELS))
    return BpProblem(costs, random.integers(0, 2000, (LABELS,) * 2), 16)


@experiment(tools=("onnxruntime",), minutes=3)
def processors() -> Iterator[Measurement]:
    """The same work on the processor of this machine, on one core and on all that it may use.

    An iteration of BP-M on full HD, 16 labels of 16 bits, a program with AVX2; and VGG-16 in
    float32, one image, by onnxruntime. Processor seconds, so that other work hardly changes them;
    with all cores, of the thread that worked longest (BP-M), or of all threads over their number
    (VGG-16, so at least that long). Messages of BP-M are compared with the golden model's.
    """
    cores = len(os.sched_getaffinity(0))
    small = _problem(*_COMPARED)
    messages = small.no_messages()
    for threads in (1, cores):
        iterate_bp(small, messages, threads=threads)
    if not np.array_equal(messages, golden(small, 2)):
        raise BenchError("BP-M with AVX2: messages differ from the golden model's")
    yield Measurement("cores", cores, "cores", None)
    problem = _problem(*FULL_HD)
    network = vgg16()
    model = onnx_model(network, usual_network_weights(network))
    image = (photographs(network.input) / (1 << _FRACTION)).astype(np.float32)
    image = np.ascontiguousarray(image.transpose(0, 3, 1, 2))
    for name, threads in (("one_core", 1), ("all_cores", cores)):
        seconds = seconds_an_iteration(problem, threads=threads, runs=_RUNS)
        yield Measurement(f"bp_{name}_ms", 1e3 * seconds, "ms an iteration", None)
        seconds = seconds_an_image(model, image, threads=threads, runs=_RUNS)
        yield Measurement(f"vgg16_{name}_ms", 1e3 * seconds, "ms an image", None)
