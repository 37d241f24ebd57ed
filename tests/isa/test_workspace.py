"""The virtual workspace: its equation, its descriptor, and the simulators that translate loads."""

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from isa.assembly.assembler import assemble
from isa.compiled.simulator import CompiledSimulator
from isa.faults import FaultCause
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.run import EngineEnd
from isa.workspace import Workspace, WorkspaceError, element

Equation = Callable[..., NDArray[np.int64]]

KINDS = (Simulator, CompiledSimulator)
SOUND = Workspace(
    image=0x1000,
    window=0x8000,
    width=7,
    height=5,
    pixel_bytes=6,
    output_width=4,
    output_height=3,
    kernel=3,
    stride=2,
    padding=1,
)


def _printed(row, column, *, output_height, width, channels, kernel, stride, padding):
    """The element identity as Duplo's paper prints it."""
    patch_row = row // output_height
    return (
        row % output_height * channels
        + column % (kernel * channels)
        + (patch_row + column // (kernel * channels)) * width * channels
    )


def _wrong(equation: Equation, kernel: int, stride: int, padding: int, width: int, height: int):
    """Elements of the lowered matrix of an image for which ``equation`` names another one of the
    padded image than the definition of a convolution does."""
    columns = (width + 2 * padding - kernel) // stride + 1
    rows = (height + 2 * padding - kernel) // stride + 1
    if columns < 1 or rows < 1:
        return 0
    found = 0
    for channels in (1, 2, 3):
        oy, ox, ky, kx, channel = np.ogrid[:rows, :columns, :kernel, :kernel, :channels]
        pixel = (oy * stride + ky) * (width + 2 * padding) + ox * stride + kx
        named = equation(
            oy * columns + ox,
            (ky * kernel + kx) * channels + channel,
            **({"output_height": rows} if equation is _printed else {"output_width": columns}),
            width=width,
            channels=channels,
            kernel=kernel,
            stride=stride,
            padding=padding,
        )
        found += int(np.count_nonzero(named != pixel * channels + channel))
    return found


@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_the_equation_holds_for_all_small_images(kernel: int) -> None:
    for stride in (1, 2, 3):
        for padding in (0, 1):
            for width in range(1, 7):
                assert _wrong(element, kernel, stride, padding, width, 6) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kernel", range(1, 8))
def test_the_equation_holds_for_all_images_of_16_x_16(kernel: int) -> None:
    """All strides to 4, paddings to 3, widths to 16: each element, one after the other. Lower
    images have the first rows of the lowered matrix of a higher one."""
    for stride in range(1, 5):
        for padding in range(4):
            for width in range(1, 17):
                assert _wrong(element, kernel, stride, padding, width, 16) == 0


def test_the_printed_equation_fails() -> None:
    """It holds without padding for a stride of 1 and square outputs, and for nothing else here."""
    assert _wrong(_printed, 3, 1, 0, 8, 8) == 0
    for kernel, stride, padding, width, height in (
        (3, 1, 0, 9, 16),
        (3, 1, 0, 16, 9),
        (3, 2, 0, 9, 9),
        (3, 1, 1, 8, 8),
    ):
        assert _wrong(_printed, kernel, stride, padding, width, height) > 0
        assert _wrong(element, kernel, stride, padding, width, height) == 0


def _random(rng: random.Random) -> Workspace:
    width, height, padding = rng.randint(1, 9), rng.randint(1, 9), rng.choice((0, 0, 1, 3))
    return Workspace(
        image=0x1000 + rng.randrange(64),
        window=0x8000 + rng.randrange(64),
        width=width,
        height=height,
        pixel_bytes=rng.randint(1, 40),
        output_width=rng.randint(1, 6),
        output_height=rng.randint(1, 6),
        kernel=rng.randint(1, min(5, min(width, height) + 2 * padding)),
        stride=rng.randint(1, 4),
        padding=padding,
    )


def lowered(workspace: Workspace, image: NDArray[np.uint8]) -> bytes:
    """The lowered matrix, cut from an image with zeros around it."""
    w = workspace
    around = [(w.padding, w.padding + 80), (w.padding, w.padding + 80), (0, 0)]
    padded = np.pad(image.reshape(w.height, w.width, w.pixel_bytes), around)
    return b"".join(
        padded[y : y + w.kernel, x : x + w.kernel].tobytes()
        for y in range(0, w.output_height * w.stride, w.stride)
        for x in range(0, w.output_width * w.stride, w.stride)
    )


_LOAD = assemble("set.ws r10\nld.sram [8-bit] r11, r12, r13\nhalt")


def _run(
    kind: type[Simulator], memory: DramImage, far: int, size: int, program=_LOAD, **options: int
) -> tuple[EngineEnd, bytes]:
    simulator = kind(program, memory, **options)
    simulator.registers[10:14] = [0x100, 8, far, size]
    return simulator.run(), simulator.scratchpad.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_loads_from_the_window_read_the_image(kind: type[Simulator], rng: random.Random) -> None:
    for _ in range(60):
        workspace = _random(rng)
        image = np.frombuffer(rng.randbytes(workspace.image_bytes), np.uint8)
        expected = lowered(workspace, image)
        assert len(expected) == workspace.window_bytes
        start = rng.randrange(len(expected))
        size = rng.randint(1, min(4000, len(expected) - start))
        # The window lies beyond the memory that there is.
        with DramImage(0x8000) as memory:
            memory.write(0x100, workspace.pack())
            memory.write(workspace.image, image.tobytes())
            end, pad = _run(kind, memory, workspace.window + start, size)
        assert end.state == "halted"
        assert pad[8 : 8 + size] == expected[start : start + size], workspace
        assert not any(pad[:8] + pad[8 + size :])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("line", "far", "cause"),
    [
        ("st.sram [8-bit] r12, r11, r13", 0x8000 - 3, FaultCause.STORE_TO_WORKSPACE),
        ("st.sram [8-bit] r12, r11, r13", 0x1000 + 209, FaultCause.STORE_TO_WORKSPACE),
        ("st.sram [8-bit] r12, r11, r13", 0x1000 + 210, FaultCause.NONE),
        ("st.sram [8-bit] r12, r11, r13", 0x1000 - 4, FaultCause.NONE),
        ("st.reg [64-bit] r12, r13", 0x1000 + 208, FaultCause.STORE_TO_WORKSPACE),
        ("st.reg [64-bit] r12, r13", 0x1000 - 8, FaultCause.NONE),
        ("ld.reg [16-bit] r14, r12", 0x8000, FaultCause.WORKSPACE_EDGE),
        ("ld.reg [16-bit] r14, r12", 0x1000, FaultCause.NONE),
        ("ld.sram [8-bit] r11, r12, r13", 0x8000 - 3, FaultCause.WORKSPACE_EDGE),
        ("ld.sram [8-bit] r11, r12, r13", 0x8000 - 4, FaultCause.NONE),
        ("ld.sram [8-bit] r11, r12, r13", 0x8000 + 648 - 4, FaultCause.NONE),
        ("ld.sram [8-bit] r11, r12, r13", 0x8000 + 648 - 3, FaultCause.WORKSPACE_EDGE),
    ],
)
def test_other_accesses_keep_out(
    kind: type[Simulator], line: str, far: int, cause: FaultCause
) -> None:
    assert (SOUND.image_bytes, SOUND.window_bytes) == (210, 648)
    program = assemble(f"set.ws r10\n{line}\nhalt")
    with DramImage(1 << 16) as memory:
        memory.write(0x100, SOUND.pack())
        end, _ = _run(kind, memory, far, 4, program)
    assert (end.cause, end.pc) == (cause, 2 if cause is FaultCause.NONE else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_launch_and_a_bad_descriptor_leave_none(kind: type[Simulator]) -> None:
    program = assemble("st.sram [8-bit] r12, r11, r13\nset.ws r10\nhalt")
    with DramImage(1 << 16) as memory:
        memory.write(0x100, SOUND.pack())
        for _ in range(2):
            assert _run(kind, memory, 0x8000, 4, program)[0].state == "halted"
        memory.write(0x11F, b"\1")
        end, _ = _run(kind, memory, 0x8000, 4, program)
    assert (end.cause, end.pc) == (FaultCause.WORKSPACE, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("address", "cause"),
    [
        (0x100, FaultCause.NONE),
        (0x110, FaultCause.MISALIGNED),
        (0xFFE0, FaultCause.WORKSPACE),
        (0x10000, FaultCause.DRAM_RANGE),
        (1 << 63, FaultCause.DRAM_RANGE),
    ],
)
def test_a_descriptor_lies_in_memory(
    kind: type[Simulator], address: int, cause: FaultCause
) -> None:
    with DramImage(1 << 16) as memory:
        memory.write(0x100, SOUND.pack())
        simulator = kind(assemble("set.ws r10\nhalt"), memory)
        simulator.registers[10] = address
        assert simulator.run().cause is cause


BAD = [
    ({"width": 0}, "width must be a whole number from 1 to 4095"),
    ({"height": 4096}, "height must be a whole number from 1 to 4095"),
    ({"pixel_bytes": 0}, "pixel_bytes must be a whole number from 1 to 4095"),
    ({"output_width": 0}, "output_width must be a whole number from 1 to 4095"),
    ({"output_height": 4096}, "output_height must be a whole number from 1 to 4095"),
    ({"kernel": 0}, "kernel must be a whole number from 1 to 15"),
    ({"kernel": 8}, "kernel must be at most 7, the padded image's pixels, not 8"),
    ({"stride": 0}, "stride must be a whole number from 1 to 15"),
    ({"padding": 16}, "padding must be a whole number from 0 to 15"),
    ({"image": 0x10000 - 209}, "image must be a whole number from 0 to 65326"),
    ({"window": 0x10000 - 647}, "window must be a whole number from 0 to 64888"),
    ({"window": 0x1000 + 209}, "window must not overlap the image"),
    ({"window": 0x1000 - 647}, "window must not overlap the image"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("change", "message"), BAD)
def test_a_bad_workspace_is_refused(
    kind: type[Simulator], change: dict[str, int], message: str
) -> None:
    bad = replace(SOUND, **change)
    with pytest.raises(WorkspaceError, match=message):
        bad.check(1 << 16)
    with DramImage(1 << 16) as memory:
        for workspace, cause in ((SOUND, FaultCause.NONE), (bad, FaultCause.WORKSPACE)):
            memory.write(0x100, workspace.pack())
            assert _run(kind, memory, 0, 0, address_bits=16)[0].cause is cause


@pytest.mark.parametrize("kind", KINDS)
def test_an_aligned_engine_wants_an_aligned_workspace(kind: type[Simulator]) -> None:
    with DramImage(1 << 16) as memory:
        for name, value in (("pixel_bytes", 6), ("image", 0x1002), ("window", 0x8002)):
            workspace = replace(SOUND, **({"pixel_bytes": 8} | {name: value}))
            with pytest.raises(WorkspaceError, match=f"{name} must be a multiple of 4"):
                workspace.check(1 << 16, 4)
            memory.write(0x100, workspace.pack())
            end, _ = _run(kind, memory, 0x8000, 4, scratchpad_alignment=4)
            assert end.cause is FaultCause.WORKSPACE


def test_a_descriptor_holds_what_it_was_made_from() -> None:
    assert Workspace.unpack(SOUND.pack()) == SOUND
    with pytest.raises(
        WorkspaceError, match="kernel must be a whole number from 0 to 255, not 256"
    ):
        replace(SOUND, kernel=256).pack()
    with pytest.raises(WorkspaceError, match="last 3 bytes"):
        Workspace.unpack(SOUND.pack()[:31] + b"\1")
