"""The assembler: text to :class:`isa.program.Program`.

Syntax as in thesis Figures 6.3 and 6.5; ``docs/isa.md`` is the reference.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isa.program import NAME_PATTERN, Program, SourceLine, leading_labels
from isa.table import (
    BY_KEY,
    CONSTANT_RANGE,
    LOAD_IMMEDIATE,
    Role,
    encode,
    find,
    load_constant,
    operand_range,
)
from support.errors import VipError, clipped, counted, printable, suggestion
from support.files import read_bytes

from .operands import (
    choose,
    constant_value,
    is_register_name,
    register_number,
)
from .syntax import (
    RESULTS,
    Expression,
    Line,
    LineError,
    Name,
    Statement,
    parse_line,
)

#: Most bytes of a source file: over a hundred per word of the longest program.
SOURCE_BYTES = 1 << 20

#: Most characters of a quoted line, and of a message.
_EXCERPT_CHARACTERS = 160
_MESSAGE_CHARACTERS = 400

#: Mistakes that a message shows.
_MOST_MISTAKES = 20

_WORDS = range(1 << 32)
_NAME = re.compile(NAME_PATTERN)
#: The beginning of a line that defines a name.
_DEFINITION = re.compile(rf"(?:\s*{NAME_PATTERN}:)*\s*\.(equ|reg)\s+({NAME_PATTERN})")
#: Directive -> its arguments.
_DIRECTIVES = {".equ": "NAME, value", ".reg": "NAME, register", ".word": "value"}


class AssemblyError(VipError):
    """Mistakes in a program, each as ``file:line:column: message``, the line, and a caret below.

    Attributes:
        message: the mistake.
        file: name of the source.
        line, column: from 1; 0 when the mistake belongs to no line (a file that can't be read).
        text: of the line.
        rest: the further mistakes, in the order of their lines; the message shows the first twenty.
    """

    def __init__(
        self,
        message: str,
        file: str,
        line: int = 0,
        column: int = 0,
        text: str = "",
        rest: "tuple[AssemblyError, ...]" = (),
    ) -> None:
        # All of them as arguments of the exception, so that it can be pickled.
        super().__init__(message, file, line, column, text, rest)
        self.rest = rest
        self.lines = 3 * min(_MOST_MISTAKES, 1 + len(rest)) + (len(rest) >= _MOST_MISTAKES)
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.text = text

    def __str__(self) -> str:
        shown = [self, *self.rest[: _MOST_MISTAKES - 1]]
        parts = [error._described() for error in shown]
        if left := 1 + len(self.rest) - len(shown):
            parts.append(f"and {counted(left, 'more mistake')}")
        return "\n".join(parts)

    def _described(self) -> str:
        if not self.line:
            return printable(f"{self.file}: {self.message}")
        where = printable(f"{self.file}:{self.line}:{self.column}")
        message = clipped(printable(self.message), _MESSAGE_CHARACTERS)
        text, before = self._excerpt()
        # Tabs stay, so the caret lines up however wide they are.
        indent = re.sub(r"[^\t]", " ", text[:before].ljust(before))
        return f"{where}: {message}\n{text}\n{indent}^"

    def _excerpt(self) -> tuple[str, int]:
        """The excerpt of the line to show, and how much of it precedes the caret."""
        start = max(0, self.column - 1 - _EXCERPT_CHARACTERS // 2)
        end = start + _EXCERPT_CHARACTERS
        # One character for each, so the caret still lines up.
        text = "".join(
            char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}"
            for char in self.text[start:end]
        )
        left = "... " if start else ""
        right = " ..." if end < len(self.text) else ""
        return left + text + right, len(left) + self.column - 1 - start


def assemble(
    text: str,
    *,
    name: str = "<assembly>",
    constants: Mapping[str, int] | None = None,
    max_words: int | None = None,
) -> Program:
    """Assemble a program.

    Parameters:
        text: the source.
        name: of the source, for messages and listings.
        constants: named constants that the source may use in addition to its own.
        max_words: refuse a longer program (a machine's instruction buffer).

    Raises:
        AssemblyError: the mistakes in the source, or a bad name in ``constants``.
    """
    lines = tuple(line.removesuffix("\r") for line in text.split("\n"))
    return _Assembler(name, lines, dict(constants or {}), max_words).run()


def assemble_file(
    path: Path | str,
    *,
    constants: Mapping[str, int] | None = None,
    max_words: int | None = None,
) -> Program:
    """Assemble the file ``path``; see :func:`assemble`.

    Raises:
        AssemblyError: as there, or the file can't be read.
    """
    try:
        # Some editors begin a file with a byte order mark.
        text = read_bytes(path, SOURCE_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise AssemblyError(f"can't be read: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8-sig")
        byte = error.object[error.start]
        line = before.count("\n") + 1
        raise AssemblyError(
            f"line {line} is not UTF-8 text (byte {byte:#x}); save the file as UTF-8", str(path)
        ) from error
    return assemble(text, name=str(path), constants=constants, max_words=max_words)


@dataclass
class _Assembler:
    name: str
    lines: tuple[str, ...]
    constants: dict[str, int]
    max_words: int | None
    words: list[int] = field(default_factory=list)
    symbols: dict[str, int] = field(default_factory=dict)
    aliases: dict[str, int] = field(default_factory=dict)
    source: dict[int, SourceLine] = field(default_factory=dict)
    #: Address of a branch -> its label, which may be defined further down.
    branches: dict[int, Name] = field(default_factory=dict)
    #: Name -> its kind and the place of its definition.
    defined: dict[str, str] = field(default_factory=dict)

    def run(self) -> Program:
        for name, value in self.constants.items():
            if value not in RESULTS:
                raise AssemblyError(
                    f"the constant {clipped(name, _EXCERPT_CHARACTERS)!r} goes beyond 128 bits",
                    file=self.name,
                )
            if not _NAME.fullmatch(name):
                raise AssemblyError(
                    f"{clipped(name, _EXCERPT_CHARACTERS)!r} can't be the name of a constant",
                    file=self.name,
                )
            self.defined[name] = "a constant given to the assembler"
        mistakes: list[AssemblyError] = []
        for number, text in enumerate(self.lines, 1):
            try:
                self.line(number, parse_line(text))
            except LineError as error:
                mistakes.append(self.error(number, error))
                self.recover(text)
            if self.max_words is not None and len(self.words) > self.max_words:
                # Labels of the lines from here on are not known.
                break
        too_long = self.max_words is not None and len(self.words) > self.max_words
        for address, target in () if too_long else self.branches.items():
            # The word that makes a program too long has no source.
            if address not in self.source:
                continue
            try:
                self.words[address] = self.resolve(address, target)
            except LineError as error:
                mistakes.append(self.error(self.source[address].line, error))
        if mistakes:
            first, *rest = sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column))
            place = (first.line, first.column, first.text)
            raise AssemblyError(first.message, first.file, *place, tuple(rest))
        return Program(tuple(self.words), self.symbols, self.constants, self.source)

    def error(self, number: int, error: LineError) -> AssemblyError:
        return AssemblyError(
            error.message,
            file=self.name,
            line=number,
            column=error.column,
            text=self.lines[number - 1],
        )

    def recover(self, text: str) -> None:
        """Define what a line with a mistake defines, so that its uses are not called undefined."""
        for label in leading_labels(text):
            self.symbols.setdefault(label, len(self.words))
        if match := _DEFINITION.match(text):
            self.defined.setdefault(match[2], "a constant" if match[1] == "equ" else "a register")
            names: dict[str, int] = self.constants if match[1] == "equ" else self.aliases
            names.setdefault(match[2], 1)

    def line(self, number: int, line: Line) -> None:
        labels, body = line
        for label in labels:
            self.define(label, "a label", number)
            self.symbols[label.text] = len(self.words)
        if body is None:
            return
        start = len(self.words)
        if body.mnemonic.startswith("."):
            self.directive(number, body)
        else:
            self.statement(body)
        if self.max_words is not None and len(self.words) > self.max_words:
            raise LineError(f"the program is longer than {self.max_words} words", body.column)
        source = SourceLine(self.name, number, self.lines[number - 1])
        self.source.update(dict.fromkeys(range(start, len(self.words)), source))

    def define(self, name: Name, role: str, number: int) -> None:
        if not _NAME.fullmatch(name.text):
            raise LineError(f"{name.text} is a register and can't be {role}", name.column)
        if name.text in self.defined:
            raise LineError(f"{name.text!r} is already {self.defined[name.text]}", name.column)
        self.defined[name.text] = f"{role} (line {number})"

    def directive(self, number: int, directive: Statement) -> None:
        form = _DIRECTIVES.get(directive.mnemonic)
        if form is None:
            near = suggestion(directive.mnemonic, _DIRECTIVES)
            near = near or f"; there are {', '.join(_DIRECTIVES)}"
            raise LineError(f"unknown directive {directive.mnemonic}{near}", directive.column)
        arguments = directive.operands
        if len(arguments) != form.count(",") + 1:
            raise LineError(f"write {directive.mnemonic} {form}", directive.column)
        if directive.mnemonic == ".word":
            value = arguments[0].evaluate(self.constants)
            if value not in _WORDS:
                raise LineError(
                    f"a word must be from 0 to {_WORDS[-1]:#x}, not {value:#x}",
                    arguments[0].column,
                )
            self.words.append(value)
            return
        name, meaning = arguments
        if not isinstance(name, Name):
            raise LineError(f"a name must come first: {directive.mnemonic} {form}", name.column)
        if directive.mnemonic == ".equ":
            value = meaning.evaluate(self.constants)
            self.define(name, "a constant", number)
            self.constants[name.text] = value
            return
        if not isinstance(meaning, Name):
            raise LineError(f"write {directive.mnemonic} {form}", meaning.column)
        register = register_number(meaning, self.aliases)
        self.define(name, "a register's name", number)
        self.aliases[name.text] = register

    def statement(self, statement: Statement) -> None:
        if statement.mnemonic == LOAD_IMMEDIATE:
            self.load_immediate(statement)
            return
        row = choose(statement)
        values = []
        target = None
        for index, (operand, written) in enumerate(
            zip(row.operands, statement.operands, strict=True), 1
        ):
            if operand.is_register:
                values.append(self.register(written))
            elif not isinstance(written, Name):
                label = f"operand {index} of {statement.mnemonic}"
                hint = f"; {LOAD_IMMEDIATE} takes any" if row is BY_KEY["mov.imm"] else ""
                if row.scalar is not None and operand.role is not Role.SHIFT:
                    hint = f"; {LOAD_IMMEDIATE} loads a larger constant into a register"
                allowed = operand_range(operand)
                values.append(constant_value(label, written, allowed, self.constants, hint))
            else:
                self.check_label(written)
                target = written
                values.append(0)
        if target is not None:
            self.branches[len(self.words)] = target
        self.words.append(encode(row, values))

    def register(self, written: Expression) -> int:
        if isinstance(written, Name) and written.text in self.constants:
            raise LineError(
                f"{written.text!r} is a constant, not a register; a constant operand is written "
                f"#{written.text}",
                written.column,
            )
        return register_number(written, self.aliases)

    def check_label(self, written: Name) -> None:
        definition = self.defined.get(written.text, "")
        if written.text in self.aliases or is_register_name(written.text):
            raise LineError(f"{written.text} is a register, not a label", written.column)
        if written.text in self.constants:
            raise LineError(
                f"{written.text!r} is {definition}, not a label; a distance is written "
                f"#{written.text}",
                written.column,
            )

    def load_immediate(self, statement: Statement) -> None:
        if statement.width is not None:
            raise LineError(f"{LOAD_IMMEDIATE} takes no width", statement.width_column)
        operands = statement.operands
        if len(operands) == 2 and isinstance(operands[1], Name):
            name = operands[1]
            if name.text not in self.aliases and not is_register_name(name.text):
                raise LineError(f"a constant operand is written #{name.text}", name.column)
        if len(operands) != 2 or isinstance(operands[1], Name):
            raise LineError(f"write {LOAD_IMMEDIATE} register, #constant", statement.column)
        register = register_number(operands[0], self.aliases)
        label = f"operand 2 of {LOAD_IMMEDIATE}"
        value = constant_value(label, operands[1], CONSTANT_RANGE, self.constants)
        for key, immediate in load_constant(value):
            row = BY_KEY[key]
            registers = [register] * (len(row.operands) - 1)
            self.words.append(encode(row, [*registers, immediate]))

    def resolve(self, address: int, target: Name) -> int:
        """The branch at ``address``, with its distance to ``target``."""
        place = self.symbols.get(target.text)
        if place is None:
            raise _undefined(target, self.symbols)
        row = find(self.words[address])
        assert row is not None
        bits, distance = row.operands[-1].field, place - address
        allowed = bits.range
        if distance not in allowed:
            raise LineError(
                f"{target.text!r} is {distance} words away; {row.mnemonic} reaches "
                f"{allowed[0]} to {allowed[-1]}",
                target.column,
            )
        return self.words[address] | bits.insert(distance)


def _undefined(target: Name, labels: Collection[str]) -> LineError:
    near = suggestion(target.text, labels)
    return LineError(f"label {target.text!r} is not defined{near}", target.column)
