"""How long kernels take: one independent tile of each layer of VGG-16, one of each kernel of belief
propagation and one of ESE's LSTM, in RTL with real DRAM timing.

A tile is the work of one vault (:mod:`sim_tb.measure.vgg`); it shares nothing with the other 31,
which do the same at the same time, so its time is that of the layer (thesis 7.1.1). Data are
random, every output is held against the golden model. Partial sums of other vaults lie in the
tile's own memory: each vault's memory serves as many of them as it would in the whole machine, but
the network's time is not in the figures.

Convolutions repeat the same for every group of filters that a PE takes. Unless the whole tile is
asked for, only the first of these rounds are run, and the time is in proportion, so that work done
once a tile is counted more than once.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from microkernels.nn.conv_plan import best_depth, plan_conv
from microkernels.nn.dense_plan import DenseShape
from microkernels.nn.jobs import DEFAULT_OUT_DEPTH, conv_job, dense_job, pool_job
from microkernels.runtime.job import KernelJob
from pe.config import SPECIAL_INSTRUCTIONS
from sim_tb.cosim.kernels import job_key, run_on
from sim_tb.cosim.machine import Timed
from sim_tb.dut.tile import tile_design
from sim_tb.runner.cache import Kept, fingerprint, source_digest
from soc.tile.config import VaultTileConfig

from .belief import BELIEF, belief_key, measure_belief
from .kernel_rows import KernelRow, VaultWork, row_of
from .lstm_ese import ESE, ESE_LIMIT_MS, ESE_THESIS_MS, ese_job
from .vgg import CONVOLUTIONS, FULLY_CONNECTED, LAYERS, POOLS, Layer

__all__ = [
    "BATCHES",
    "LSTM",
    "NAMES",
    "QUICK",
    "QUICK_ROUNDS",
    "ROUNDS",
    "conv_rounds",
    "layer_jobs",
    "measure_kernels",
    "totals",
]

#: Batches of Table 7.3 that are measured.
BATCHES = (1, 3)
#: A time step of :mod:`sim_tb.measure.lstm_ese`, batch 32.
LSTM = "lstm"
#: All kernels that can be measured.
NAMES = (*BELIEF, *(layer.name for layer in LAYERS), LSTM)
#: Kernels of the quick measurement.
QUICK = ("bp_m", "conv1_1", "conv5_1", "pool3", "fc7", "fc8")
#: Rounds of a convolution that are run.
ROUNDS = 2
QUICK_ROUNDS = 1
#: Rooms whose source decides what the timing model does.
_MODEL = ("support", "isa", "hdl", "pe", "memory", "soc", "sim_tb/timed")
_FRACTION = 10
_SEED = 1


def conv_rounds(layer: Layer, pes: int) -> int:
    """Groups of filters that each of so many PEs takes; 1 unless the layer is a convolution."""
    if layer.conv is None:
        return 1
    out_depth = min(layer.conv.filters, DEFAULT_OUT_DEPTH)
    depth = best_depth(layer.conv, out_depth=out_depth)
    plan = plan_conv(layer.conv, depth=depth, out_depth=out_depth, strips=layer.first)
    return max(1, plan.groups // pes)


def layer_jobs(
    layer: Layer, *, batch: int = 1, rounds: int | None = None, pes: int = 4
) -> list[tuple[KernelJob, float]]:
    """Jobs of a vault for a layer, with random data, and how often it would have to run them.

    Parameters:
        batch: vectors of a fully connected layer; other layers are for one image.
        rounds: of a convolution; None: all.
        pes: engines of the vault.
    """
    rng = np.random.default_rng(_SEED)

    def values(*shape: int, limit: int = 1000) -> np.ndarray:
        return rng.integers(-limit, limit, shape, np.int16, endpoint=True)

    jobs: list[tuple[KernelJob, float]] = []
    if layer.conv is not None:
        every = conv_rounds(layer, pes)
        run = every if rounds is None else min(rounds, every)
        shape = replace(layer.conv, filters=layer.conv.filters * run // every)
        size = (shape.filters, shape.kernel, shape.kernel, shape.channels)
        job = conv_job(
            shape,
            values(shape.height, shape.width, shape.channels),
            values(*size, limit=100),
            values(shape.filters),
            fraction=_FRACTION,
            relu=layer.segments == 1,
            out_padding=1,
            strips=layer.first,
            sharers=pes,
        )
        jobs.append((job, every / run))
    if layer.pool is not None:
        pooled = layer.pool
        completes = layer.conv is not None
        job = pool_job(
            pooled,
            values(pooled.segments, pooled.height, pooled.width, pooled.channels),
            values(pooled.channels) if completes else None,
            relu=completes,
            out_padding=1,
            sharers=pes,
        )
        jobs.append((job, 1.0))
    if layer.dense is not None:
        part = DenseShape(inputs=layer.dense.inputs, outputs=layer.dense.outputs, batch=batch)
        job = dense_job(
            part,
            values(batch, part.inputs),
            values(part.outputs, part.inputs, limit=100),
            values(part.outputs),
            fraction=_FRACTION,
            relu=not layer.last,
            others=values(layer.segments - 1, batch, part.outputs),
            sharers=pes,
        )
        jobs.append((job, 1.0))
    return jobs


def measure_kernels(
    config: VaultTileConfig,
    *,
    names: tuple[str, ...] = (),
    rounds: int | None = ROUNDS,
    on: Timed = "rtl",
    progress: Callable[[str, int, int], None] | None = None,
) -> list[KernelRow]:
    """Measure belief propagation, layers of VGG-16, their totals when all are there, and the LSTM.

    Rows are cached in the build folder, so that an interrupted measurement goes on.

    Parameters:
        config: of the vault; for the LSTM its engines get the optional instructions.
        names: of :data:`NAMES`; none: all.
        rounds: of convolutions, at least 1; None: whole tiles.
        on: the Verilog, or the timing model.
        progress: called before each kernel with its name, how many are done, of how many.

    Raises:
        CosimError: a kernel faulted.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    chosen = [name for name in NAMES if not names or name in names]
    layers = {layer.name: layer for layer in LAYERS}
    bench = _Bench(config, rounds, on)
    rows: list[KernelRow] = []
    for number, name in enumerate(chosen):
        if progress is not None:
            progress(name, number, len(chosen))
        if name in BELIEF:
            rows.append(bench.belief(name))
        elif name in layers:
            rows += [bench.layer(layers[name], batch) for batch in BATCHES]
        else:
            rows.append(bench.lstm())
    if not names:
        rows += totals(rows)
    return rows


