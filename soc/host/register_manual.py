"""Generates the host register manual, ``docs/registers.md``.

``python -m soc.host.register_manual`` writes it; a test compares the file with this module's
output.
"""

from collections.abc import Iterator
from pathlib import Path

from support.files import write_atomically

from .register_map import BLOCKS, MAP_ADDRESS_BITS, MAP_VERSION
from .register_types import WORD_BYTES, Block, Field, Register

#: Path of the manual.
MANUAL_PATH = Path(__file__).parents[2] / "docs" / "registers.md"

_INTRODUCTION = f"""# Host registers

Generated from `soc/host/register_map.py` by `python -m soc.host.register_manual`; do not edit.
Version {MAP_VERSION} of the map.

The control port of a chip is an AXI4-Lite subordinate of {WORD_BYTES * 8} data and
{MAP_ADDRESS_BITS} address bits. Registers are words of {WORD_BYTES} bytes; the two lowest address
bits are ignored, and unused bits read 0. The responses are:

- OKAY: done.
- DECERR: there is no such register, PE or vault on this chip.
- SLVERR: the register does not allow this access, or the value (each says which); a write without
  all strobes; a command while no PE is selected. It has no effect, except where a register says so.

Programs and commands go to the *selected* PEs; after reset all are selected. To run a program: wait
until no PE runs (`RUNNING`), select the PEs (`SELECT_ALL`, `SELECT`), write the program's words to
`PROGRAM`, the address of the parameter block to `PARAMETERS_LOW` and `PARAMETERS_HIGH` (or to those
of each PE), and its length to `START`; then wait for the interrupt or poll `RUNNING`.
`soc/host/driver.py` does this in Python. The DRAM keeps its contents; a faulted PE can run again.
"""


def _columns(rows: list[tuple[str, ...]], *heads: str) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _offset(register: Register) -> str:
    text = f"`{register.offset:#06x}`"
    if register.count > 1:
        text += f" + {register.stride} n, n < {register.count}"
    return text


def _reset(register: Register) -> str:
    return "" if register.reset is None else f"`{register.reset:#x}`"


def _bits(field: Field) -> str:
    high = field.low + field.bits - 1
    return f"{high}:{field.low}" if field.bits > 1 else f"{high}"


def _meaning(field: Field) -> str:
    if field.values is None:
        return field.doc + (" Signed." if field.signed else "")
    values = ", ".join(f"{value.value} {value.name.lower()}" for value in field.values)
    return f"{field.doc} {values}"


def _block(block: Block) -> Iterator[str]:
    pages = f"`{block.base:#07x}`"
    if block.pages > 1:
        pages += f" + {block.page_bytes} i, i < {block.pages}"
    yield f"\n## {block.name} at {pages}\n\n{block.doc}\n\n"
    yield _columns(
        [
            (
                f"`{register.name}`",
                _offset(register),
                register.access.value,
                _reset(register),
                register.doc,
            )
            for register in block.registers
        ],
        "register",
        "offset",
        "access",
        "reset",
        "",
    )
    for register in block.registers:
        if register.fields:
            yield f"\n`{register.name}`:\n\n"
            yield _columns(
                [
                    (
                        f"`{field.name}`",
                        _bits(field),
                        _meaning(field),
                    )
                    for field in register.fields
                ],
                "field",
                "bits",
                "",
            )


def manual() -> str:
    """The manual, in Markdown; depends only on the register map."""
    return _INTRODUCTION + "".join(part for block in BLOCKS for part in _block(block))


def main() -> None:
    """Write the manual to :data:`MANUAL_PATH`.

    Raises:
        OSError: the file can't be written.
    """
    write_atomically(MANUAL_PATH, manual().encode())


if __name__ == "__main__":
    main()
