"""The part of a waveform file in some clock cycles, with texts beside its signals."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sim_tb.runner.port_trace import TraceError
from support.files import write_atomically

from .cycles import signal_names

__all__ = ["TEXTS", "Text", "cut_waves"]

#: Scope of the texts.
TEXTS = "instructions"
#: First and last cycle in which a text is shown, and the text; in between: nothing else.
Text = tuple[int, int, str]
#: As GTKWave reads them.
_ESCAPES = {" ": "\\x20", "\\": "\\\\"}


def cut_waves(
    path: Path,
    target: Path,
    first: int,
    last: int,
    texts: Mapping[str, Sequence[Text]] | None = None,
) -> None:
    """Write the cycles ``first`` to ``last`` of the VCD file ``path`` to ``target``, at their times
    there and with the values of all signals at the start.

    Parameters:
        path: a file as Verilator writes it. first, last: cycles, from 0 on, as
            :func:`sim_tb.waves.cycles.read_cycles` counts them; each ends with a rising edge.
        texts: signals of type ``string`` to be added in the scope :data:`TEXTS`: by name, texts in
            order.

    Raises:
        TraceError: the file is no VCD, has no clock, or ends before cycle ``first``.
        OSError: a file can't be read or written.
    """
    names = signal_names(path)
    clock = min((name for name in names if name.endswith(".clk")), key=len, default="")
    if not clock:
        raise TraceError(f"{path}: no signal of a clock")
    rising = b"1" + names[clock].encode()
    codes = {name: f"text{number}" for number, name in enumerate(texts or {})}
    text_at = {name: _by_cycle(intervals) for name, intervals in (texts or {}).items()}
    # Signal -> the line of its value, at the start of the time that is read.
    values: dict[bytes, bytes] = {}
    cut: list[bytes] = []
    before: dict[str, str] = {}
    cycle = -1
    with path.open("rb") as file:
        header = _header(file, codes)
        for time, changes in _times(file):
            edge = any(line.rstrip() == rising for line in changes)
            cycle += edge
            if cycle > last:
                break
            # What is shown from an edge on belongs to the next cycle.
            current = {code: text_at[name].get(cycle + 1, "") for name, code in codes.items()}
            added = [
                f"s{text} {code}\n".encode()
                for code, text in current.items()
                if edge and (not cut or text != before[code])
            ]
            before = current if edge else before
            if cut:
                cut += [time, *changes, *added]
                continue
            for line in changes:
                code = line.split()[1] if line[:1] in b"br" else line[1:].strip()
                values[code] = line
            if cycle >= first:
                cut += [time, b"$dumpvars\n", *values.values(), *added, b"$end\n"]
    if not cut:
        raise TraceError(f"{path}: it ends before clock cycle {first}")
    write_atomically(target, b"".join([*header, *cut]))


def _header(file: Iterator[bytes], codes: Mapping[str, str]) -> list[bytes]:
    """The lines up to the first time, with those of the texts."""
    header: list[bytes] = []
    for line in file:
        if line.startswith(b"$enddefinitions"):
            return [*header, *_declared(codes), line]
        header.append(line)
    return header


def _times(file: Iterator[bytes]) -> Iterator[tuple[bytes, list[bytes]]]:
    """The line of each time, and the lines of its changes."""
    time, changes = b"#0\n", list[bytes]()
    for line in file:
        if line.startswith(b"#"):
            yield time, changes
            time, changes = line, []
        elif line[:1] in b"01xzbr" and line.strip():
            changes.append(line)
    yield time, changes


def _declared(codes: Mapping[str, str]) -> list[bytes]:
    if not codes:
        return []
    lines = [f"$var string 1 {code} {name} $end" for name, code in codes.items()]
    lines = [f"$scope module {TEXTS} $end", *lines, "$upscope $end"]
    return [f"{line}\n".encode() for line in lines]


def _by_cycle(texts: Sequence[Text]) -> dict[int, str]:
    """Cycle -> its text, as a VCD file has it."""
    return {
        cycle: "".join(_ESCAPES.get(character, character) for character in text)
        for start, end, text in texts
        for cycle in range(start, end + 1)
    }
