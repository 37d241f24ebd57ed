"""A convolution, 3 x 3, of 16 channels and 8 filters on the three machines.

Memory has filters, each engine's windows (or shifted pixels), and its sums, at first the biases.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from microkernels.apps.array_job import array_job
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob

from .machine import (
    ELEMENT_BYTES,
    ENGINES,
    MACHINES,
    PACKED,
    REGISTER_BYTES,
    RegisterBuilder,
    drawn,
)

#: Channels, filters and pixels of an engine, elements of a window's row, taps across.
CHANNELS, FILTERS, PIXELS, ROW = 16, 8, (16, 8), 48
TAPS = 3

_WINDOW = ROW * ELEMENT_BYTES
#: Pixels whose results fill a register, all pixels, and vectors of pixels that a filter weighs.
_GROUP = PACKED // FILTERS
_COUNT = PIXELS[0] * PIXELS[1]
_SHIFTS = CHANNELS * TAPS * TAPS


class _Convolution(RegisterBuilder):
    """Rows of windows times filters, added to sums of the rows before, for 128 pixels."""

    names: tuple[str, ...] = ("f0", "f1", "f2", "out", "sums", *(f"w{n}" for n in range(8)))
    rows = FILTERS

    def __init__(self) -> None:
        title = f"A convolution: {type(self).__name__}."
        lengths = (1, FILTERS, ROW, PACKED)
        super().__init__(title, self.names, lengths, free=type(self) is _Convolution)
        self.windows = sum(name.startswith("w") for name in self.names)
        rows = self.variable("rows", TAPS, "rows of the filters left")
        left = self.register("left", "groups of pixels left")
        filters = self.variable("filters", 0, "filters' next row")
        every = self.constant("every", FILTERS * ROW, "elements of all filters' row")
        self.set_constants()
        start = TAPS * FILTERS * _WINDOW
        pitch = TAPS * _COUNT * _WINDOW
        self.window = self.engine_address("window", start, pitch, "next window")
        sums = start + ENGINES * pitch
        first = self.engine_address("first", sums, _COUNT * FILTERS * ELEMENT_BYTES, "first sums")
        self.partial = self.register("partial", "sums of the next pixels")
        self.complete = self.register("complete", "sums of the pixels before; at first, no place")
        self.offset(self.complete, self.zero, sums + ENGINES * _COUNT * FILTERS * ELEMENT_BYTES)
        self.op("set.mr", self.length(self.rows))
        for number in range(self.windows - 2):
            self._load(number)
        with self.loop("row", rows):
            self.load_filters(filters, every)
            self.op("add", filters, filters, FILTERS * _WINDOW)
            self.op("mov", self.partial, first)
            self.op("mov", left, _COUNT // _GROUP)
            with self.loop("group", left):
                self.begin()
                self._group()
        self.op("v.drain")
        self.store(self.complete, "sums", self.length(PACKED))
        self.op("halt")

    def load_filters(self, address: str, every: str) -> None:
        """Load a row of all filters."""
        self.load("f0", address, every)

    def products(self, pixel: int) -> None:
        """Write the products of a pixel's window and all filters."""
        place = self.within("out", pixel * FILTERS, 0)
        self.compute("m.v.mul.add", ROW, place, "f0", f"w{pixel % self.windows}")

    def pack_last(self) -> None:
        """Write what completes a group's results."""

    def _group(self) -> None:
        for pixel in range(_GROUP):
            self.products(pixel)
            self._load((pixel - 2) % self.windows)
            if pixel == 2:
                self.store(self.complete, "sums", self.length(PACKED))
                self.load("sums", self.partial, self.length(PACKED))
                self.op("mov", self.complete, self.partial)
        self.pack_last()
        self.compute("v.v.add", PACKED, "sums", "out", "sums")
        self.op("add", self.partial, self.partial, REGISTER_BYTES)

    def _load(self, number: int) -> None:
        self.load(f"w{number}", self.window, self.length(ROW))
        self.op("add", self.window, self.window, _WINDOW)


class _RegisterConvolution(_Convolution):
    """The same with a register for each filter's row, and results packed one by one."""

    names = (*(f"f{n}" for n in range(FILTERS)), "out", "sums", "s0", "s1", "w0", "w1", "w2", "w3")
    rows = 1

    def load_filters(self, address: str, every: str) -> None:
        """Load a row of all filters, each into a register."""
        del every
        self.op("mov", self._at[0], address)
        for number in range(FILTERS):
            self.load(f"f{number}", self._at[0], self.length(ROW))
            self.op("add", self._at[0], self._at[0], _WINDOW)

    def products(self, pixel: int) -> None:
        """Write the products of a pixel's window and all filters, and pack those before."""
        for number in range(FILTERS):
            name, window = f"s{number % 2}", f"w{pixel % self.windows}"
            self.compute("m.v.mul.add", ROW, name, f"f{number}", window)
            if pixel or number:
                self._pack(pixel * FILTERS + number - 1)

    def pack_last(self) -> None:
        """Pack the last result."""
        self._pack(PACKED - 1)

    def _pack(self, place: int) -> None:
        self.move(1, ("out", place), (f"s{place % 2}", 0))


