"""The disassembler: from words back to text that assembles to exactly the same words."""

from collections.abc import Iterable, Mapping, Sequence

from isa.program import Program
from isa.table import Instruction, Role, decode, operand_range

_INDENT = "    "


def instruction_text(row: Instruction, values: Sequence[int], target: str | None = None) -> str:
    """An instruction as assembly writes it.

    Parameters:
        row, values: as :func:`isa.table.decode` returns them.
        target: label to write for the target of a branch; None: its distance.
    """
    operands = []
    for operand, value in zip(row.operands, values, strict=True):
        if operand.is_register:
            operands.append(f"r{value}")
        elif operand.role is Role.TARGET and target is not None:
            operands.append(target)
        else:
            operands.append(f"#{value}")
    name = row.mnemonic.removesuffix(".imm")
    if row.width is not None:
        name += f" [{row.width.bits}-bit]"
    return f"{name} {', '.join(operands)}".rstrip()


def disassemble(program: Program | Iterable[int]) -> str:
    """Assembly text of a program or of bare instruction words (32 bits each).

    Branches within the program get labels: the program's own, or ``L`` and the address. Words that
    assembly can't write become ``.word`` directives.

    Raises:
        isa.program.ProgramError: a word beyond 32 bits.
    """
    if not isinstance(program, Program):
        program = Program(tuple(program))
    decoded = [decode(word) for word in program.words]
    labels = _labels(program, decoded)
    at: dict[int, list[str]] = {address: [name] for address, name in labels.items()}
    for name, address in program.symbols.items():
        if name not in at.setdefault(address, []):
            at[address].append(name)
    lines = []
    for address, (word, instruction) in enumerate(zip(program.words, decoded, strict=True)):
        lines += [f"{name}:" for name in at.get(address, [])]
        lines.append(_INDENT + _line(address, word, instruction, labels))
    lines += [f"{name}:" for name in at.get(len(program.words), [])]
    return "".join(f"{line}\n" for line in lines)


def located(program: Program, address: int) -> str:
    """The place of the word at ``address``, source line or address, and its instruction:
    ``kernel.s:3: ld.reg [64-bit] r9, r1``."""
    source = program.source.get(address)
    place = f"word {address}" if source is None else f"{source.file}:{source.line}"
    return f"{place}: {text_at(program, address)}"


def text_at(program: Program, address: int) -> str:
    """The word at ``address`` as assembly writes it, with the label of a branch if it has one."""
    names = {at: name for name, at in reversed(list(program.symbols.items()))}
    word = program.words[address]
    return _line(address, word, decode(word), names)


def _line(
    address: int,
    word: int,
    instruction: tuple[Instruction, tuple[int, ...]] | None,
    labels: Mapping[int, str],
) -> str:
    if instruction is None:
        return f".word 0x{word:08x}"
    row, values = instruction
    target = labels.get(address + values[-1]) if _branches(row) else None
    text = instruction_text(row, values, target)
    if any(
        value not in operand_range(operand)
        for operand, value in zip(row.operands, values, strict=True)
    ):
        return f".word 0x{word:08x} ; {text}"
    return text


def _branches(row: Instruction) -> bool:
    return bool(row.operands) and row.operands[-1].role is Role.TARGET


def _labels(
    program: Program, decoded: Sequence[tuple[Instruction, tuple[int, ...]] | None]
) -> dict[int, str]:
    """Address -> label, for every address within the program that a branch goes to."""
    symbols = {address: name for name, address in reversed(list(program.symbols.items()))}
    labels: dict[int, str] = {}
    for address, instruction in enumerate(decoded):
        if instruction is None or not _branches(instruction[0]):
            continue
        target = address + instruction[1][-1]
        if 0 <= target <= len(program.words) and target not in labels:
            name = symbols.get(target, f"L{target}")
            while target not in symbols and name in program.symbols:
                name += "_"
            labels[target] = name
    return dict(sorted(labels.items()))
