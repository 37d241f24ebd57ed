"""The part of a waveform file in some clock cycles."""

from pathlib import Path

from isa.support.files import write_atomically
from sim_tb.runner.port_trace import TraceError

from .cycles import signal_names

__all__ = ["cut_waves"]


def cut_waves(path: Path, target: Path, first: int, last: int) -> None:
    """Write the cycles ``first`` to ``last`` of the VCD file ``path`` to ``target``, at their times
    there and with the values of all signals at the start.

    Parameters:
        path: a file as Verilator writes it. first, last: cycles as :func:`read_cycles` counts them,
            from 0 on.

    Raises:
        TraceError: the file is no VCD, has no clock, or ends before cycle ``first``.
        OSError: a file can't be read or written.
    """
    names = signal_names(path)
    clock = min((name for name in names if name.endswith(".clk")), key=len, default="")
    if not clock:
        raise TraceError(f"{path}: no signal of a clock")
    rising = b"1" + names[clock].encode()
    header: list[bytes] = []
    # Signal -> the line of its value, at the start of the time that is read.
    values: dict[bytes, bytes] = {}
    cut: list[bytes] = []
    cycle, time, now = -1, b"#0\n", [b""]
    with path.open("rb") as file:
        for line in file:
            header.append(line)
            if line.startswith(b"$enddefinitions"):
                break
        now.clear()
        for line in file:
            if not line.startswith(b"#"):
                now.append(line)
                continue
            cycle = _add(cycle, time, now, rising, values, cut, (first, last))
            if cycle > last:
                break
            time = line
        else:
            _add(cycle, time, now, rising, values, cut, (first, last))
    if not cut:
        raise TraceError(f"{path}: it ends before clock cycle {first}")
    write_atomically(target, b"".join([*header, *cut]))


def _add(
    cycle: int,
    time: bytes,
    now: list[bytes],
    rising: bytes,
    values: dict[bytes, bytes],
    cut: list[bytes],
    wanted: tuple[int, int],
) -> int:
    """Take the changes ``now`` of ``time`` over, and empty them; the cycle that they belong to."""
    changes = [line for line in now if line[:1] in b"01xzbr" and line.strip()]
    now.clear()
    cycle += any(line.rstrip() == rising for line in changes)
    first, last = wanted
    if cut and cycle <= last:
        cut += [time, *changes]
    if cut:
        return cycle
    for line in changes:
        code = line.split()[1] if line[:1] in b"br" else line[1:].strip()
        values[code] = line
    if cycle >= first:
        cut += [time, b"$dumpvars\n", *values.values(), b"$end\n"]
    return cycle