class _NarrowConvolution(RegisterBuilder):
    """A channel's 128 pixels, shifted by a tap, times one weight of each filter."""

    names = (*(f"o{n}" for n in range(FILTERS)), "p0", "p1", "g0", "g1", "x0", "x1", "y0", "y1")

    def __init__(self) -> None:
        super().__init__(f"A convolution: {type(self).__name__}.", self.names, (1, PACKED))
        taps = PACKED // FILTERS
        left = self.variable("left", _SHIFTS // taps, "groups of 16 taps left")
        weights = self.variable("weights", 0, "next weights")
        half = self.constant("half", PACKED // 2, "weights of 8 taps")
        everything = self.constant("everything", FILTERS * PACKED, "elements of all sums")
        self.set_constants()
        start, pitch = _SHIFTS * FILTERS * ELEMENT_BYTES, _SHIFTS * REGISTER_BYTES
        pixels = self.engine_address("pixels", start, pitch, "next pixels")
        sums, size = start + ENGINES * pitch, FILTERS * REGISTER_BYTES
        results = self.engine_address("results", sums, size, "sums")

        def fetch(name: str) -> None:
            self.load(name, pixels, self.length(PACKED))
            self.op("add", pixels, pixels, REGISTER_BYTES)

        def weigh(name: str) -> None:
            self.load(name, weights, half)
            self.op("add", weights, weights, REGISTER_BYTES // 2)

        self.load("o0", results, everything)
        for name in ("g0", "g1"):
            weigh(name)
        for name in ("p0", "p1"):
            fetch(name)
        work = [(tap, number) for tap in range(taps) for number in range(FILTERS)]
        with self.loop("taps", left):
            self.begin()
            self._weight(*work[0])
            for at, (tap, number) in enumerate(work):
                if at + 1 < len(work):
                    self._weight(*work[at + 1])
                self.compute("v.s.mul", PACKED, f"y{at % 2}", f"p{tap % 2}", f"x{at % 2}")
                if at:
                    self._add(at - 1)
                if number == 1 and tap:
                    fetch(f"p{(tap - 1) % 2}")
                if (tap, number) == (taps // 2, 1):
                    weigh("g0")
            self._add(len(work) - 1)
            self.op("v.drain")
            fetch("p1")
            weigh("g1")
        self.op("v.drain")
        self.store(results, "o0", everything)
        self.op("halt")

    def _weight(self, tap: int, number: int) -> None:
        half, place = divmod(tap * FILTERS + number, PACKED // 2)
        self.move(1, (f"x{number % 2}", 0), (f"g{half}", place))

    def _add(self, at: int) -> None:
        target = f"o{at % FILTERS}"
        self.compute("v.v.add", PACKED, target, target, f"y{at % 2}")


_CONVOLUTIONS: Mapping[str, Callable[[], RegisterBuilder]] = dict(
    zip(MACHINES, (_Convolution, _RegisterConvolution, _NarrowConvolution), strict=True)
)


def convolution_job(machine: str, seed: int = 1) -> KernelJob:
    """The convolution on four engines, each with 16 x 8 pixels of its own, with random data whose
    sums fit 16 bits, so that the order of sums doesn't matter."""
    random = np.random.default_rng(seed)
    draw = drawn(random)
    width, height = PIXELS
    image = draw(-30, 30, (ENGINES, height + TAPS - 1, width + TAPS - 1, CHANNELS))
    filters = draw(-7, 8, (FILTERS, TAPS, TAPS, CHANNELS))
    bias = draw(-100, 100, (FILTERS,))
    windows = np.lib.stride_tricks.sliding_window_view(image, (TAPS, TAPS), (1, 2))
    # [engine, row of taps, pixel, tap, channel]
    rows = windows.transpose(0, 4, 1, 2, 5, 3).reshape(ENGINES, TAPS, _COUNT, TAPS, CHANNELS)
    starts = np.broadcast_to(bias, (ENGINES, _COUNT, FILTERS))

    def golden() -> Elements:
        sums = np.einsum("erptc,frtc->epf", rows.astype(np.int64), filters.astype(np.int64))
        assert abs(sums).max() < 1 << 15
        result: Elements = (starts + sums).astype(np.int16)
        return result.transpose(0, 2, 1).copy() if machine == MACHINES[2] else result

    if machine == MACHINES[2]:
        weights = filters.transpose(1, 2, 3, 0)
        pixels, first = rows.transpose(0, 1, 3, 4, 2), starts.transpose(0, 2, 1)
    else:
        weights, pixels, first = filters.transpose(1, 0, 2, 3), rows, starts
    parts = [np.ascontiguousarray(part) for part in (weights, pixels, first)]
    ends = np.cumsum([0, *(part.nbytes for part in parts)]).tolist()
    program = _CONVOLUTIONS[machine]().program(f"ablation_convolution_{machine}.s")
    data = dict(zip(ends, parts, strict=False))
    job = array_job(f"{machine} convolution", program, data, ends[2], golden, 0)
    return replace(job, pes=ENGINES)
