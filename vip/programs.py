"""Programs from assembly or a file, and the memory before and after their runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from isa.assembly.assembler import assemble as assemble_text
from isa.assembly.assembler import assemble_file
from isa.program import Program, ProgramError
from pe.config import PeConfig
from support.errors import VipError
from support.files import check_regular

if TYPE_CHECKING:
    # The assembler does not need it.
    from numpy.typing import NDArray

    from isa.image import DramImage

#: Default limit of instructions or cycles per run.
LIMIT = 100_000_000
#: Endings of assembly files.
ENDINGS = (".s", ".asm")
#: Endings of files that look like a memory image to those who made them.
_NO_IMAGES = frozenset(
    (
        ".npy",
        ".npz",
        ".csv",
        ".txt",
        ".hex",
        ".mem",
        ".png",
        ".jpg",
        ".jpeg",
        ".onnx",
        ".vip",
        *ENDINGS,
    )
)


class DumpError(VipError):
    """A dump includes bytes outside the memory."""


class Dump(NamedTuple):
    """Bytes of memory to read after a run.

    Attributes:
        address, size: the first byte, and how many.
        path: file to write them to; None: the result has them.
    """

    address: int
    size: int
    path: Path | None = None

    def check(self, memory_bytes: int) -> None:
        """Reject bytes outside a memory of ``memory_bytes``.

        Raises:
            DumpError: a byte is outside.
        """
        if self.address < 0 or self.size < 0 or self.address + self.size > memory_bytes:
            raise DumpError(
                f"dump {self.address:#x} {self.size}: the bytes must be within 0 to "
                f"{memory_bytes:#x}, the memory's end"
            )

    def take(self, image: "DramImage") -> bytes:
        """The bytes in ``image``; with a :attr:`path`, write them there and return none.

        Raises:
            OSError: the file can't be written.
        """
        if self.path is None:
            return image.read(self.address, self.size)
        image.save_file(self.address, self.size, self.path)
        return b""


def memory_contents(
    memory: "bytes | bytearray | NDArray[Any] | Path | str | None",
) -> bytes | Path | None:
    """The bytes of ``memory``, or the path of its file; None: there are none.

    Raises:
        VipError: ``memory`` is something else, its elements are not little-endian integers, or the
            name of its file ends as that of a picture, a program, or an array of NumPy's.
    """
    if memory is None or isinstance(memory, bytes):
        return memory
    if isinstance(memory, bytearray):
        return bytes(memory)
    if isinstance(memory, Path | str):
        if Path(memory).suffix.lower() in _NO_IMAGES:
            raise VipError(
                f"{memory}: a memory image is bytes alone; array.tofile('image.bin') of NumPy "
                "writes one"
            )
        return Path(memory)
    if hasattr(memory, "tobytes"):
        _check_elements(getattr(memory, "dtype", None))
        return memory.tobytes()
    raise VipError(f"memory is bytes, an array or a file, not of type {type(memory).__name__}")


def _check_elements(dtype: Any) -> None:
    """Refuse elements that the machine can't compute with; None: plain bytes.

    Raises:
        VipError: ``dtype`` is of floating point, objects and the like, or big-endian.
    """
    if getattr(dtype, "kind", "u") in "fcOMmU":
        raise VipError(
            f"memory has elements of {dtype}; the machine computes with integers: scale them to "
            "fixed point, then .astype('<i2') for elements of 16 bits"
        )
    if getattr(dtype, "byteorder", "<") == ">":
        raise VipError(
            f"memory has elements of {dtype}; those of the machine are little-endian: "
            f".astype('<{dtype.str[1:]}')"
        )


def check_size(memory: bytes | Path | None, size: int) -> None:
    """Refuse ``memory``, bytes or a file, that is larger than a memory of ``size`` bytes.

    Raises:
        VipError: it is larger. OSError: the file can't be read.
    """
    contents = check_regular(memory) if isinstance(memory, Path) else len(memory or b"")
    if contents > size:
        name = f"{memory}: its" if isinstance(memory, Path) else "the memory's"
        raise VipError(
            f"{name} {contents:,} bytes don't fit the memory of {size:,} bytes; "
            "shorten it, or choose a preset with more memory"
        )


def fill(image: "DramImage", memory: bytes | Path | None) -> None:
    """Write ``memory``, bytes or a file, to ``image`` from address 0 on; None: nothing.

    Raises:
        VipError: it is larger than the image. OSError: the file can't be read.
    """
    check_size(memory, image.size)
    if isinstance(memory, bytes):
        image.write(0, memory)
    elif memory is not None:
        image.load_file(0, memory)


def assemble(
    source: str | Path,
    *,
    constants: Mapping[str, int] | None = None,
    max_words: int | None = PeConfig().instruction_words,
) -> Program:
    """Assemble a program.

    ``assemble("mov r1, #42\\nhalt")`` assembles text, ``assemble(Path("kernel.s"))`` a file.

    Parameters:
        source: assembly text, or the path of its file.
        constants: named constants that the source may use besides its own.
        max_words: a longer program is an error; None: any length.

    Raises:
        AssemblyError: a mistake in the source, or an unreadable file.
        ProgramError: the source has no instruction, or the text is a file name.
    """
    if isinstance(source, str) and source.endswith(ENDINGS) and "\n" not in source:
        raise ProgramError(f"{source!r} is not assembly; to read a file: Path({source!r})")
    if isinstance(source, Path):
        program = assemble_file(source, constants=constants, max_words=max_words)
    elif isinstance(source, str):
        program = assemble_text(source, constants=constants, max_words=max_words)
    else:
        raise ProgramError(f"assembly is text or a Path, not of type {type(source).__name__}")
    if not program.words:
        where = source if isinstance(source, Path) else "<assembly>"
        raise ProgramError(f"{where}: there is no instruction in it")
    return program


def load_program(program: Program | Path | str, words: int | None = None) -> Program:
    """The program that a verb's argument stands for.

    Parameters:
        program: a program, or the name or path of a program file or of assembly (``.s``, ``.asm``),
            which is assembled.
        words: of the engine's instruction buffer; None: any number.

    Raises:
        VipError: the program is unreadable, invalid, too long, or has no instruction.
    """
    if isinstance(program, str):
        if "\n" in program:
            raise ProgramError("a program is a Program or a file; vip.assemble assembles text")
        program = Path(program)
    where = f"{program}: " if isinstance(program, Path) else ""
    if isinstance(program, Path):
        if program.suffix in ENDINGS:
            program = assemble(program, max_words=None)
        else:
            program = Program.load(program)
    if not isinstance(program, Program):
        raise ProgramError(
            f"a program is a Program or a file, not of type {type(program).__name__}"
        )
    if not program.words:
        raise ProgramError(f"{where}there is no instruction in it")
    if words is not None and len(program.words) > words:
        raise ProgramError(
            f"{where}the program has {len(program.words)} words, the engine's buffer {words}"
        )
    return program
