"""Sequences of time steps of LSTM layers on whole chips, and on one vault: the timing model's
cycles.

Every output of every step is compared with the golden model's. A sequence is one launch; all
traffic between vaults and all barriers are in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from microkernels.common.fixed_point import Elements, to_fixed
from microkernels.networks.lstm_jobs import lstm_sequence_job
from microkernels.nn.lstm_shape import LstmShape, usual_weights
from microkernels.runtime.job import KernelJob
from pe.config import SPECIAL_INSTRUCTIONS
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import chip_engines, launches_key, run_on
from sim_tb.cosim.machine import Timed
from sim_tb.runner.cache import Kept, fingerprint
from sim_tb.timed.library import sources
from soc.chip.config import ChipConfig
from soc.generate.generate import configuration_json

from .full_hd import MEMORY_WAITS
from .lstm_ese import ESE

__all__ = ["SEQUENCES", "Sequence", "SequenceRun", "measure_sequence", "sequence_job"]

_FRACTION = 11
_SEED = 1
#: One layer of 128 cells, one sequence at a time.
_CELLS_128 = LstmShape(inputs=128, cells=128, outputs=128, projected=False)
_LITTLE = LstmShape(inputs=24, cells=32, outputs=16, batch=4)


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
        """``base`` with this grid, and engines with the instructions for recurrent networks."""
        pe = replace(base.tile.pe, instructions=SPECIAL_INSTRUCTIONS)
        tile = replace(base.tile, pes=self.pes, pe=pe)
        grid = replace(
            base.network, columns=self.columns, rows=self.rows, tag_bits=tile.port_tag_bits
        )
        return replace(base, tile=tile, network=grid)


#: Name -> sequence.
SEQUENCES: Mapping[str, Sequence] = {
    "ese": Sequence(shape=ESE, steps=16, columns=8, rows=4),
    "cells_128_one_engine": Sequence(shape=_CELLS_128, steps=16, pes=1),
    "cells_128_one_vault": Sequence(shape=_CELLS_128, steps=16),
    "cells_128_four_vaults": Sequence(shape=_CELLS_128, steps=16, columns=2, rows=2, pes=1),
    "little": Sequence(shape=_LITTLE, steps=4, columns=2, rows=2, pes=1, weight_fraction=13),
}


@dataclass(frozen=True, kw_only=True)
class SequenceRun:
    """A sequence that has run.

    Attributes:
        name: of the sequence. vaults, pes: of the machine; engines of one vault.
        batch, steps: of the sequence.
        cycles: of the engine that ran longest. tck_ns: clock period.
        vector_busy, waits: shares of all engines' cycles in which the vector unit works, and in
            which an instruction waits for memory or for another engine's flag.
        outputs: elements compared with the golden model's; all are equal.
    """

    name: str
    vaults: int
    pes: int
    batch: int
    steps: int
    cycles: int
    tck_ns: float
    vector_busy: float
    waits: float
    outputs: int

    @property
    def us(self) -> float:
        """Time of a step, the mean over the sequence."""
        return self.cycles * self.tck_ns / 1000 / self.steps

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


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
    return lstm_sequence_job(
        shape,
        usual_weights(shape, values),
        values(1.0, sequence.steps, shape.batch, shape.inputs, fraction=_FRACTION),
        fraction=_FRACTION,
        weight_fraction=sequence.weight_fraction,
        engines=chip_engines(machine),
    )


def measure_sequence(
    name: str,
    base: ChipConfig,
    *,
    on: Timed = "model",
    progress: Callable[[int], None] | None = None,
) -> SequenceRun:
    """Run one of :data:`SEQUENCES` and compare every output. Results of the timing model are cached
    on disk.

    Parameters:
        base: chip whose grid and engines are replaced.
        on: the Verilog, or the timing model.
        progress: called now and then with the cycles so far.

    Raises:
        CosimError: an engine faulted, or an output differs from the golden model's.
        support.native.CompilerError: the timing model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    machine = SEQUENCES[name].machine(base)
    job = sequence_job(name, machine)
    measure = partial(_measured, name, job, machine, on, progress)
    if on == "rtl":
        return SequenceRun(**measure())
    texts = [path.read_bytes() for path in sources()]
    described = repr(sorted(configuration_json(machine).items()))
    key = fingerprint(name, described, launches_key(job), *texts)
    return SequenceRun(**Kept("sequences").get(key, measure))


def _measured(
    name: str,
    job: KernelJob,
    machine: ChipConfig,
    on: Timed,
    progress: Callable[[int], None] | None,
) -> dict[str, Any]:
    sequence = SEQUENCES[name]
    design = machine.tile if machine.vaults == 1 else machine
    outcome = run_on(job, design, on=on, preload=on == "model", progress=progress)
    cycles, outputs = outcome.cycles, outcome.outputs.size
    counters, tck_ns = outcome.result.counters, outcome.result.tck_ns
    if not outcome.match:
        raise CosimError(f"{name}: outputs differ from the golden model's")
    every = sum(pe["CYCLES"] for pe in counters)
    run = SequenceRun(
        name=name,
        vaults=machine.vaults,
        pes=sequence.pes,
        batch=sequence.shape.batch,
        steps=sequence.steps,
        cycles=cycles,
        tck_ns=tck_ns,
        vector_busy=sum(pe["VECTOR_BUSY"] for pe in counters) / every,
        waits=sum(pe[item] for pe in counters for item in MEMORY_WAITS) / every,
        outputs=outputs,
    )
    return run.to_dict()
