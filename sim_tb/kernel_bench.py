"""How long kernels take: one independent tile of each layer of VGG-16, one of belief propagation
and one of ESE's LSTM, in RTL with real DRAM timing.

A tile is what one vault does (:mod:`sim_tb.vgg`); it shares nothing with the other 31, which do the
same at the same time, so its time is that of the layer (thesis 7.1.1). Data are random, every
output is held against the golden model. Partial sums of other vaults lie in the tile's own memory:
each vault's memory serves as many of them as it would in the whole machine, but the network's time
is not in the figures.

Convolutions repeat the same for every group of filters that a PE takes. Unless the whole tile is
asked for, only the first of these rounds are run, and the time is in proportion, so that what
happens once a tile is counted more than once.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np

from hdl.config import ALL_INSTRUCTIONS
from kernels.conv_plan import best_depth, plan_conv
from kernels.dense_shape import DenseShape
from kernels.nn_job import DEFAULT_OUT_DEPTH, NnJob, conv_job, dense_job, pool_job
from kernels.stereo import motorcycle
from soc.config import VaultTileConfig

from .bp_cosim import BpJob, cosim_vault_bp
from .lstm_ese import ESE, ESE_LIMIT_MS, ESE_THESIS_MS, ese_job
from .nn_cosim import cosim_vault_nn
from .vgg import CONVOLUTIONS, FULLY_CONNECTED, LAYERS, POOLS, Layer

__all__ = [
    "BATCHES",
    "BELIEF",
    "LSTM",
    "NAMES",
    "QUICK",
    "QUICK_ROUNDS",
    "ROUNDS",
    "KernelRow",
    "conv_rounds",
    "layer_jobs",
    "measure_kernels",
]

#: Batches of Table 7.3 that are measured.
BATCHES = (1, 3)
#: An iteration of belief propagation on full HD, 16 labels of 16 bits: 32 x 32 tiles of 60 x 34
#: pixels, 32 of them a vault. Limit and thesis: design.md, section 4.
BELIEF = "bp_m"
_BELIEF_TILE = (60, 34)
_BELIEF_TILES = 32
_BELIEF_LABELS = 16
_BELIEF_LIMIT_MS = 4.15
_BELIEF_THESIS_MS = 5.1
#: A time step of :mod:`sim_tb.lstm_ese`, batch 32.
LSTM = "lstm"
#: Whatever can be measured.
NAMES = (BELIEF, *(layer.name for layer in LAYERS), LSTM)
#: What the quick measurement takes.
QUICK = (BELIEF, "conv1_1", "conv5_1", "pool3", "fc7", "fc8")
#: Rounds of a convolution that are run.
ROUNDS = 2
QUICK_ROUNDS = 1
_FRACTION = 10
_SEED = 1


@dataclass(frozen=True, kw_only=True)
class KernelRow:
    """A line of the report.

    Attributes:
        name: of the layer or total.
        batch: images, or sequences.
        limit_ms: of datapath or memory. thesis_ms: None: the thesis has no figure.
        ours_ms: from the tile's cycles.
        match: every output of what was run equals the golden model's.
        cycles: that were run; 0: a sum of others, or a multiple of batch 1.
        share: of the tile that was run.
        gbs: bandwidth of the vault's memory meanwhile, GB/s; 0 where nothing was run.
    """

    name: str
    batch: int
    limit_ms: float
    thesis_ms: float | None
    ours_ms: float
    match: bool
    cycles: int = 0
    share: float = 1.0
    gbs: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return asdict(self)


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
) -> list[tuple[NnJob, float]]:
    """What a vault runs for a layer, with random data, and how often it would have to.

    Parameters:
        batch: vectors of a fully connected layer; other layers are for one image.
        rounds: of a convolution; None: all.
        pes: engines of the vault.
    """
    rng = np.random.default_rng(_SEED)

    def values(*shape: int, limit: int = 1000) -> np.ndarray:
        return rng.integers(-limit, limit, shape, np.int16, endpoint=True)

    jobs: list[tuple[NnJob, float]] = []
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
    progress: Callable[[str, int, int], None] | None = None,
) -> list[KernelRow]:
    """Measure belief propagation, layers of VGG-16, their totals when all are there, and the LSTM.

    Parameters:
        config: of the vault; for the LSTM its engines get the optional instructions.
        names: of :data:`NAMES`; none: all.
        rounds: of convolutions, at least 1; None: whole tiles.
        progress: called before each layer with its name, how many are done, of how many.

    Raises:
        CosimError: a kernel faulted.
        sim_tb.build.BuildError: the simulator can't be built.
    """
    layers = [layer for layer in LAYERS if not names or layer.name in names]
    tiles: dict[tuple[object, ...], KernelRow] = {}
    rows = []
    before = 1 if not names or BELIEF in names else 0
    behind = 1 if not names or LSTM in names else 0
    every = before + len(layers) + behind
    if before:
        if progress is not None:
            progress(BELIEF, 0, every)
        rows.append(_measure_belief(config))
    for number, layer in enumerate(layers, before):
        if progress is not None:
            progress(layer.name, number, every)
        for batch in BATCHES:
            # Layers of the same shape take the same time; images of a batch one after the other.
            run = batch if layer.dense is not None else 1
            key = (layer.conv, layer.pool, layer.dense, layer.first, run)
            if key not in tiles:
                tiles[key] = _measure(layer, config, run, rounds)
            images = batch // run
            thesis = dict(zip(BATCHES, layer.thesis_ms, strict=False)).get(batch)
            rows.append(
                replace(
                    tiles[key],
                    name=layer.name,
                    batch=batch,
                    limit_ms=_limit(layer, batch),
                    thesis_ms=thesis,
                    ours_ms=tiles[key].ours_ms * images,
                )
            )
    if not names:
        rows += _totals(rows)
    if behind:
        if progress is not None:
            progress(LSTM, every - 1, every)
        rows.append(_measure_lstm(config))
    return rows


def _measure_lstm(config: VaultTileConfig) -> KernelRow:
    with_unit = replace(config, pe=replace(config.pe, instructions=ALL_INSTRUCTIONS))
    outcome = cosim_vault_nn(ese_job(config.pes), with_unit)
    nanoseconds = outcome.cycles * outcome.result.tck_ns
    return KernelRow(
        name=LSTM,
        batch=ESE.batch,
        limit_ms=ESE_LIMIT_MS,
        thesis_ms=ESE_THESIS_MS,
        ours_ms=nanoseconds * 1e-6,
        match=outcome.match,
        cycles=outcome.cycles,
        gbs=outcome.result.bytes_moved / nanoseconds,
    )


def _measure_belief(config: VaultTileConfig) -> KernelRow:
    problem = motorcycle(*_BELIEF_TILE, _BELIEF_LABELS).problem
    outcome = cosim_vault_bp(BpJob(problem=problem, iterations=1), config)
    nanoseconds = outcome.cycles * outcome.result.tck_ns
    return KernelRow(
        name=BELIEF,
        batch=1,
        limit_ms=_BELIEF_LIMIT_MS,
        thesis_ms=_BELIEF_THESIS_MS,
        ours_ms=nanoseconds * _BELIEF_TILES * 1e-6,
        match=outcome.match,
        cycles=outcome.cycles,
        gbs=outcome.result.gbs,
    )


def _limit(layer: Layer, batch: int) -> float:
    """Milliseconds; the weights of a fully connected layer are read once for a batch."""
    return layer.limit_ms if layer.dense is not None else layer.limit_ms * batch


def _measure(layer: Layer, config: VaultTileConfig, batch: int, rounds: int | None) -> KernelRow:
    cycles, nanoseconds, run_ns, moved, match = 0, 0.0, 0.0, 0, True
    for job, times in layer_jobs(layer, batch=batch, rounds=rounds, pes=config.pes):
        outcome = cosim_vault_nn(job, config)
        cycles += outcome.cycles
        run_ns += outcome.cycles * outcome.result.tck_ns
        nanoseconds += outcome.cycles * outcome.result.tck_ns * times
        moved += outcome.result.bytes_moved
        match &= outcome.match
    return KernelRow(
        name=layer.name,
        batch=batch,
        limit_ms=layer.limit_ms,
        thesis_ms=None,
        ours_ms=nanoseconds * 1e-6,
        match=match,
        cycles=cycles,
        share=run_ns / nanoseconds,
        gbs=moved / run_ns,
    )


def _totals(rows: list[KernelRow]) -> list[KernelRow]:
    """Convolutions with pooling, as the thesis counts them, and the whole network."""
    conv = {layer.name for layer in (*CONVOLUTIONS, *POOLS)}
    every = conv | {layer.name for layer in FULLY_CONNECTED}
    totals = []
    for name, members in (("VGG-16 convolutions", conv), ("VGG-16", every)):
        for batch in BATCHES:
            part = [row for row in rows if row.batch == batch and row.name in members]
            totals.append(
                KernelRow(
                    name=name,
                    batch=batch,
                    limit_ms=sum(row.limit_ms for row in part),
                    thesis_ms=sum(row.thesis_ms or 0 for row in part),
                    ours_ms=sum(row.ours_ms for row in part),
                    match=all(row.match for row in part),
                )
            )
    return totals
