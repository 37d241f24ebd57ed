"""Dataclasses as structures of C++."""

import ctypes
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any

from support.schema import (
    U8,
    U16,
    U32,
    C,
    Chance,
    Record,
    Share,
    Signed,
    Text,
    declarations,
    pack,
    structure,
    unpack,
)


class Colour(IntEnum):
    RED = 0
    LIGHT_BLUE = 5


@dataclass(frozen=True)
class Point:
    x: int
    y: Signed


@dataclass(frozen=True)
class Job:
    words: Annotated[tuple[int, ...], C(ctypes.c_uint32)]
    points: Annotated[tuple[Point, ...], C(Point)]
    data: Annotated[bytes, C(ctypes.c_uint8)]
    share: Share
    chance: Chance
    note: str


@dataclass(frozen=True)
class Result:
    colour: Colour
    done: bool
    counts: Annotated[tuple[int, ...], C(ctypes.c_uint64 * 3)]
    reason: Text
    seconds: float = 0.0


def test_jobs_point_to_what_they_hold() -> None:
    job = Job((7, 2**32 - 1), (Point(1, -2), Point(3, 4)), b"\x05\xff", 0.5, 1e-9, "Python's alone")
    raw = pack(job)
    assert [raw.words[i] for i in range(raw.words_count)] == [7, 2**32 - 1]
    points = [(raw.points[i].x, raw.points[i].y) for i in range(raw.points_count)]
    assert points == [(1, -2), (3, 4)]
    assert ctypes.string_at(raw.data, raw.data_count) == b"\x05\xff"
    assert (raw.share, raw.chance) == (32768, 1)
    assert not hasattr(raw, "note")


def test_results_come_back_as_they_went() -> None:
    result = Result(Colour.LIGHT_BLUE, True, (1, 2, 2**64 - 1), "none")
    found = unpack(Result, pack(result), seconds=1.5)
    assert found == Result(Colour.LIGHT_BLUE, True, (1, 2, 2**64 - 1), "none", 1.5)
    assert found.colour is Colour.LIGHT_BLUE
    # A structure that nobody wrote to.
    assert unpack(Result, structure(Result)()) == Result(Colour.RED, False, (0, 0, 0), "")


def test_declarations_in_cpp() -> None:
    assert declarations(Job, Result).splitlines() == [
        "struct VipPoint {",
        "    uint64_t x;",
        "    int64_t y;",
        "};",
        "struct VipJob {",
        "    uint32_t* words;",
        "    uint64_t words_count;",
        "    VipPoint* points;",
        "    uint64_t points_count;",
        "    uint8_t* data;",
        "    uint64_t data_count;",
        "    uint64_t share;",
        "    uint64_t chance;",
        "};",
        "enum Colour : uint64_t { kRed = 0, kLightBlue = 5 };",
        "struct VipResult {",
        "    uint64_t colour;",
        "    bool done;",
        "    uint64_t counts[3];",
        "    const char* reason;",
        "};",
    ]


class Pixel(Record):
    """A member of another record."""

    x: U8
    y: U32


Paint = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)
Paint.__name__ = "Paint"


class Picture(Record, numbers=("width", "height")):
    """Members of all kinds."""

    dark: bool
    offset: Signed
    corner: Pixel
    pixels: Annotated[Any, C(ctypes.POINTER(Pixel))]
    table: Annotated[Any, C(ctypes.c_uint64 * 3 * 2)]
    rows: Annotated[Any, C(ctypes.POINTER(ctypes.POINTER(ctypes.c_uint8)))]
    paint: Annotated[Any, C(Paint)]
    owner: Annotated[Any, C(ctypes.c_void_p)]
    depth: U16


def test_records_follow_from_their_annotations() -> None:
    pixels = (Pixel * 2)(Pixel(x=1, y=2), Pixel(x=3, y=4))
    picture = Picture(width=5, dark=True, offset=-1, corner=Pixel(x=6, y=7), pixels=pixels)
    picture.table[1][2] = 8
    assert (picture.width, picture.height, picture.dark, picture.offset) == (5, 0, True, -1)
    assert not picture.paint
    assert (picture.corner.y, picture.pixels[1].x, picture.table[1][2]) == (7, 3, 8)
    assert declarations(Pixel, Picture).splitlines() == [
        "struct Pixel {",
        "    uint8_t x;",
        "    uint32_t y;",
        "};",
        "struct Picture {",
        "    uint64_t width;",
        "    uint64_t height;",
        "    bool dark;",
        "    int64_t offset;",
        "    Pixel corner;",
        "    Pixel* pixels;",
        "    uint64_t table[2][3];",
        "    uint8_t** rows;",
        "    Paint paint;",
        "    void* owner;",
        "    uint16_t depth;",
        "};",
    ]
