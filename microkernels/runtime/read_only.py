"""Jobs whose program declares part of memory read-only, so that a load history can serve it."""

from dataclasses import replace

from isa.assembly.assembler import assemble
from isa.program import Program
from isa.table import REGISTERS, decode
from isa.workspace import DESCRIPTOR_BYTES, MOST_PIXELS, Workspace
from microkernels.common.errors import KernelError
from microkernels.common.memory import Writable

from .job import KernelJob

_PIXEL_BYTES = 32
#: Register for the descriptor's address.
_REGISTER = REGISTERS - 1


def _image(size: int, image: int, window: int) -> Workspace:
    """A workspace whose image has ``size`` bytes; nothing loads from its one-pixel window."""
    pixels = size // _PIXEL_BYTES
    for width in range(min(pixels, MOST_PIXELS), 0, -1):
        if pixels % width == 0 and pixels // width <= MOST_PIXELS:
            return Workspace(
                image=image,
                window=window,
                width=width,
                height=pixels // width,
                pixel_bytes=_PIXEL_BYTES,
                output_width=1,
                output_height=1,
                kernel=1,
            )
    raise KernelError(f"no workspace can have an image of {size} bytes")


def read_only_job(job: KernelJob, start: int, size: int) -> KernelJob:
    """Return ``job`` with a ``set.ws`` at the start of its programs. The image is ``size`` bytes of
    the job's memory from ``start`` on, where its engines must not store.

    Parameters:
        start, size: multiples of 32 bytes, within the job's memory.

    Raises:
        KernelError: the bytes are outside the job's memory or not multiples of 32, no image can
            have this size, or a program uses the last register.
    """
    if start % _PIXEL_BYTES or size % _PIXEL_BYTES or not size:
        raise KernelError(f"{start} and {size} must be multiples of {_PIXEL_BYTES} bytes")
    if start < 0 or size < 0 or start + size > job.end:
        raise KernelError(
            f"the part must lie within the job's {job.end} bytes, not from {start} to "
            f"{start + size}"
        )
    descriptor = -(-job.end // DESCRIPTOR_BYTES) * DESCRIPTOR_BYTES
    window = descriptor + DESCRIPTOR_BYTES
    content = _image(size, start, window).pack()

    def prepare(memory: Writable) -> None:
        job.prepare(memory)
        memory.write(descriptor, content)

    return replace(
        job,
        name=f"{job.name}, its image declared",
        launches=tuple(
            replace(launch, program=_declaring(launch.program, descriptor))
            for launch in job.launches
        ),
        prepare=prepare,
        end=window,
    )


def _names_register(word: int) -> bool:
    """Whether the instruction reads or writes :data:`_REGISTER`."""
    decoded = decode(word)
    if decoded is None:
        return False
    row, values = decoded
    return any(
        value == _REGISTER and operand.field in (*row.reads, row.writes)
        for operand, value in zip(row.operands, values, strict=True)
    )


def _declaring(program: Program, descriptor: int) -> Program:
    """``program`` with a declaration in front. Branches are relative, so its words don't change."""
    if any(map(_names_register, program.words)):
        raise KernelError(f"the program uses r{_REGISTER}, which the descriptor needs")
    source = (
        f"mov r{_REGISTER}, #{descriptor >> 13}\nsll r{_REGISTER}, r{_REGISTER}, #13\n"
        f"or r{_REGISTER}, r{_REGISTER}, #{descriptor & 0x1FFF}\nset.ws r{_REGISTER}\n"
    )
    return Program((*assemble(source).words, *program.words))
