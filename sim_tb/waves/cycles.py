"""Cycle-by-cycle values of any signals of a design, from a waveform file."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from support.errors import VipError


class TraceError(VipError):
    """A waveform file lacks the requested signals; the message says which."""


def signal_names(path: Path) -> dict[str, str]:
    """Signal with its scopes (``top.unit.signal``) -> its code in the VCD file.

    Raises:
        TraceError: the file is not a VCD file. OSError: the file can't be read.
    """
    return {name: words[3] for name, words in declared_signals(path).items()}


def clock_name(names: Iterable[str]) -> str:
    """The design's clock among signals with their scopes; "" if there is none."""
    return min((name for name in names if name.endswith(".clk")), key=len, default="")


def declared_signals(path: Path) -> dict[str, list[str]]:
    """Signal with its scopes -> the words of its declaration in the VCD file: ``$var``, kind,
    width, code, name, the parts of its bit range, ``$end``. Errors as for :func:`signal_names`."""
    signals: dict[str, list[str]] = {}
    scopes: list[str] = []
    # pyvcd refuses the names of array elements that Verilator writes.
    with path.open("rb") as file:
        for line in file:
            words = line.decode("utf-8", "replace").split()
            if words[:1] == ["$scope"] and len(words) > 2:
                scopes.append(words[2])
            elif words[:1] == ["$upscope"] and scopes:
                scopes.pop()
            elif words[:1] == ["$var"] and len(words) > 4:
                signals[".".join((*scopes, words[4]))] = words
            elif words[:1] == ["$enddefinitions"]:
                return signals
    raise TraceError(f"{path}: not a VCD file: it ends before its signals")


def read_cycles(path: Path, clock: str, signals: Sequence[str]) -> Iterator[list[int]]:
    """Values of ``signals`` just before each rising edge of ``clock``, in their order.

    Parameters:
        path: a VCD file with one bit or one vector per line, as written by Verilator.
        clock, signals: names as in :func:`signal_names`. A signal that the design lacks is 0;
            undefined bits are 0.

    Raises:
        TraceError: the file is not a VCD file, or has no such clock. OSError: the file can't be
            read.
    """
    codes = signal_names(path)
    if clock not in codes:
        raise TraceError(f"{path}: no signal {clock!r}")
    places: dict[bytes, list[int]] = {}
    for number, name in enumerate((clock, *signals)):
        if name in codes:
            places.setdefault(codes[name].encode(), []).append(number)
    edge = codes[clock].encode()
    values = [0] * (len(signals) + 1)
    changes: list[tuple[list[int], int]] = []
    rises = False
    with path.open("rb") as file:
        for line in file:
            if line.startswith(b"$enddefinitions"):
                break
        for line in file:
            kind = line[:1]
            if kind == b"#":
                if rises:
                    yield values[1:]
                for numbers, value in changes:
                    for number in numbers:
                        values[number] = value
                changes.clear()
                rises = False
            elif kind == b"b":
                text, code = line[1:].split()
                if code in places:
                    changes.append((places[code], _number(text)))
            elif kind in b"01xz" and kind:
                code = line[1:].strip()
                if code in places:
                    changes.append((places[code], int(kind == b"1")))
                    rises |= code == edge and kind == b"1" and not values[0]


def read_signals(path: Path, scope: str) -> dict[str, list[int]]:
    """Values of all signals of a scope just before each rising edge of its ``clk``, but the last
    time's.

    Parameters:
        path: a VCD file as for :func:`read_cycles`.
        scope: name of the scope with the signals, without its parents.

    Returns:
        Signal -> its value in each cycle; undefined bits are 0.

    Raises:
        TraceError: the file is not a VCD file, or has no such scope, or no clock in it.
        OSError: the file can't be read.
    """
    names = {}
    for name in signal_names(path):
        *scopes, signal = name.split(".")
        if scopes[-1:] == [scope]:
            names[signal] = name
    if "clk" not in names:
        raise TraceError(f"{path}: no signal 'clk' in a scope {scope!r}")
    cycles = list(read_cycles(path, names["clk"], list(names.values())))
    return {signal: [values[place] for values in cycles] for place, signal in enumerate(names)}


def _number(text: bytes) -> int:
    try:
        return int(text, 2)
    except ValueError:
        return int(text.translate(bytes.maketrans(b"xXzZ", b"0000")), 2)
