"""Sequences of time steps of LSTM layers on whole chips, and on one vault."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from isa.image import DramImage
from microkernels.common.feature_map import round_up
from microkernels.common.fixed_point import Elements, to_fixed
from microkernels.nn.jobs import lstm_job
from microkernels.nn.lstm_shape import LstmShape, usual_weights
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ChipEngines
from pe.config import LOGISTIC_INSTRUCTIONS
from sim_tb.cosim.chip import run_launch
from sim_tb.cosim.machine import Timed
from sim_tb.timed.chip.chip_model import ChipModel
from sim_tb.workloads.tiles import ESE
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset

from .harness.experiment import SIMULATION, Measurement, experiment
from .harness.runs import MEMORY_WAITS, LaunchRun, cached, launch_runs

_FRACTION = 11

_SEED = 1

#: One layer of 128 cells, one sequence at a time.
_CELLS_128 = LstmShape(inputs=128, cells=128, outputs=128, projected=False)

_LITTLE_SHAPE = LstmShape(inputs=24, cells=32, outputs=16, batch=4)


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """A sequence and its machine.

    Attributes:
        shape: of the layer. steps: of the sequence.
        weight_fraction: fraction bits of weights and peepholes; all other numbers have 11.
        columns, rows: of vaults. pes: engines of each.
    """

    shape: LstmShape
    steps: int
    columns: int = 1
    rows: int = 1
    pes: int = 4
    weight_fraction: int = _FRACTION

    def machine(self, base: ChipConfig) -> ChipConfig:
        """``base`` with this grid, and with engines that have the instructions for recurrent
        networks."""
        pe = replace(base.tile.pe, instructions=LOGISTIC_INSTRUCTIONS)
        tile = replace(base.tile, pes=self.pes, pe=pe)
        grid = replace(
            base.network, columns=self.columns, rows=self.rows, tag_bits=tile.port_tag_bits
        )
        return replace(base, tile=tile, network=grid)


#: Name -> sequence.
SEQUENCES: Mapping[str, Sequence] = {
    "ese": Sequence(shape=ESE, steps=16, columns=8, rows=4),
    "ese_4_steps": Sequence(shape=ESE, steps=4, columns=8, rows=4),
    "cells_128_one_engine": Sequence(shape=_CELLS_128, steps=16, pes=1),
    "cells_128_one_vault": Sequence(shape=_CELLS_128, steps=16),
    "cells_128_four_vaults": Sequence(shape=_CELLS_128, steps=16, columns=2, rows=2, pes=1),
    "little": Sequence(shape=_LITTLE_SHAPE, steps=4, columns=2, rows=2, pes=1, weight_fraction=13),
}


def sequence_job(name: str, machine: ChipConfig) -> KernelJob:
    """The job of one of :data:`SEQUENCES` with seeded weights and inputs of usual size.

    Raises:
        KernelError: the sequence does not fit the machine.
    """
    sequence = SEQUENCES[name]
    rng = np.random.default_rng(_SEED)

    def values(scale: float, *size: int, fraction: int = sequence.weight_fraction) -> Elements:
        return to_fixed(rng.normal(0, scale, size), fraction)

    shape = sequence.shape
    return lstm_job(
        shape,
        usual_weights(shape, values),
        values(1.0, sequence.steps, shape.batch, shape.inputs, fraction=_FRACTION),
        fraction=_FRACTION,
        weight_fraction=sequence.weight_fraction,
        engines=ChipEngines.of(machine),
    )


def pruned(job: KernelJob, percent: int, *, accumulate: bool = False) -> KernelJob:
    """A job of :func:`sequence_job` whose products take only this share of each chunk, in whole
    words, and whose loads of weights have the bytes of as many pairs of an element and a byte.

    Everything else is as it is, so its outputs are wrong.

    Parameters:
        accumulate: products add to the sums themselves and set no length: moves of a temporary
            replace these instructions, and a row takes two words.
    """
    (launch,) = job.launches
    words, texts = list(launch.program.words), launch.program.source
    idle = next(words[at] for at, line in texts.items() if line.text.startswith("    mov at0,"))
    for address, line in texts.items():
        beside = (texts[at].text for at in (address - 1, address + 1) if at in texts)
        match line.text.split():
            case ["set.vl", _] if accumulate and any(_PRODUCT in text for text in beside):
                words[address] = idle
            case ["v.v.add", *_, "before"] if accumulate:
                words[address] = idle
            case ["li", register, constant] if register in _SIZES:
                size = int(constant.removeprefix("#"))
                left = percent * (3 if register == _WEIGHTS else 2)
                words[address] += min(size, round_up(size * left // 200, 4)) - size
    program = replace(launch.program, words=tuple(words))
    return replace(job, launches=(replace(launch, program=program),))


def measure_pruned(percent: int, base: ChipConfig, *, accumulate: bool = False) -> float:
    """Microseconds of a time step of ESE's layer with products and weights as of :func:`pruned`.
    What is computed is not compared. Cached on disk.

    Parameters:
        percent, accumulate: as for :func:`pruned`. base: as for :func:`measure_sequence`.

    Raises:
        VipError: as of :func:`measure_sequence`.
    """
    machine = SEQUENCES[_PRUNED].machine(base)
    job = pruned(sequence_job(_PRUNED, machine), percent, accumulate=accumulate)

    def measured() -> float:
        with DramImage(machine.memory_bytes) as image, ChipModel(machine, image) as chip:
            job.prepare(image)
            chip.reset()
            result = run_launch(chip, job.launches[0], pes=range(machine.vaults * machine.tile.pes))
        return result.cycles * result.tck_ns / 1000 / SEQUENCES[_PRUNED].steps

    us: float = cached("sequences", machine, job, measured, on="model")
    return us


def measure_sequence(
    name: str,
    base: ChipConfig,
    *,
    on: Timed = "model",
) -> LaunchRun:
    """Run one of :data:`SEQUENCES` and compare every output. Results of the timing model are cached
    on disk.

    Parameters:
        base: chip whose grid and engines are replaced.
        on: the Verilog, or the timing model.

    Raises:
        CosimError: an engine faulted, or an output differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    machine = SEQUENCES[name].machine(base)
    job = sequence_job(name, machine)
    (run,) = launch_runs(job, machine if machine.vaults > 1 else machine.tile, name, on=on).values()
    return run


