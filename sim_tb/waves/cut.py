"""Cuts a range of clock cycles out of a waveform file and adds texts to it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from support.files import write_atomically

from .cycles import TraceError, signal_names

#: Scope of the texts.
TEXTS = "instructions"
#: First and last cycle of a text, and the text.
Text = tuple[int, int, str]
#: Escapes that GTKWave reads.
_ESCAPES = {" ": "\\x20", "\\": "\\\\"}


def cut_waves(
    path: Path,
    target: Path,
    first: int,
    last: int,
    texts: Mapping[str, Sequence[Text]] | None = None,
) -> None:
    """Write cycles ``first`` to ``last`` of the VCD file ``path`` to ``target``, with their times
    and the initial values of all signals.

    Parameters:
        path: a file written by Verilator. first, last: cycles, from 0 on, counted as in
            :func:`sim_tb.waves.cycles.read_cycles`; each ends with a rising edge.
        texts: name -> texts, in order, of a signal of type ``string`` added to the scope
            :data:`TEXTS`.

    Raises:
        TraceError: the file is not a VCD file, has no clock, or ends before cycle ``first``.
        OSError: a file can't be read or written.
    """
    names = signal_names(path)
    clock = min((name for name in names if name.endswith(".clk")), key=len, default="")
    if not clock:
        raise TraceError(f"{path}: there is no clock signal")
    rising = b"1" + names[clock].encode()
    codes = {name: f"text{number}" for number, name in enumerate(texts or {})}
    text_at = {name: _by_cycle(intervals) for name, intervals in (texts or {}).items()}
    # Signal -> the line of its value at the beginning of the time being read.
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
            # Values from an edge on belong to the next cycle.
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
    """The lines before the first time, with the declarations of the texts."""
    header: list[bytes] = []
    for line in file:
        if line.startswith(b"$enddefinitions"):
            return [*header, *_declared(codes), line]
        header.append(line)
    return header


def _times(file: Iterator[bytes]) -> Iterator[tuple[bytes, list[bytes]]]:
    """Each time's line, and the lines of its changes."""
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
    """Cycle -> its text, escaped for VCD."""
    return {
        cycle: "".join(_ESCAPES.get(character, character) for character in text)
        for start, end, text in texts
        for cycle in range(start, end + 1)
    }
