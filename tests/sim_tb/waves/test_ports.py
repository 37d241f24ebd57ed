"""Values at ports from waveform files, good and bad."""

from pathlib import Path

import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.run import Launch
from pe.config import PeConfig
from pe.interface import PeState
from sim_tb.cosim.engine import PeSimulation
from sim_tb.dut.engine import TOP
from sim_tb.waves.cycles import TraceError, read_signals

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
        "#30",
    ]
    path.write_text(_HEAD + "\n".join(changes) + "\n")
    assert read_signals(path, "top") == {"clk": [0, 0, 0], "data": [0, 5, 15]}


@pytest.mark.parametrize(
    ("text", "scope", "message"),
    [
        ("", "top", "ends before its signals"),
        ("nonsense", "top", "not a VCD file"),
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


def test_ports_of_an_engine_are_read_from_its_waveforms(tmp_path: Path) -> None:
    config = PeConfig(instructions=frozenset({"halt", "mov.imm"}), address_bits=12)
    memory = DramImage(1 << config.address_bits)
    program = assemble("mov r1, #5\nhalt\n")
    with memory, PeSimulation(config, trace=tmp_path / "ports.vcd", ports_only=True) as simulation:
        result = simulation.run(Launch(program=program, max_cycles=500), memory)
    signals = read_signals(tmp_path / "ports.vcd", TOP)
    assert {len(history) for history in signals.values()} == {len(signals["clk"])}
    states = [status & 3 for status in signals["control__status"]]
    assert states.count(PeState.RUNNING.value) == result.elapsed_cycles
