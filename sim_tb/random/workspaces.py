"""Random virtual workspaces (:mod:`isa.workspace`), and how programs use them.

They have memory of their own, which nothing else in a program touches.
"""

from dataclasses import replace
from random import Random

from isa.program import Span
from isa.table import Opcode
from isa.workspace import DESCRIPTOR_BYTES, Workspace

from .program_builder import ProgramBuilder
from .random_program import contents

#: Descriptors per program.
_DESCRIPTORS = 4
#: Bytes of memory for them and for images.
_STORED = 2048


def random_workspace(random: Random, *, image: Span, window: Span, alignment: int = 1) -> Workspace:
    """A valid workspace with its image in ``image`` and its window in ``window``. The two may
    overlap, but each must have room for a pixel that is not in the other."""
    while True:
        kernel, padding = random.choice((1, 2, 3, 3, 5)), random.choice((0, 0, 1, 2, 3))
        workspace = Workspace(
            image=0,
            window=0,
            width=random.randint(1, 9),
            height=random.randint(1, 9),
            pixel_bytes=alignment * random.choice((1, 2, 3, 6, 8, 16, 33)),
            output_width=random.randint(1, 9),
            output_height=random.randint(1, 9),
            kernel=kernel,
            stride=random.choice((1, 1, 2, 3, 4)),
            padding=padding,
        )
        fits = workspace.image_bytes <= image.size and workspace.window_bytes <= window.size
        if not fits or kernel > min(workspace.width, workspace.height) + 2 * padding:
            continue
        places = [
            span.start + random.randint(0, span.size - size) // alignment * alignment
            for span, size in ((image, workspace.image_bytes), (window, workspace.window_bytes))
        ]
        workspace = replace(workspace, image=places[0], window=places[1])
        if not workspace.touches_image(workspace.window, workspace.window_bytes):
            return workspace


def spoiled_workspace(random: Random, workspace: Workspace, space: int) -> Workspace:
    """``workspace``, for addresses below ``space``, with one value that is probably invalid."""
    name, value = random.choice(
        (
            ("width", 0),
            ("height", 4096),
            ("pixel_bytes", 0),
            ("output_width", 0),
            ("output_height", 60_000),
            ("output_height", 4095),
            ("kernel", 0),
            ("kernel", 15),
            ("kernel", 16),
            ("stride", 0),
            ("stride", 240),
            ("padding", 16),
            ("image", space - workspace.image_bytes + 1),
            ("window", space - workspace.window_bytes + 1),
            ("window", space << 1),
            ("image", 1 << 63),
            ("window", workspace.image),
            ("window", workspace.image + workspace.image_bytes - 1),
            ("image", workspace.window + workspace.window_bytes - 1),
        )
    )
    return replace(workspace, **{name: value})


