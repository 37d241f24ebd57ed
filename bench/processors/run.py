"""The benchmark ``processors``."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import microkernels.networks.vgg16
from bench import fingerprints
from bench.measurement import BenchError, Measurement
from microkernels.bp.golden import iterate as golden
from microkernels.bp.problem import BpProblem
from microkernels.data.networks import photographs, usual_network_weights
from microkernels.networks.vgg16 import vgg16
from sim_tb.measure.full_hd import FULL_HD

from . import belief, vgg

__all__ = ["made_of_processors", "processors"]

_RUNS = 7
#: Pixels of the problem whose messages are compared with the golden model's.
_COMPARED = (97, 61)
_FRACTION = 8


def _problem(width: int, height: int) -> BpProblem:
    """Random costs: no value of a message changes the time."""
    random = np.random.default_rng(1)
    costs = random.integers(0, 2000, (height, width, belief.LABELS))
    return BpProblem(costs, random.integers(0, 2000, (belief.LABELS,) * 2), 16)


def processors() -> Iterator[Measurement]:
    """The same work on the processor of this machine, on one core and on all that it may use: an
    iteration of BP-M on full HD, 16 labels of 16 bits, a program with AVX2; and VGG-16 in float32,
    one image, by onnxruntime. Processor seconds, so that other work hardly changes them; with all
    cores, of the thread that worked longest (BP-M), or of all threads over their number (VGG-16,
    so at least that long). Messages of BP-M are compared with the golden model's."""
    cores = len(os.sched_getaffinity(0))
    small = _problem(*_COMPARED)
    messages = small.no_messages()
    for threads in (1, cores):
        belief.iterate(small, messages, threads=threads)
    if not np.array_equal(messages, golden(small, 2)):
        raise BenchError("BP-M with AVX2: messages differ from the golden model's")
    yield Measurement("cores", cores, "cores", None)
    problem = _problem(*FULL_HD)
    network = vgg16()
    model = vgg.onnx_model(network, usual_network_weights(network))
    image = (photographs(network.input) / (1 << _FRACTION)).astype(np.float32)
    image = np.ascontiguousarray(image.transpose(0, 3, 1, 2))
    for name, threads in (("one_core", 1), ("all_cores", cores)):
        seconds = belief.seconds_an_iteration(problem, threads=threads, runs=_RUNS)
        yield Measurement(f"bp_{name}_ms", 1e3 * seconds, "ms an iteration", None)
        seconds = vgg.seconds_an_image(model, image, threads=threads, runs=_RUNS)
        yield Measurement(f"vgg16_{name}_ms", 1e3 * seconds, "ms an image", None)


def made_of_processors() -> dict[str, str]:
    """The programs."""
    return {
        "BP-M with AVX2": fingerprints.texts(Path(belief.__file__).with_name("bp_avx2.cpp")),
        "how it is compiled and run": fingerprints.code(belief),
        "VGG-16": fingerprints.code(vgg, microkernels.networks.vgg16),
    }
