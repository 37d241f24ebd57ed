"""The element-wise kernel on the instruction set simulator against its golden model."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.run import Launch
from isa.table import BY_KEY
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap, PartMap
from microkernels.common.fixed_point import Elements
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import idle_block
from microkernels.nn.curves import POLYNOMIALS, Curve, Piece
from microkernels.nn.element import ElementLayout
from microkernels.nn.element_shape import OPERATIONS, ElementOperation
from microkernels.nn.line import line_program
from microkernels.runtime.job import Golden, KernelJob, simulate
from tests.microkernels.nn.element_jobs import element_job

#: Of an engine with the logistic unit.
ALL = frozenset(BY_KEY)
#: What each operation needs.
GIVEN: dict[str, dict[str, Any]] = {
    "add": {},
    "subtract": {},
    "maximum": {},
    "minimum": {},
    "multiply": {"fraction": 8},
    "absolute": {},
    "affine": {"factor": -700, "fraction": 9, "offset": 21},
    "relu": {},
    "clip": {"low": -300, "high": 700},
    "gate": {"factor": 5461, "fraction": 6, "offset": 8192, "low": -90, "high": 16384},
    "leaky": {"slope": 3277},
    "tanh": {"fraction": 11},
    "sigmoid": {"fraction": 11},
    "gelu": {"fraction": 11},
    "erf": {"fraction": 11},
    "curve": {
        "curve": Curve(
            -100,
            -2000,
            30000,
            (
                Piece(-1250, 22370, 9, 1, 5, (700, -300, 9000)),
                Piece(-100, 20972, 8, 1, 0, (-9000, 20000)),
                Piece(15150, 18079, 13, 2, 0, (3, -90, 80, 60, -5, 17, 7000, 2)),
            ),
        )
    },
}


#: A curve of an odd piece, which is beside :data:`OPERATIONS`.
ODD = Curve(-40, -900, 20000, (Piece(300, 20972, 8, 1, 15, (-70, 3000, -9000), -7000),))


#: Height, width and channels of maps.
SIZE = (4, 5, 9)


def operation_of(function: str) -> ElementOperation:
    return ElementOperation(function=function, **GIVEN[function])


def values(seed: int, size: tuple[int, int, int] = SIZE, limit: int = 1000) -> Elements:
    return np.random.default_rng(seed).integers(-limit, limit, size, np.int16, endpoint=True)


def job_of(
    operation: ElementOperation,
    size: tuple[int, int, int] = SIZE,
    seed: int = 1,
    limit: int = 1000,
    **given: Any,
) -> KernelJob:
    other = values(seed + 1, size, limit) if operation.maps == 2 else None
    return element_job(operation, values(seed, size, limit), other, **given)


SIZES = st.tuples(st.integers(1, 40), st.integers(1, 6), st.integers(1, 40))


@st.composite
def operations(draw: st.DrawFn) -> ElementOperation:
    operation = draw(st.sampled_from(OPERATIONS))
    most = 14 if operation in POLYNOMIALS else 15
    given = {name: draw(st.integers(0, most)) for name in GIVEN[operation] if name == "fraction"}
    if operation == "clip":
        low, high = sorted(draw(st.lists(st.integers(-32768, 32767), min_size=2, max_size=2)))
        given = {"low": low, "high": high}
    if operation == "gate":
        given |= {"low": 0, "high": 16384}
    if operation in ("affine", "gate"):
        given |= {name: draw(st.integers(-32768, 32767)) for name in ("factor", "offset")}
    if operation == "curve":
        given = GIVEN["curve"]
    if operation == "leaky":
        given = {"slope": draw(st.sampled_from([-32768, -100, 0, 1, 3277, 32767]))}
    return ElementOperation(
        function=operation,
        relu=operation == "add" and draw(st.booleans()),
        **given,
    )


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    operation=operations(),
    size=SIZES,
    depth=st.integers(1, 40),
    sharers=st.integers(1, 4),
    limit=st.sampled_from([50, 5000, 32767]),
    room=st.sampled_from([512, 4096]),
    seed=st.integers(0, 1 << 20),
)
def test_equals_the_golden_model(
    operation: ElementOperation,
    size: tuple[int, int, int],
    depth: int,
    sharers: int,
    limit: int,
    room: int,
    seed: int,
) -> None:
    job = job_of(
        operation,
        size,
        seed,
        limit,
        depth=depth,
        padding=seed // 2 % 2,
        out_padding=seed % 2,
        sharers=sharers,
        base=32 * (seed % 3),
        scratchpad_bytes=room,
    )
    outputs, hazards = simulate(job, seed=seed, instructions=ALL)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


@pytest.mark.parametrize("sharers", [1, 4])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_on_lines_of_several_pieces(operation: str, sharers: int) -> None:
    """A column of 33 x 9 elements is two pieces, which overlap."""
    job = job_of(operation_of(operation), (33, 5, 18), depth=9, limit=32767, sharers=sharers)
    outputs, hazards = simulate(job, instructions=ALL)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


@pytest.mark.parametrize("limit", [300, 32767])
def test_an_odd_piece(limit: int) -> None:
    job = job_of(replace(operation_of("curve"), curve=ODD), depth=9, limit=limit)
    outputs, hazards = simulate(job, instructions=ALL)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


def test_results_saturate() -> None:
    high, low = np.full((4, 5, 9), 32767), np.full((4, 5, 9), -32768)
    for operation, first, second, wanted in (
        ("add", high, high, 32767),
        ("add", low, low, -32768),
        ("multiply", low, high, -32768),
        ("multiply", low, low, 32767),
    ):
        job = element_job(operation_of(operation), first, second)
        outputs, _ = simulate(job)
        assert (outputs == wanted).all()
        assert job.saturated == outputs.size


def test_maps_within_other_maps() -> None:
    """Parts of maps are read and written; all around the output stays."""
    shape = operation_of("add")
    size = {"width": 8, "height": 10, "channels": 20, "depth": 16, "padding": 1}
    wholes = [FeatureMap(base=8192 * number, **size) for number in range(3)]
    parts = [
        PartMap.of(whole, left=left, top=top, width=4, height=7)
        for whole, left, top in zip(wholes, (0, 4, -1), (3, -1, 2), strict=True)
    ]
    layout = ElementLayout(
        shape=shape, source=parts[0], other=parts[1], target=parts[2], base=3 * 8192, sharers=3
    )
    rng = np.random.default_rng(1)
    images = [rng.integers(-1000, 1000, (10, 8, 20), np.int16) for _ in wholes]

    def prepare(memory: Writable) -> None:
        for whole, image in zip(wholes, images, strict=True):
            whole.store(memory, image)
        layout.store(memory)

    def model() -> Elements:
        first, second = (np.pad(image, ((1, 1), (1, 1), (0, 0))) for image in images[:2])
        out = np.pad(images[2], ((1, 1), (1, 1), (0, 0)))
        out[3:10, 0:4] = first[4:11, 1:5] + second[0:7, 5:9]
        return out[1:-1, 1:-1]

    program = line_program(layout)
    job = KernelJob(
        name="parts",
        launches=(Launch(program=program, parameters=layout.parameters),),
        prepare=prepare,
        outputs=wholes[2].load,
        golden=Golden(model),
        end=layout.end,
        pes=3,
    )
    outputs, hazards = simulate(job)
    assert np.array_equal(outputs, job.expected)
    assert not hazards


def test_an_empty_part_is_nothing_to_do() -> None:
    job = job_of(operation_of("add"), sharers=2)

    def prepare(memory: Writable) -> None:
        job.prepare(memory)
        memory.write(job.parameters, idle_block(job.parameters, 2))

    idle = KernelJob(
        name="idle",
        launches=job.launches,
        prepare=prepare,
        outputs=job.outputs,
        golden=Golden(lambda: np.zeros((4, 5, 9), np.int16)),
        end=job.end + 512,
        pes=2,
    )
    outputs, _ = simulate(idle)
    assert not outputs.any()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_four_slots_at_least_are_in_flight(operation: str) -> None:
    for height in (1, 7, 12, 13, 16, 56, 224, 225):
        shape = operation_of(operation)
        maps = [
            FeatureMap(base=at << 20, width=3, height=height, channels=16, depth=16)
            for at in range(3)
        ]
        layout = ElementLayout(
            shape=shape,
            source=maps[0],
            other=maps[1] if shape.maps == 2 else None,
            target=maps[2],
            base=3 << 20,
        )
        assert layout.scratchpad.slots >= 4
        assert layout.scratchpad.slots * shape.maps <= 16
        assert layout.scratchpad.used <= 4096
        assert layout.piece <= 256
        assert 0 <= layout.overlap < layout.piece


@pytest.mark.parametrize(
    ("operation", "changes", "message"),
    [
        ("swish", {}, "function must be one of add, subtract, maximum, minimum, multiply, relu, "),
        ("add", {"fraction": 8}, "add has no fraction"),
        ("relu", {"relu": True}, "relu can follow add, not relu"),
        ("multiply", {}, "multiply needs fraction"),
        ("multiply", {"fraction": 16}, "fraction bits must be a whole number from 0 to 15, not 16"),
        ("clip", {"low": 5}, "clip needs high"),
        ("clip", {"low": 5, "high": 4}, "low must be at most high, 4, not 5"),
        ("clip", {"low": 5, "high": 1 << 15}, "high must be a whole number from -32768 to 32767"),
        ("leaky", {}, "leaky needs slope"),
        ("leaky", {"slope": 1 << 15}, "slope must be a whole number from -32768 to 32767, not 32"),
        ("tanh", {"fraction": 11, "slope": 3}, "tanh has no slope"),
        ("sigmoid", {"fraction": "8"}, "fraction must be a whole number, not '8'"),
    ],
)
def test_operations_that_can_not_be(operation: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(KernelError) as error:
        ElementOperation(function=operation, **changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_maps_that_do_not_fit() -> None:
    shape = operation_of("add")
    image, small = values(1), values(1, (4, 4, 9))
    with pytest.raises(KernelError, match=r"other must have the shape \(4, 5, 9\), not \(4, 4, 9"):
        element_job(shape, image, small)
    with pytest.raises(KernelError, match=r"^add needs 2 maps$"):
        element_job(shape, image)
    with pytest.raises(KernelError, match=r"^relu needs 1 map$"):
        element_job(operation_of("relu"), image, image)
    with pytest.raises(KernelError, match="add needs a scratchpad of 336 bytes, not 335"):
        element_job(shape, image, image, scratchpad_bytes=335)
    element_job(shape, image, image, scratchpad_bytes=336)

    def layout(**changes: Any) -> ElementLayout:
        size = {"width": 5, "height": 4, "channels": 9}
        maps = [FeatureMap(base=at, depth=8, **size) for at in (0, 4096, 8192)]
        places = dict(zip(("source", "other", "target"), maps, strict=True))
        return ElementLayout(**({"shape": shape, "base": 16384} | places | changes))

    size = {"base": 0, "width": 5, "height": 4, "channels": 9}
    for changes, message in (
        ({"other": None}, r"add reads 2 maps, but no other map is given"),
        ({"shape": operation_of("relu")}, r"relu reads 1 map, but another map is given"),
        ({"base": 8}, "base must be a multiple of 32, not 8"),
        ({"target": FeatureMap(depth=9, **size)}, "slices of 8 channels, target of 9"),
        (
            {"other": FeatureMap(depth=8, strip_rows=3, strip_pitch=1, **size)},
            "maps without strips",
        ),
        ({"target": FeatureMap(depth=8, **(size | {"width": 6}))}, "target must be 5 x 4 x 9"),
    ):
        with pytest.raises(KernelError, match=message):
            layout(**changes)
    assert layout().scratchpad.slots >= 4


@pytest.mark.parametrize("operation", ["tanh", "sigmoid"])
def test_an_engine_without_the_logistic_unit_is_refused_by_name(operation: str) -> None:
    job = job_of(operation_of(operation))
    with pytest.raises(KernelError, match=rf"the program needs v.{operation}\[16\] \(word \d+\)"):
        simulate(job)
