"""Kernels of neural networks on Verilog: right to the bit, and as fast as the datapath."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bench.digits import engine_cycles, known
from isa.assembly.assembler import assemble
from isa.run import Launch
from microkernels.apps.digits import NETWORKS, load_digits, trained
from microkernels.common.fixed_point import Elements
from microkernels.nn.conv_search import plan_conv
from microkernels.nn.jobs import conv_job, dense_job, pool_job
from microkernels.nn.window_shape import ConvShape, PoolShape
from microkernels.runtime.job import Golden, KernelJob
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError, MemoryBehaviour, PeSimulation
from sim_tb.cosim.kernels import run_on, run_work
from sim_tb.workloads.tiles import LAYERS, conv_rounds, layer_jobs
from soc.generate.presets import preset, tile_preset

PE = preset("pe")
SMALL_VAULT = tile_preset("vault-small")
HOSTILE = MemoryBehaviour(
    latency=3, extra_latency=60, bandwidth=128, stall=0.4, gap=0.4, out_of_order=True, seed=5
)


@pytest.fixture(scope="module")
def simulation() -> Iterator[PeSimulation]:
    with PeSimulation(PE) as running:
        yield running


def values(*shape: int, limit: int = 1000) -> Elements:
    rng = np.random.default_rng(sum(shape))
    return rng.integers(-limit, limit, shape, np.int16, endpoint=True)


def conv(
    shape: ConvShape,
    *,
    sharers: int = 1,
    strips: bool = False,
    room: int = 4096,
    **more: Any,
) -> KernelJob:
    return conv_job(
        shape,
        values(shape.height, shape.width, shape.channels),
        values(shape.filters, shape.kernel, shape.kernel, shape.channels, limit=200),
        values(shape.filters),
        fraction=8,
        strips=strips,
        out_padding=1,
        sharers=sharers,
        scratchpad_bytes=room,
        **more,
    )


def pooling(shape: PoolShape, *, sharers: int = 1, room: int = 4096) -> KernelJob:
    return pool_job(
        shape,
        values(shape.segments, shape.height, shape.width, shape.channels),
        values(shape.channels),
        relu=True,
        sharers=sharers,
        scratchpad_bytes=room,
    )


def connected(
    inputs: int,
    outputs: int,
    batch: int = 1,
    *,
    others: int = 0,
    sharers: int = 1,
    room: int = 4096,
) -> KernelJob:
    return dense_job(
        values(batch, inputs),
        values(outputs, inputs, limit=200),
        values(outputs),
        fraction=8,
        others=values(others, batch, outputs),
        sharers=sharers,
        scratchpad_bytes=room,
    )


@pytest.mark.parametrize(
    "job",
    [
        conv(ConvShape(width=6, height=5, channels=64, filters=8)),
        conv(ConvShape(width=9, height=5, channels=3, filters=32, padding=1), strips=True),
        conv(ConvShape(width=9, height=9, channels=3, filters=5, padding=1)),
        conv(ConvShape(width=11, height=8, channels=30, filters=6, kernel=4, stride=3)),
        conv(ConvShape(width=11, height=9, channels=20, filters=7, kernel=5, stride=2, padding=2)),
        conv(ConvShape(width=2, height=1, channels=300, filters=3, kernel=1)),
        conv(ConvShape(width=1, height=1, channels=1, filters=1, kernel=1)),
        pooling(PoolShape(width=6, height=6, channels=40)),
        pooling(PoolShape(width=5, height=3, channels=3, kernel=1, stride=1, segments=5)),
        pooling(PoolShape(width=7, height=6, channels=9, kernel=3, padding=1, mean=True)),
        # Windows that neither a program without a loop nor the scratchpad holds.
        pooling(PoolShape(width=301, height=1, channels=2, kernel=300, kernel_down=1, stride=1)),
        connected(300, 21),
        connected(13, 40, 7, others=3),
        connected(1, 1),
    ],
    ids=lambda job: job.program.source[0].file,
)
def test_layers_are_exact_on_any_memory(job: KernelJob, simulation: PeSimulation) -> None:
    for memory in (MemoryBehaviour(latency=20), MemoryBehaviour(latency=300), HOSTILE):
        outcome = run_work(job, simulation, memory=memory)
        assert outcome.differing == 0


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize(
    ("kernel", "gap", "depth", "parts"), [(1, 1, 4, 1), (2, 2, 16, 1), (3, 1, 32, 3), (3, 2, 32, 3)]
)
def test_passes_about_as_long_as_the_pipeline(
    kernel: int, gap: int, depth: int, parts: int, more: int, simulation: PeSimulation
) -> None:
    """Partial sums are stored before they are loaded: three slices, two groups of filters, and
    about as many pixels as the pipeline holds. With gaps in columns they are loaded first."""

    def shape(pixels: int) -> ConvShape:
        return ConvShape(
            width=pixels + kernel - 1,
            height=(kernel - 1) * gap + 1,
            channels=3 * depth,
            filters=2,
            kernel=kernel,
            dilation_down=gap,
        )

    plan = plan_conv(shape(1), depth=depth, out_depth=1)
    assert (plan.slices, plan.groups, plan.parts) == (3, 2, parts)
    job = conv(shape(plan.pixels + more), depth=depth, out_depth=1)
    for memory in (MemoryBehaviour(latency=20), MemoryBehaviour(latency=300), HOSTILE):
        assert run_work(job, simulation, memory=memory).differing == 0


@pytest.mark.parametrize(
    "job",
    [
        conv(ConvShape(width=7, height=6, channels=40, filters=12), sharers=2, room=2048),
        pooling(PoolShape(width=6, height=6, channels=40), sharers=2, room=2048),
        connected(90, 33, 2, others=2, sharers=2, room=2048),
    ],
    ids=lambda job: job.program.source[0].file,
)
def test_layers_are_exact_on_a_vault(job: KernelJob) -> None:
    assert run_on(job, SMALL_VAULT).match


@pytest.mark.parametrize(
    ("channels", "strips", "products", "overhead"),
    [(64, False, 1152, 0.035), (3, True, 224, 0.12)],
)
def test_vector_unit_hardly_waits(
    channels: int, strips: bool, products: int, overhead: float, simulation: PeSimulation
) -> None:
    """Cycles a pixel of a row once the pipeline is full, additions among them."""
    filters = 32 if strips else 8

    def cycles(width: int) -> int:
        shape = ConvShape(width=width + 2, height=3, channels=channels, filters=filters)
        memory = MemoryBehaviour(latency=60)
        return run_work(conv(shape, strips=strips), simulation, memory=memory).cycles

    assert 1 <= (cycles(28) - cycles(20)) / 8 / products <= 1 + overhead


@pytest.mark.parametrize("name", NETWORKS)
def test_digits_are_known_as_in_floating_point(name: str) -> None:
    (_, digits), network = load_digits(), trained(name)
    # The scores of the engine are those of the golden model.
    assert engine_cycles(network, digits, PE, 8) > 0
    real, golden = known(network, digits)
    assert real > 0.96
    assert abs(golden - real) <= 0.01


def test_tiles_cover_vgg_16() -> None:
    """32 tiles make all products of the network's convolutions: 15.35 thousand million."""
    products = sum(32 * layer.conv.macs for layer in LAYERS.values() if layer.conv)
    assert products == 15_346_630_656
    assert len(LAYERS) == 19


