"""Values at ports from waveform files, good and bad."""

from pathlib import Path

import pytest

from sim_tb.runner.port_trace import TraceError, read_signals

_HEAD = """$timescale 1ps $end
$scope module top $end
$var wire 1 a clk $end
$var wire 8 b data [7:0] $end
$scope module inner $end
$var wire 1 c data $end
$upscope $end
$upscope $end
$enddefinitions $end
"""


def test_values_just_before_each_edge(tmp_path: Path) -> None:
    path = tmp_path / "a.vcd"
    changes = [
        "#0\n0a\nbxxxxxxxx b\n1c",
        "#5\n1a\nb101 b",  # the edge sees what is undefined, as 0
        "#10\n0a",
        "#15\n1a\nb11 b",  # 5
        "#20\n0a\nb1111 b",
        "#25\n1a",  # 15, as of the change in the middle of the cycle
    ]
    path.write_text(_HEAD + "\n".join(changes) + "\n")
    assert read_signals(path, "top") == {"clk": [0, 0, 0], "data": [0, 5, 15]}


@pytest.mark.parametrize(
    ("text", "scope", "message"),
    [
        ("", "top", "ends before its signals"),
        ("nonsense", "top", "no VCD file"),
        (_HEAD, "bottom", "no signal 'clk' in a scope 'bottom'"),
        (_HEAD, "inner", "no signal 'clk' in a scope 'inner'"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, scope: str, message: str) -> None:
    path = tmp_path / "a.vcd"
    path.write_text(text)
    with pytest.raises(TraceError, match=message) as error:
        read_signals(path, scope)
    assert "\n" not in str(error.value)
