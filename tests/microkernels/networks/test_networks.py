"""Whole networks over the vaults of a chip, on compiled simulators, against the golden model."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.image import DramImage
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap, PartMap
from microkernels.common.fixed_point import ELEMENT_BYTES
from microkernels.data.networks import usual_network_weights
from microkernels.networks.jobs import MoveStep, NetworkJob, Places, network_job
from microkernels.networks.maps import MapCut, MapRegion, Size2
from microkernels.networks.moves import Move, move_block, move_block_bytes, move_program
from microkernels.networks.network import (
    INPUT,
    Conv,
    Dense,
    Layer,
    MapSize,
    Network,
    Pool,
    Recurrent,
)
from microkernels.networks.vgg16 import vgg16
from microkernels.nn.conv_plan import ConvPlan
from microkernels.nn.recurrent import CELLS
from microkernels.runtime.job import STANDARD, execute, simulate
from microkernels.runtime.ring import ChipEngines

LITTLE = Network(
    input=MapSize(20, 18, 3),
    layers=(
        Conv(name="conv1", filters=16, padding=1, fraction=12),
        Conv(name="conv2", filters=16, padding=1, fraction=12),
        Pool(name="pool1"),
        Conv(name="conv3", filters=32, kernel=5, stride=2, padding=2, fraction=12),
        Pool(name="pool2", window=3, stride=2, padding=1, mean=True),
        Dense(name="fc1", outputs=21, fraction=12),
        Dense(name="fc2", outputs=10, fraction=12, relu=False),
    ),
)


def engines(columns: int, rows: int, pes: int = 2, address_bits: int = 20) -> ChipEngines:
    return ChipEngines(columns=columns, rows=rows, address_bits=address_bits, pes=pes)


def job_of(
    network: Network,
    machine: ChipEngines,
    *,
    batch: int = 1,
    seed: int = 1,
    keep: bool = True,
) -> NetworkJob:
    size = network.input
    rng = np.random.default_rng(seed)
    images = rng.integers(-500, 500, (batch, size.height, size.width, size.channels))
    weights = usual_network_weights(network, seed)
    return network_job(network, weights, images, engines=machine, keep=keep)


def check(job: NetworkJob, instructions: frozenset[str] = STANDARD) -> None:
    outputs = execute(job, instructions=instructions).outputs
    found, expected = job.of_layers(outputs), job.of_layers(job.expected)
    for name, values in found.items():
        assert (values == expected[name]).all(), name
    assert all(values.any() for values in expected.values())


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (4, 2)])
def test_every_activation_equals_the_golden_models(columns: int, rows: int) -> None:
    check(job_of(LITTLE, engines(columns, rows)))


@pytest.mark.parametrize("batch", [2, 3, 5])
def test_batches(batch: int) -> None:
    check(job_of(LITTLE, engines(2, 2), batch=batch))


@pytest.mark.parametrize(("grid", "batch"), [((1, 1), 5), ((3, 1), 4)])
def test_a_batch_has_the_launches_of_an_image(grid: tuple[int, int], batch: int) -> None:
    """Engines begin and end within images, and vaults have different numbers of them."""
    job = job_of(LITTLE, engines(*grid, pes=3), batch=batch)
    check(job)
    moves = sum(isinstance(step, MoveStep) for step in job.layout.steps)
    assert len(job.launches) - moves == len(LITTLE.layers)


def test_a_dense_layer_of_one_vault_reads_in_place() -> None:
    """Slices of 5 channels of 3 x 3 pixels have gaps between them. A map that a convolution with
    padding reads, too, is not written into its input."""
    layers = (
        Conv(name="first", filters=17, kernel=2, fraction=11),
        Dense(name="fc", outputs=7, fraction=11),
        Conv(name="second", source="first", filters=8, padding=1, fraction=11),
    )
    job = job_of(Network(input=MapSize(4, 4, 3), layers=layers), engines(1, 1), batch=3)
    check(job)
    moved = {step.layer_name for step in job.layout.steps if isinstance(step, MoveStep)}
    assert moved == {"second"}


def test_recurrent_programs_read_no_result_too_early() -> None:
    layers = (
        Conv(name="sums", filters=18, kernel=1, fraction=11, relu=False),
        Recurrent(name="states", cell="gru", cells=6, steps=2, fraction=12, unit=False),
    )
    job = job_of(Network(input=MapSize(2, 1, 6), layers=layers), engines(1, 1))
    outputs, hazards = simulate(job)
    assert (outputs == job.expected).all()
    assert not hazards


@pytest.mark.parametrize(("batch", "columns"), [(1, 1), (5, 1), (3, 4)])
def test_a_dense_layer_on_the_input(batch: int, columns: int) -> None:
    network = Network(
        input=MapSize(7, 5, 3),
        layers=(
            Dense(name="fc1", outputs=50, fraction=12),
            Dense(name="fc2", outputs=10, fraction=12, relu=False),
        ),
    )
    check(job_of(network, engines(columns, 1), batch=batch))


def test_vgg16_of_fewer_channels_on_eight_vaults() -> None:
    job = job_of(vgg16(32, narrower=8), engines(4, 2, pes=4))
    parts = [plan.part for plan in job.plan.layers.values()]
    shared = [part.repeated for part in parts if isinstance(part, ConvPlan)]
    assert any(shared)
    check(job)


@pytest.mark.parametrize(
    ("cell", "cells", "batch", "columns"),
    [("lstm", 9, 5, 2), ("lstm_peepholes", 22, 1, 1), ("gru", 40, 3, 2), ("gru_after", 7, 2, 3),
     ("rnn", 270, 2, 1), ("rnn_relu", 3, 4, 1)],
)  # fmt: skip
def test_recurrent_layers(cell: str, cells: int, batch: int, columns: int) -> None:
    channels = len(CELLS[cell].inputs) * cells
    states: dict[str, Any] = {"final": True} if CELLS[cell].kept else {}
    network = Network(
        input=MapSize(3, 2, 6),
        layers=(
            Conv(name="sums", filters=channels, kernel=1, fraction=11, relu=False),
            Recurrent(name="states", cell=cell, cells=cells, steps=3, fraction=12, unit=False),
            Conv(name="more", source="states", filters=channels, kernel=1, fraction=12),
            Conv(name="before", source=INPUT, filters=cells, kernel=Size2(3, 1), fraction=12),
            Recurrent(
                name="back", source="more", cell=cell, cells=cells, steps=3, fraction=12,
                unit=False, reverse=True, hidden="before", **states,
                **({"kept": "before"} if states else {}),
            ),
        ),
    )  # fmt: skip
    check(job_of(network, engines(columns, 1, pes=4), batch=batch))


def layers(sizes: list[tuple[str, int, int, int]]) -> tuple[Layer, ...]:
    found: list[Layer] = []
    for number, (kind, first, second, third) in enumerate(sizes):
        name = f"layer{number}"
        if kind == "conv":
            found.append(
                Conv(
                    name=name,
                    filters=1 + first,
                    kernel=second,
                    stride=1 + third % 2,
                    padding=third % second,
                    fraction=8,
                    relu=bool(first % 2),
                )
            )
        elif kind == "pool":
            found.append(Pool(name=name, window=second, stride=1 + third % 2, mean=bool(first % 2)))
        else:
            found.append(Dense(name=name, outputs=1 + first, fraction=8))
    return tuple(found)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.tuples(st.integers(6, 17), st.integers(6, 15), st.integers(1, 20)),
    maps=st.lists(
        st.tuples(
            st.sampled_from(["conv", "pool"]),
            st.integers(0, 39),
            st.integers(1, 3),
            st.integers(0, 5),
        ),
        min_size=1,
        max_size=4,
    ),
    dense=st.lists(st.integers(0, 30), max_size=2),
    grid=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    batch=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_random_networks(
    sizes: tuple[int, int, int],
    maps: list[tuple[str, int, int, int]],
    dense: list[int],
    grid: tuple[int, int],
    batch: int,
    seed: int,
) -> None:
    listed = [*maps, *(("dense", outputs, 1, 0) for outputs in dense)]
    try:
        network = Network(input=MapSize(*sizes), layers=layers(listed))
    except KernelError:
        return
    job = job_of(network, engines(*grid), batch=batch, seed=seed)
    outputs = execute(job).outputs
    assert (outputs == job.expected).all()


def test_the_last_parameter_block_may_be_read_past_its_end() -> None:
    """Pooling reads one description more than it has; here its block ends the memory."""
    network = Network(input=MapSize(4, 6, 4), layers=(Pool(name="pool", window=1, stride=1),))
    check(job_of(network, engines(1, 1, pes=1)))


def test_programs_have_no_hazards_on_one_vault() -> None:
    job = job_of(LITTLE, ChipEngines(pes=2))
    outputs, hazards = simulate(job)
    assert (outputs == job.expected).all()
    assert not hazards


def test_memory_is_used_again_without_keeping_activations() -> None:
    kept, again = (job_of(LITTLE, engines(2, 2), keep=keep) for keep in (True, False))
    assert again.end < kept.end
    check(again)
    last = again.of_layers(again.expected)
    assert list(last) == ["fc2"]
    assert (last["fc2"] == kept.of_layers(kept.expected)["fc2"]).all()


def touched(move: Move) -> tuple[list[range], list[range]]:
    size = move.elements * ELEMENT_BYTES
    return tuple(  # type: ignore[return-value]
        [range(first + n * step, first + n * step + size) for n in range(move.pieces)]
        for first, step in (
            (move.source, move.source_step),
            (move.target, move.target_step),
        )
    )


def launches_of_moves(job: NetworkJob) -> int:
    """Number of launches of moves. No byte that one of them writes is read or written by another
    move of the same launch."""
    steps = {step.name: step for step in job.layout.launch_steps.values()}
    tried = 0
    for step in steps.values():
        if not isinstance(step, MoveStep):
            continue
        tried += 1
        read, written = np.zeros((2, job.vaults << 20), np.int32)
        for vault, moves in enumerate(step.moves):
            for move in moves:
                sources, targets = touched(move)
                for each in sources:
                    read[each.start : each.stop] += 1
                for each in targets:
                    written[each.start : each.stop] += 1
                    assert {each.start >> 20, each.stop - 1 >> 20} == {vault}
        assert written.max() == 1
        assert not (read[written > 0]).any()
    return tried


@pytest.mark.parametrize("grid", [(2, 2), (3, 2), (4, 1)])
@pytest.mark.parametrize("batch", [1, 3])
def test_moves_of_a_launch_do_not_race(grid: tuple[int, int], batch: int) -> None:
    assert launches_of_moves(job_of(LITTLE, engines(*grid), batch=batch)) > 2


@pytest.mark.parametrize("layer", ["conv2", "fc1"])
def test_vaults_begin_their_moves_with_different_vaults(layer: str) -> None:
    chip = engines(4, 2)
    (step,) = (
        step
        for step in job_of(LITTLE, chip).layout.launch_steps.values()
        if isinstance(step, MoveStep) and step.layer_name == layer
    )
    first = [moves[0].source >> chip.address_bits for moves in step.moves if moves]
    assert len(first) > 6
    assert max(first.count(vault) for vault in first) <= 2
    # An edge of one pixel is a move over all slices.
    assert max(len(moves) for moves in step.moves) <= 16


@given(
    cut=st.builds(
        MapCut,
        size=st.builds(MapSize, st.integers(1, 20), st.integers(1, 20), st.integers(1, 50)),
        depth=st.integers(1, 16),
        images=st.integers(1, 2),
        columns=st.integers(1, 5),
        rows=st.integers(1, 5),
        parts=st.integers(1, 4),
    ),
)
def test_owners_have_every_element_once_and_compute_it(cut: MapCut) -> None:
    size, whole = cut.size, cut.tile_size
    owners = np.zeros((size.height, size.width, size.channels), int)
    for vault in range(cut.sharers):
        own, tile = cut.owned(vault), cut.tile(vault)
        assert (own is None) == (tile is None)
        if own is None or tile is None:
            continue
        owners[
            own.y : own.y + own.height,
            own.x : own.x + own.width,
            own.channel : own.channel + own.channels,
        ] += 1
        assert tile.common(own) == own
        assert (tile.width, tile.height) == (whole.width, whole.height)
        assert 0 <= tile.x <= size.width - tile.width
        assert 0 <= tile.y <= size.height - tile.height
    assert (owners == 1).all()
    assert cut.tile(cut.vaults) is None


REGIONS = st.builds(
    MapRegion,
    x=st.integers(-3, 6),
    y=st.integers(-3, 6),
    channel=st.just(0),
    width=st.integers(1, 7),
    height=st.integers(1, 7),
    channels=st.just(2),
)


@given(one=REGIONS, other=REGIONS)
def test_a_region_without_another_has_each_other_pixel_once(
    one: MapRegion, other: MapRegion
) -> None:
    counts = np.zeros((20, 20), int)
    for piece in one.without(other):
        counts[
            piece.y + 5 : piece.y + 5 + piece.height, piece.x + 5 : piece.x + 5 + piece.width
        ] += 1
    wanted = np.zeros_like(counts)
    wanted[one.y + 5 : one.y + 5 + one.height, one.x + 5 : one.x + 5 + one.width] = 1
    wanted[other.y + 5 : other.y + 5 + other.height, other.x + 5 : other.x + 5 + other.width] = 0
    assert (counts == wanted).all()
    assert one.without(other._replace(channel=2)) == [one]


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_places_in_use_at_the_same_time_do_not_overlap(
    wanted: list[tuple[int, int, int]],
) -> None:
    places = Places(4096)
    taken = []
    for size, start, length in wanted:
        at = places.take(size, start=start, last=start + length)
        assert at % 4096 == 0
        assert at + size <= places.end
        taken.append((at, at + size, start, start + length))
    for one, other in combinations(taken, 2):
        apart = one[3] < other[2] or other[3] < one[2]
        assert apart or one[1] <= other[0] or other[1] <= one[0]


def pieces(moves: list[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Address and elements of each piece of moves, given as a parameter block describes them."""
    return [
        (address + number * step, elements)
        for address, step, elements, count in moves
        for number in range(count)
    ]


