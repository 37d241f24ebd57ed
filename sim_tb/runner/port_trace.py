"""Values at an engine's ports, cycle by cycle, from a waveform file."""

from dataclasses import dataclass
from pathlib import Path

from vcd.reader import TokenKind, VCDParseError, tokenize

from support.errors import VipError


class TraceError(VipError):
    """A waveform file lacks the requested signals; the message says which."""


@dataclass
class _Signal:
    """A signal: its value, its value from the time being read on, and its values before each clock
    edge so far."""

    now: int
    next: int
    history: list[int]


def read_signals(path: Path, scope: str, clock: str = "clk") -> dict[str, list[int]]:
    """Values of all signals of a scope just before each rising clock edge.

    Parameters:
        path: a VCD file. scope: name of the scope with the signals, without its parents.
        clock: the signal whose rising edges separate the cycles.

    Returns:
        Signal -> its value in each cycle; an undefined one counts as 0.

    Raises:
        TraceError: the file is not a VCD file, or has no such scope or clock.
        OSError: the file can't be read.
    """
    names: dict[str, str] = {}
    signals: dict[str, _Signal] = {}
    scopes: list[str] = []

    def advance() -> None:
        """Apply all changes of one time."""
        edge = signals[names[clock]]
        if edge.next and not edge.now:
            for signal in signals.values():
                signal.history.append(signal.now)
        for signal in signals.values():
            signal.now = signal.next

    try:
        with path.open("rb") as file:
            for token in tokenize(file):
                if token.kind is TokenKind.CHANGE_SCALAR:
                    change = token.scalar_change
                    if change.id_code in signals:
                        signals[change.id_code].next = int(change.value == "1")
                elif token.kind is TokenKind.CHANGE_VECTOR:
                    vector = token.vector_change
                    if vector.id_code in signals:
                        # A value that is not a number is partly undefined.
                        value = vector.value if isinstance(vector.value, int) else 0
                        signals[vector.id_code].next = value
                elif token.kind is TokenKind.CHANGE_TIME:
                    advance()
                elif token.kind is TokenKind.SCOPE:
                    scopes.append(token.scope.ident)
                elif token.kind is TokenKind.UPSCOPE:
                    scopes.pop()
                elif token.kind is TokenKind.VAR and scopes and scopes[-1] == scope:
                    names[token.var.reference] = token.var.id_code
                elif token.kind is TokenKind.ENDDEFINITIONS:
                    if clock not in names:
                        raise TraceError(f"{path}: no signal {clock!r} in a scope {scope!r}")
                    signals = {code: _Signal(0, 0, []) for code in names.values()}
    except VCDParseError as error:
        raise TraceError(f"{path}: not a VCD file: {error}") from error
    if not signals:
        raise TraceError(f"{path}: not a VCD file: it ends before its signals")
    advance()
    return {name: signals[code].history for name, code in names.items()}