def test_part_of_a_tile_is_a_share_of_its_rounds() -> None:
    layer = LAYERS["conv5_1"]
    part, completion = layer_jobs(layer, rounds=1)
    assert part.expected.shape == (14, 14, 32)
    assert conv_rounds(layer, 4) == 4
    assert completion.expected.shape == (14, 14, 16)


def test_jobs_that_do_not_fit(simulation: PeSimulation) -> None:
    two = pooling(PoolShape(width=6, height=6, channels=4), sharers=2)
    with pytest.raises(CosimError, match="2 engines can't work in a vault of 1"):
        run_work(two, simulation)
    large = connected(2000, 500)
    with pytest.raises(CosimError, match="the vault has 1048576"):
        run_on(large, SMALL_VAULT)


def test_a_trimmed_engine_may_address_less_than_its_memory_has() -> None:
    keys = frozenset({"halt", "mov.imm", "st.reg[64]"})
    config = PeConfig(instructions=keys, address_bits=12, load_store_queue=2)
    job = KernelJob(
        name="one store",
        launches=(Launch(program=assemble("mov r2, #7\nst.reg [64-bit] r0, r2\nhalt\n")),),
        prepare=lambda memory: memory.write(8000, b"unused"),
        outputs=lambda memory: np.frombuffer(memory.read(0, 8), "<i8"),
        golden=Golden(lambda: np.array([7])),
        end=8192,
    )
    with PeSimulation(config) as simulation:
        assert run_work(job, simulation, memory_bytes=8192).match
        with pytest.raises(CosimError, match="needs 8192 bytes, the vault has 4096"):
            run_work(job, simulation)
