"""A convolution of bytes against one of 16-bit elements, in Verilog: 3 x 3, 64 to 64 channels."""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from microkernels.nn.conv_shape import ConvShape
from microkernels.nn.jobs import conv_job
from microkernels.runtime.job import KernelJob
from soc.generate.presets import preset, tile_preset

from .harness.experiment import SIMULATION, Measurement, experiment
from .harness.parts import engine_areas
from .harness.runs import launch_runs, together

#: Pixels across and down of the layer.
SIDE = 14

_CHANNELS = 64

_FRACTION, _NARROW = 4, 6

_SEED = 1


def layer_jobs(side: int, sharers: int) -> dict[str, KernelJob]:
    """The layer on random bytes, with one pixel of zero padding.

    Parameters:
        side: pixels across and down. sharers: engines.

    Returns:
        ``elements``, in 16 bits; ``sums``, from bytes to 16 bits; ``bytes``, from bytes to bytes.
    """
    shape = ConvShape(
        width=side, height=side, channels=_CHANNELS, filters=_CHANNELS, kernel=3, padding=1
    )
    random = np.random.default_rng(_SEED)
    image = random.integers(-128, 128, (side, side, _CHANNELS))
    weights = random.integers(-128, 128, (_CHANNELS, 3, 3, _CHANNELS))
    bias = random.integers(-1000, 1000, _CHANNELS)
    job = partial(conv_job, shape, image, weights, bias, fraction=_FRACTION, sharers=sharers)
    return {
        "elements": job(),
        "sums": job(pairs=True),
        "bytes": job(pairs=True, narrow=_NARROW, depth=_CHANNELS // 2),
    }


def _measure(side: int, sharers: int) -> Mapping[str, int]:
    """Cycles of each of :func:`layer_jobs` on the Verilog of an engine with its own memory, or of a
    vault."""
    machine = tile_preset("vault-int8")
    config = machine.pe if sharers == 1 else machine
    return {
        name: together(launch_runs(job, config, job.name, on="rtl").values()).cycles
        for name, job in layer_jobs(side, sharers).items()
    }


#: Engines that share the layer: one with its own memory, or those of a vault.
_SHARERS = (1, 4)


@experiment(presets=("pe", "pe-int8", "vault-int8"), tools=(*SIMULATION, "pyosys"), minutes=8)
def byte_convolution() -> Iterator[Measurement]:
    """A convolution of bytes against one of 16-bit elements, in Verilog.

    3 x 3, 64 to 64 channels, 14 x 14 pixels, in 16 bits, from bytes to sums of 16 bits, and from
    bytes to bytes: cycles on one engine and on the four of a vault, and their ratio to those in
    16 bits. Every output is compared with the golden model's. Also the area of an engine
    without and with the instruction for it.
    """
    for sharers in _SHARERS:
        cycles_by_kind = _measure(SIDE, sharers)
        for name, cycles in cycles_by_kind.items():
            yield Measurement(f"{sharers}_engines_{name}_cycles", cycles, "cycles")
            share = cycles / cycles_by_kind["elements"]
            yield Measurement(f"{sharers}_engines_{name}_ratio", share, "of the cycles in 16 bits")
    for name, machine in (("plain", "pe"), ("pairs", "pe-int8")):
        yield from engine_areas(name, preset(machine))
