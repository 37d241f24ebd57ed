"""The table of ports, against the Verilog that is emitted."""

import re
import subprocess
from pathlib import Path

import pytest

from isa.assembly.assembler import assemble
from soc.generate.designs import component
from soc.generate.generate import generate, verilog
from soc.generate.port_table import port_table, ports_of, verilog_names
from soc.generate.presets import PRESETS
from tests.soc.four_states.icarus import icarus

ROOT = Path(__file__).parents[2]

_PORT = re.compile(r"^  (input|output)(?: signed)? (?:\[(\d+):0\] )?(\w+) ?;", re.MULTILINE)


@pytest.mark.parametrize("name", ["pe-small", "vault-small", "tiny"])
def test_ports_are_those_of_the_verilog(name):
    config = PRESETS[name]
    emission = verilog(config)
    emitted = {
        port: (direction == "input", int(high or 0) + 1)
        for direction, high, port in _PORT.findall(emission.modules[emission.top])
    }
    assert emitted.pop("clk") == (True, 1)
    assert emitted.pop("rst") == (True, 1)
    listed = {
        shown: (port.is_input, port.bits)
        for port in ports_of(component(config))
        for shown in verilog_names(port)
    }
    assert listed == emitted


@pytest.mark.parametrize("name", ["pe", "vault", "tiny"])
def test_fields_cover_their_port_once(name):
    ports = ports_of(component(PRESETS[name]))
    assert any(port.fields for port in ports) == (name != "tiny")
    for port in ports:
        bits = [bit for field in port.fields for bit in range(field.low, field.low + field.bits)]
        assert bits == (list(range(port.bits)) if port.fields else [])


@pytest.mark.parametrize("name", PRESETS)
def test_each_port_and_field_has_a_meaning(name):
    ports = ports_of(component(PRESETS[name]))
    described = [(port.name, port.meaning) for port in ports]
    described += [
        (f"{port.name}.{field.name}", field.meaning) for port in ports for field in port.fields
    ]
    for where, meaning in described:
        assert meaning, where
        assert not re.match(r"\d+ [A-Z]|signed$", meaning), where  # not its values alone
        assert not re.search(r":\w+:`|``|[|\n]", meaning), where


def test_the_example_runs_a_program(tmp_path):
    """As a user takes it from the README: the sums of the tour."""
    compiler, simulator = icarus(), icarus("vvp")
    generate(PRESETS["pe-small"], tmp_path)
    readme = (tmp_path / "README.md").read_text()
    (example,) = re.findall("```verilog\n(.*?)```", readme, re.DOTALL)
    (command,) = re.findall("^    (iverilog .* example.v) && vvp ", readme, re.MULTILINE)
    (tmp_path / "example.v").write_text(example)
    words = assemble((ROOT / "examples" / "sums.s").read_text()).words
    (tmp_path / "program.mem").write_text("".join(f"{word:08x}\n" for word in words))
    image = (ROOT / "examples" / "sums.bin").read_bytes().ljust(4096 * 8, b"\0")
    lines = (image[n : n + 8][::-1].hex() for n in range(0, len(image), 8))
    (tmp_path / "memory.mem").write_text("\n".join(lines))
    subprocess.run([compiler, *command.split()[1:]], cwd=tmp_path, check=True)
    ran = subprocess.run(
        [simulator, "example.vvp"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert re.search(r"^state 2, cause 0, pc \d+, \d{3} cycles$", ran.stdout, re.MULTILINE)
    written = re.findall("^[0-9a-f]{16}$", (tmp_path / "memory.out").read_text(), re.MULTILINE)
    numbers = memoryview(b"".join(bytes.fromhex(word)[::-1] for word in written)).cast("h")
    assert numbers[256:288].tolist() == [numbers[n] + numbers[128 + n] for n in range(32)]
    assert any(numbers[256:288])


def test_the_table_names_fields_and_values(tmp_path):
    text = port_table(component(PRESETS["pe"]))
    assert "| `memory__request__payload` | out | 115 | beats of requests |" in text
    assert "| &nbsp;&nbsp;.address | | `[32:0]` | byte address of the 64-bit word" in text
    assert re.search(r"\.pc \| \| `\[\d+:\d+\]` \| after a fault.*; signed \|", text)
    assert re.search(r"\.state \| \| `\[1:0\]` \| .*; 0 IDLE, 1 RUNNING, ", text)
    assert re.search(r"\.cause \| .* 1 PC_OUT_OF_PROGRAM, ", text)
    assert "### `control`: from the host\n" in text
    assert "then offer one `launch`" in text
    generate(PRESETS["tiny"], tmp_path / "tiny")
    readme = (tmp_path / "tiny" / "README.md").read_text()
    assert port_table(component(PRESETS["tiny"])) in readme
    assert "`dram__n__row`, n = 0..3" in readme
    assert "VIP_CHIP_IDENTITY" in (tmp_path / "tiny" / "vip_registers.h").read_text()