class Workspaces:
    """The workspaces of one program.

    Parameters:
        code: the program. room: memory for images, windows and descriptors.
    """

    def __init__(self, code: ProgramBuilder, room: Span) -> None:
        self.code = code
        self.room = room
        random, config = code.random, code.config
        size = min(_STORED, room.size)
        start = room.start
        self._content = bytearray(contents(random, size))
        self._known: list[tuple[int, Workspace]] = []
        # Loads: the workspace, what divides their bytes, the address, bytes.
        self._loaded: list[tuple[Workspace, int, int, int]] = []
        first = start + _DESCRIPTORS * DESCRIPTOR_BYTES
        image = Span(first, start + size - first)
        for number in range(_DESCRIPTORS):
            workspace = random_workspace(
                random,
                image=image,
                window=random.choice((image, Span(first, start + self.room.size - first))),
                alignment=config.scratchpad_alignment,
            )
            if number == _DESCRIPTORS - 1:
                workspace = spoiled_workspace(random, workspace, 1 << config.address_bits)
            place = number * DESCRIPTOR_BYTES
            self._content[place : place + DESCRIPTOR_BYTES] = workspace.pack()
            self._known.append((start + place, workspace))

    @property
    def stored(self) -> tuple[int, bytes]:
        """Address and content of descriptors and images."""
        return self.room.start, bytes(self._content)

    def change(self) -> None:
        """Append ``set.ws`` of a valid workspace."""
        self._declare()

    def _declare(self) -> Workspace:
        """Append ``set.ws`` of a valid workspace; returns the workspace."""
        descriptor, workspace = self.code.random.choice(self._known[:-1])
        self.code.emit("set.ws", self.code.address(descriptor))
        self.code.workspace = workspace
        return workspace

    def load(self) -> None:
        """Append a load from the window or from the image, often a repeated one."""
        code, random = self.code, self.code.random
        rows = [row for row in code.config.rows if row.opcode == Opcode.LD_SRAM]
        if not rows:
            return
        row = random.choice(rows)
        assert row.width is not None
        workspace = code.workspace or self._declare()
        place, room = random.choice(
            (
                *3 * ((workspace.window, workspace.window_bytes),),
                (workspace.image, workspace.image_bytes),
            )
        )
        longest = min(code.config.scratchpad_bytes, room)
        size = min(random.choice((*range(1, 33), 64, 100, 300, longest)), longest)
        step = max(row.width.bytes, code.config.scratchpad_alignment)
        size -= size % step
        last = room - size
        offset = random.choice((0, last, random.randint(0, last)))
        start = place + self._aligned(offset)
        earlier = [load for load in self._loaded if load[:2] == (workspace, step)]
        if earlier and random.random() < 0.5:
            _, _, start, size = random.choice(earlier[-4:])
        self._loaded.append((workspace, step, start, size))
        span = Span(code.scratchpad_address(size), size)
        if code.hazards.before_load(row, span):
            code.drain()
        code.emit(row.key, *code.addresses(span.start, start, size // row.width.bytes))

    def _aligned(self, offset: int) -> int:
        return offset & -self.code.config.scratchpad_alignment

    def fault(self) -> None:
        """Append either a valid ``set.ws`` and an access that the workspace forbids, or a
        ``set.ws`` that faults."""
        code, random = self.code, self.code.random
        rows = [row for row in code.config.rows if row.opcode in _ACCESSES]
        kinds = ("descriptor", "address", *(("access",) if rows else ()))
        kind = random.choice(kinds)
        if kind == "descriptor":
            code.emit("set.ws", code.address(self._known[-1][0]))
            return
        if kind == "address":
            top = 1 << code.config.address_bits
            bad = (self.room.start + random.randrange(1, 32), top, top + 8, -32, 1 << 62)
            code.emit("set.ws", code.address(random.choice(bad)))
            return
        declared = self._declare()
        row = random.choice(rows)
        assert row.width is not None
        width = row.width.bytes
        parts = [(declared.window, declared.window_bytes)]
        if row.opcode in (Opcode.ST_SRAM, Opcode.ST_REG):
            parts.append((declared.image, declared.image_bytes))
        start, size = random.choice(parts)
        if row.opcode in (Opcode.LD_REG, Opcode.ST_REG):
            place = (start + random.randrange(size)) // width * width
            register = code.data_register()
            pair = (register, code.address(place))
            code.emit(row.key, *(pair if row.opcode == Opcode.LD_REG else pair[::-1]))
            return
        step = max(width, code.config.scratchpad_alignment)
        count = min(code.config.scratchpad_bytes, 8 * step) // step
        # Across its end.
        place = self._aligned(start + size - 1)
        scratchpad = code.scratchpad_address(count * step)
        where = [scratchpad, place] if row.opcode == Opcode.LD_SRAM else [place, scratchpad]
        code.emit(row.key, *code.addresses(*where, count * step // width))


_ACCESSES = (Opcode.LD_SRAM, Opcode.ST_SRAM, Opcode.LD_REG, Opcode.ST_REG)