_CHIP, _LITTLE_CHIP = "thesis", "tiny"
#: The sequence of :func:`measure_pruned`, and percents of the weights that are left.
_PRUNED, _LEFT = "ese_4_steps", (10, 25, 50, 75, 100)
#: Registers that its program sets to the elements of a block's load and of a row's product.
_WEIGHTS = "block_size,"
_SIZES = ("chunk,", "length,", _WEIGHTS)
_PRODUCT = "m.v.mul.add"

_NETWORK, _LITTLE = "vgg16", "little"


@experiment(presets=("thesis", "tiny"), tools=SIMULATION, minutes=10)
def sequences() -> Iterator[Measurement]:
    """LSTM layers over sequences of time steps, on whole chips, on one vault, on one engine.

    ESE's on the 128 engines of the thesis's chip, all traffic between vaults and all barriers
    included, and a layer of 128 cells, one sequence at a time, on one engine, on the four engines
    of one vault and on four engines of four vaults. Every output of every step is compared with the
    golden model's. Times at 1.25 GHz on the timing model. ESE's as if 10 to 100 % of its weights
    were left, with the program as it is, and 10 % with products that accumulate, outputs not
    compared. And a small layer on the Verilog of four vaults beside the model.
    """
    base = chip_preset(_CHIP)
    for name, sequence in SEQUENCES.items():
        if name in (_LITTLE, _PRUNED):
            continue
        run = measure_sequence(name, base)
        us = run.cycles * run.tck_ns / 1000 / sequence.steps
        yield Measurement(f"{name}_us", us, "us a step")
        yield Measurement(f"{name}_cycles", run.cycles, "cycles")
        yield Measurement(f"{name}_vector_busy", 100 * run.share("VECTOR_BUSY"), "%", None)
        yield Measurement(f"{name}_waits", 100 * run.share(*MEMORY_WAITS), "%", None)
    for percent in _LEFT:
        yield Measurement(f"left_{percent}_us", measure_pruned(percent, base), "us a step")
    bound = measure_pruned(min(_LEFT), base, accumulate=True)
    yield Measurement("left_accumulated_us", bound, "us a step")
    for on in ("model", "rtl"):
        run = measure_sequence(_LITTLE, chip_preset(_LITTLE_CHIP), on=on)
        yield Measurement(f"{_LITTLE}_{on}_cycles", run.cycles, "cycles")
