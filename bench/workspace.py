"""The virtual workspace: convolutions as matrix products, area and clock."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from microkernels.apps.lowered_convolution import lowered_convolution_job
from microkernels.common.fixed_point import Elements
from microkernels.nn.conv_shape import ConvShape
from microkernels.nn.jobs import conv_job
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.kernels import run_on
from sim_tb.harness.memory import MemoryBehaviour
from soc.generate.presets import preset

from .harness.experiment import CELLS, SIMULATION, Measurement, experiment
from .harness.parts import engine_areas, engine_clocks
from .harness.runs import exact

_LATENCY = 60

_FRACTION = 6

_SEED = 1

#: Layers with one slice of channels, so that both kernels do a whole layer at once.
LAYERS = {
    "8x16": ConvShape(width=16, height=8, channels=16, filters=32, padding=1),
    "14x14": ConvShape(width=14, height=14, channels=16, filters=64, padding=1),
    "28x14": ConvShape(width=28, height=14, channels=16, filters=32, padding=1),
    "stride_2": ConvShape(width=17, height=17, channels=16, filters=32, padding=1, stride=2),
}


def _values(generator: np.random.Generator, limit: int, *shape: int) -> Elements:
    return generator.integers(-limit, limit, shape).astype(np.int16)


def _data(shape: ConvShape) -> tuple[Elements, Elements]:
    """Image and filters of a layer."""
    generator = np.random.default_rng(_SEED)
    image = _values(generator, 200, shape.height, shape.width, shape.channels)
    filters = _values(generator, 100, shape.filters, shape.kernel, shape.kernel, shape.channels)
    return image, filters


@cache
def product_job(shape: ConvShape) -> KernelJob:
    """A layer on random values as a matrix product."""
    return lowered_convolution_job(
        *_data(shape), fraction=_FRACTION, stride=shape.stride, padding=shape.padding
    )


@cache
def _kinds(name: str) -> Mapping[str, KernelJob]:
    """A layer as a matrix product and as a convolution."""
    shape = LAYERS[name]
    bias = np.zeros(shape.filters, np.int16)
    convolution = conv_job(shape, *_data(shape), bias, fraction=_FRACTION)
    return {"product": product_job(shape), "convolution": convolution}


def _engines() -> dict[str, PeConfig]:
    """The preset without and with ``set.ws``."""
    plain = preset("pe")
    return {
        "plain": plain,
        "workspace": replace(plain, instructions=plain.instructions | {"set.ws"}),
    }


@experiment(presets=("pe",), tools=(*CELLS, *SIMULATION[1:]), minutes=10)
def workspace() -> Iterator[Measurement]:
    """Convolutions as matrix products from a workspace, against the convolution kernel.

    16 channels on one engine with a memory latency of 60 cycles: cycles of both kernels on Verilog,
    every output compared with the golden models', and words of both programs. Area of an engine
    without and with the workspace, and its clock in Nangate 45 nm, mapped for speed.
    """
    engines = _engines()
    memory = MemoryBehaviour(latency=_LATENCY)
    for name in LAYERS:
        cycles = {}
        for kind, job in _kinds(name).items():
            config = engines["workspace" if kind == "product" else "plain"]
            outcome = exact(run_on(job, config, memory=memory), job.name)
            cycles[kind] = outcome.result.elapsed_cycles
            yield Measurement(f"{name}_{kind}_cycles", cycles[kind], "cycles")
            yield Measurement(f"{name}_{kind}_words", len(job.program.words), "words")
        share = cycles["convolution"] / cycles["product"]
        yield Measurement(f"{name}_speed", share, "of the convolution's", 0.0, True)
    for name, config in engines.items():
        yield from engine_areas(name, config)
        yield from engine_clocks(name, config)
