"""Programs in the formats of hosts and simulators: plain words, without symbols."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from .program import Program

__all__ = ["FORMATS", "binary", "hexadecimal", "memory_file"]

_WORD_BYTES = 4


def hexadecimal(program: Program) -> bytes:
    """A line a word, eight hexadecimal digits."""
    return "".join(f"{word:08x}\n" for word in program.words).encode()


def binary(program: Program) -> bytes:
    """The words as they lie in a host's memory: four bytes each, the lowest first."""
    return b"".join(word.to_bytes(_WORD_BYTES, "little") for word in program.words)


def memory_file(program: Program) -> bytes:
    """For Verilog's ``$readmemh``: from address 0 on, with labels and sources as comments."""
    labels: dict[int, list[str]] = {}
    for name, address in program.symbols.items():
        labels.setdefault(address, []).append(name)
    lines = ["@0"]
    for address, word in enumerate(program.words):
        lines += [f"// {_comment(name)}:" for name in labels.get(address, ())]
        source = program.source.get(address)
        lines.append(f"{word:08x}" + (f" // {_comment(source.text)}" if source else ""))
    return "".join(f"{line}\n" for line in lines).encode()


def _comment(text: str) -> str:
    """``text`` on one line, in ASCII: a simulator need not read more."""
    return " ".join(text.split()).encode("ascii", "replace").decode()


#: Name -> function that writes the format.
FORMATS: Mapping[str, Callable[[Program], bytes]] = MappingProxyType(
    {"hex": hexadecimal, "bin": binary, "mem": memory_file}
)