@pytest.mark.parametrize("sharers", [1, 3, 5])
def test_shares_of_moves_hold_every_piece_once(sharers: int) -> None:
    moves = [
        Move(source=100, target=9000, source_step=64, target_step=32, elements=16, pieces=37),
        Move(source=5000, target=20000, source_step=0, target_step=512, elements=128, pieces=1),
        Move(source=6000, target=30000, source_step=0, target_step=256, elements=90, pieces=20),
    ]
    words = np.frombuffer(move_block(0, moves, sharers), "<i8")
    assert 8 * len(words) == move_block_bytes(moves, sharers)
    found = []
    for start in words[:sharers]:
        count, *tables = words[start // 8 : start // 8 + 3]
        sides = []
        for table in tables:
            described: list[tuple[int, ...]] = []
            place = table // 8
            while sum(number for *_, number in described) < count:
                described.append(tuple(map(int, words[place : place + 4])))
                place += 4
            sides.append(pieces(described))
        loads, stores = sides
        assert count == len(loads) == len(stores)
        found += [(*load, *store) for load, store in zip(loads, stores, strict=True)]
    wanted = [
        (
            move.source + number * move.source_step,
            move.elements,
            move.target + number * move.target_step,
            move.elements,
        )
        for move in moves
        for number in range(move.pieces)
    ]
    assert sorted(found) == sorted(wanted)
    assert len(move_program(vault_bits=20).words) < 128


def test_a_part_of_a_map_lies_where_it_lies_in_the_map() -> None:
    whole = FeatureMap(base=64, width=9, height=7, channels=5, depth=2)
    part = PartMap.of(whole, left=2, top=3, width=4, height=2)
    assert part.address(1, 1, 3) == whole.address(3, 4, 3)
    assert (part.x_step, part.slice_step) == (whole.x_step, whole.slice_step)
    assert part.down_step(2) == whole.down_step(2)
    memory = DramImage(4096)
    values = np.arange(7 * 9 * 5).reshape(7, 9, 5)
    whole.store(memory, values)
    last = PartMap.of(whole, left=2, top=3, width=4, height=2, first=2, channels=3)
    assert last.address(1, 1, 2) == whole.address(3, 4, 4)
    assert (last.base, last.end) == (whole.base + whole.slice_step, whole.end)
    assert (last.load(memory) == values[3:5, 2:6, 2:]).all()
    with pytest.raises(KernelError, match="no memory of its own"):
        part.store({}, np.zeros(1))  # type: ignore[arg-type]
    with pytest.raises(KernelError, match="are not in a map of 9 x 7"):
        PartMap.of(whole, left=6, top=0, width=4, height=2)
