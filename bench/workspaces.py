"""Benchmark of the virtual workspace: convolutions by the product of matrices, area and clock."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import synth.physical.corners
import synth.timing.sta
from microkernels.apps.lowered_convolution import lowered_convolution_job
from microkernels.common.fixed_point import Elements
from microkernels.nn.conv_shape import ConvShape
from microkernels.nn.jobs import conv_job
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.harness.memory import MemoryBehaviour
from soc.generate.presets import preset
from synth.physical.area import synthesise
from synth.physical.targets import find_target
from vip.synthesis.clocks import timing

from . import fingerprints
from .measurement import Measurement

__all__ = ["made_of_workspace", "workspace"]

_LATENCY = 60
_FRACTION = 6
_SEED = 1
_CELLS = "nangate45"
_AREAS = {"generic": ("logic_ge", 1000.0, "kge"), "xc7": ("luts", 1.0, "luts")}
#: Layers of one slice of channels, so that both kernels do all of it at once.
_LAYERS = {
    "8x16": ConvShape(width=16, height=8, channels=16, filters=32, padding=1),
    "14x14": ConvShape(width=14, height=14, channels=16, filters=64, padding=1),
    "28x14": ConvShape(width=28, height=14, channels=16, filters=32, padding=1),
    "stride_2": ConvShape(width=17, height=17, channels=16, filters=32, padding=1, stride=2),
}


@dataclass(frozen=True)
class _Pair:
    """A layer by the product of matrices, and by the kernel for convolutions."""

    product: KernelJob
    convolution: KernelJob


def _values(generator: np.random.Generator, limit: int, *shape: int) -> Elements:
    return generator.integers(-limit, limit, shape).astype(np.int16)


@cache
def _pair(name: str) -> _Pair:
    shape = _LAYERS[name]
    generator = np.random.default_rng(_SEED)
    image = _values(generator, 200, shape.height, shape.width, shape.channels)
    filters = _values(generator, 100, shape.filters, shape.kernel, shape.kernel, shape.channels)
    bias = np.zeros(shape.filters, np.int16)
    product = lowered_convolution_job(
        image, filters, fraction=_FRACTION, stride=shape.stride, padding=shape.padding
    )
    return _Pair(product, conv_job(shape, image, filters, bias, fraction=_FRACTION))


def _engines() -> dict[str, PeConfig]:
    """The preset without and with the instruction."""
    plain = preset("pe")
    return {
        "plain": plain,
        "workspace": replace(plain, instructions=plain.instructions | {"set.ws"}),
    }


def workspace() -> Iterator[Measurement]:
    """Convolutions of 16 channels on one engine beside a memory with a latency of 60 cycles: cycles
    of the product of matrices from a workspace and of the kernel for convolutions, in Verilog,
    every output compared with the golden models'; and the words of both programs. Area of an engine
    without and with the workspace, and its clock in Nangate 45 nm, mapped for speed."""
    engines = _engines()
    memory = MemoryBehaviour(latency=_LATENCY)
    for name in _LAYERS:
        pair = _pair(name)
        cycles = {}
        for kind, job in vars(pair).items():
            outcome = run_on(
                job, engines["workspace" if kind == "product" else "plain"], memory=memory
            )
            if not outcome.match:
                raise CosimError(f"{job.name}: the outputs differ from the golden model's")
            cycles[kind] = outcome.result.cycles
            yield Measurement(f"{name}_{kind}_cycles", outcome.result.cycles, "cycles")
            yield Measurement(f"{name}_{kind}_words", len(job.program.words), "words")
        share = cycles["convolution"] / cycles["product"]
        yield Measurement(f"{name}_speed", share, "of the convolution's", 0.0, True)
    for name, config in engines.items():
        for target, (measure, scale, unit) in _AREAS.items():
            value = synthesise(config, target).total.values[measure] / scale
            yield Measurement(f"{name}_{unit}", value, unit, 0.01)
        (corner,) = timing(config, _CELLS).corners
        for wires in ("pins", "wires"):
            path = getattr(corner, wires)
            yield Measurement(f"{name}_mhz_{wires}", path.fmax_mhz, "MHz", 0.02, True)


def made_of_workspace() -> dict[str, str]:
    """The engines, the programs, their data, and the analysis of the clock."""
    engines = _engines()
    pairs = [_pair(name) for name in _LAYERS]
    jobs = [job for pair in pairs for job in vars(pair).values()]
    found = {
        **fingerprints.engine("an engine", engines["plain"]),
        **fingerprints.engine("an engine with a workspace", engines["workspace"]),
        "programs": fingerprints.programs(job.program for job in jobs),
        "data": fingerprints.data(*(data for job in jobs for _, data in job.segments())),
        "timing analysis": fingerprints.code(synth.timing.sta, synth.physical.corners),
    }
    for name, config in engines.items():
        found |= fingerprints.mapped(f"the {name} engine", config)
    for target in (*_AREAS, _CELLS):
        found[f"mapping for {target}"] = fingerprints.mapping(find_target(target))
    return found