class _Bench:
    """Rows of kernels on a vault of ``config``, made now or cached."""

    def __init__(self, config: VaultTileConfig, rounds: int | None, on: Timed) -> None:
        self._config = config
        self._on = on
        self._with_unit = replace(config, pe=replace(config.pe, instructions=SPECIAL_INSTRUCTIONS))
        self._rounds = rounds
        self._kept = Kept("kernel_rows")
        self._designs: dict[VaultTileConfig, str] = {}

    def belief(self, name: str) -> KernelRow:
        """A kernel of belief propagation."""
        key = belief_key(name, self._config)
        return self._row(
            self._config, key, partial(measure_belief, name, self._config, on=self._on)
        )

    def lstm(self) -> KernelRow:
        """A time step."""
        return self._jobs(
            LSTM,
            [(ese_job(self._config.pes), 1.0)],
            self._with_unit,
            limit_ms=ESE_LIMIT_MS,
            thesis_ms=ESE_THESIS_MS,
            batch=ESE.batch,
        )

    def layer(self, layer: Layer, batch: int) -> KernelRow:
        """A layer. The weights of a fully connected one are read once for a batch; of others
        images are run one after the other."""
        run = batch if layer.dense is not None else 1
        jobs = layer_jobs(layer, batch=run, rounds=self._rounds, pes=self._config.pes)
        row = self._jobs(layer.name, jobs, self._config, limit_ms=layer.limit_ms, batch=batch)
        images = batch // run
        thesis = dict(zip(BATCHES, layer.thesis_ms, strict=False)).get(batch)
        return replace(
            row,
            thesis_ms=thesis,
            limit_ms=row.limit_ms * images,
            ours_ms=row.ours_ms * images,
        )

    def _jobs(
        self,
        name: str,
        jobs: list[tuple[KernelJob, float]],
        config: VaultTileConfig,
        *,
        limit_ms: float,
        thesis_ms: float | None = None,
        batch: int,
    ) -> KernelRow:
        """Layers of the same shape, and images of a batch, are the same run."""
        key = fingerprint(*(part for job, times in jobs for part in (str(times), job_key(job))))

        def measure() -> KernelRow:
            works = []
            for job, times in jobs:
                outcome = run_on(job, config, on=self._on)
                works.append(
                    VaultWork(
                        result=outcome.result,
                        operations=job.operations,
                        match=outcome.match,
                        times=times,
                    )
                )
            return row_of(name, works, limit_ms=limit_ms)

        row = self._row(config, key, measure)
        return replace(row, name=name, limit_ms=limit_ms, thesis_ms=thesis_ms, batch=batch)

    def _row(
        self, config: VaultTileConfig, key: str, measure: Callable[[], KernelRow]
    ) -> KernelRow:
        if config not in self._designs:
            self._designs[config] = (
                tile_design(config).key
                if self._on == "rtl"
                else f"{source_digest(_MODEL)} {config!r}"
            )
        kept = self._kept.get(f"{self._designs[config]} {key}", lambda: measure().to_dict())
        return KernelRow.from_dict(kept)


def totals(rows: Sequence[KernelRow]) -> list[KernelRow]:
    """Convolutions with pooling, as the thesis counts them, and the whole network, for each batch.

    Parameters:
        rows: of all layers and batches, among others.
    """
    conv = {layer.name for layer in (*CONVOLUTIONS, *POOLS)}
    every = conv | {layer.name for layer in FULLY_CONNECTED}
    found = []
    for name, members in (("VGG-16 convolutions", conv), ("VGG-16", every)):
        for batch in BATCHES:
            part = [row for row in rows if row.batch == batch and row.name in members]
            found.append(
                KernelRow(
                    name=name,
                    batch=batch,
                    limit_ms=sum(row.limit_ms for row in part),
                    thesis_ms=sum(row.thesis_ms or 0 for row in part),
                    ours_ms=sum(row.ours_ms for row in part),
                    match=all(row.match for row in part),
                )
            )
    return found
