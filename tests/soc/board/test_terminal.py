"""The serial line of the operating system, as a pseudo-terminal."""

import os
import pty

import pytest

from soc.board.terminal import RATES, Terminal, line_rate
from soc.host.transport import HostError


def test_all_bytes_pass_both_ways():
    chip, other = pty.openpty()
    with Terminal(os.ttyname(other), RATES[0]) as line:
        line.send(bytes(range(256)))
        content = b""
        while len(content) < 256:
            content += os.read(chip, 256)
        assert content == bytes(range(256))
        assert line.receive(0.01) == b""
        os.write(chip, bytes(range(255, -1, -1)))
        assert line.receive(1) == bytes(range(255, -1, -1))
        # Its end, and not yet the line's.
        os.close(chip)
        with pytest.raises(HostError, match=r": the line broke .*; is it still plugged in\?$"):
            line.receive(1)
    os.close(other)


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing", r"missing: there is no such port"), ("file", r"file: not a serial port$")],
)
def test_no_serial_port(tmp_path, name, message):
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match=message):
        Terminal(tmp_path / name, RATES[0])


def test_rates():
    assert line_rate(60) == (3_000_000, 20)
    assert line_rate(50) == (2_000_000, 25)
    assert line_rate(25) == (1_000_000, 25)
    assert line_rate(10) == (1_000_000, 10)
    for mhz in range(8, 200):
        rate, divisor = line_rate(mhz)
        assert abs(mhz * 1e6 / divisor / rate - 1) <= 0.015
