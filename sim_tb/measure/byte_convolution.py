"""A convolution of bytes beside that of 16-bit elements, in Verilog: 3 x 3, 64 to 64 channels."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from microkernels.nn.conv_shape import ByteConv, ConvShape
from microkernels.nn.jobs import byte_conv_job, conv_job
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import launches_key, run_on
from sim_tb.dut.engine import configuration_verilog
from sim_tb.runner.cache import Kept, fingerprint
from soc.generate.presets import tile_preset
from soc.tile.config import VaultTileConfig

__all__ = ["PAIRS", "SIDE", "byte_machine", "layer_jobs", "measure_bytes"]

#: The optional instruction.
PAIRS = "m.v.dot.add[16]"
#: Pixels across and down of the layer.
SIDE = 14
_CHANNELS = 64
_FRACTION, _NARROW = 4, 6
_SEED = 1


def byte_machine() -> VaultTileConfig:
    """The preset ``vault`` with :data:`PAIRS`."""
    base = tile_preset("vault")
    return replace(base, pe=replace(base.pe, instructions=base.pe.instructions | {PAIRS}))


def layer_jobs(side: int, sharers: int) -> dict[str, KernelJob]:
    """The layer on random bytes, one pixel of zeros around.

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
    given = (image, weights, bias)
    layer = ByteConv(shape=shape, fraction=_FRACTION)
    return {
        "elements": conv_job(shape, *given, fraction=_FRACTION, sharers=sharers),
        "sums": byte_conv_job(layer, *given, sharers=sharers),
        "bytes": byte_conv_job(replace(layer, narrow=_NARROW), *given, sharers=sharers),
    }


def measure_bytes(side: int, sharers: int) -> Mapping[str, int]:
    """Cycles of each of :func:`layer_jobs` on the Verilog: of an engine with its own memory, or of
    a vault. The result is cached on disk.

    Raises:
        CosimError: an output differs from the golden model's.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    machine = byte_machine()
    config = machine.pe if sharers == 1 else machine
    found = {}
    for name, job in layer_jobs(side, sharers).items():

        def measure(job: KernelJob = job) -> dict[str, object]:
            outcome = run_on(job, machine.pe if sharers == 1 else machine)
            if not outcome.match:
                raise CosimError(f"{job.name}: outputs differ from the golden model's")
            return {"cycles": outcome.cycles}

        key = fingerprint(configuration_verilog(config), launches_key(job))
        found[name] = Kept("byte_convolution").get(key, measure)["cycles"]
    return found
