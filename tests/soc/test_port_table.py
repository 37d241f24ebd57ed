"""The table of ports, against the Verilog that is emitted."""

import re
import subprocess
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from isa.assembly.assembler import assemble
from soc.generate.designs import component
from soc.generate.generate import generate, verilog
from soc.generate.port_table import example, port_table, ports_of, verilog_names
from soc.generate.presets import PRESETS
from soc.tile.clocks import ClockConfig
from tests.soc.four_states.icarus import icarus

ROOT = Path(__file__).parents[2]
TWO_CLOCKS = replace(PRESETS["vault-small"], clocks=ClockConfig(domains="two"))

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


@pytest.mark.parametrize(
    ("config", "cycles"),
    [
        (PRESETS["pe-small"], r", pc \d+, \d{2} cycles"),
        (TWO_CLOCKS, r", pc \d+, \d{3} cycles"),
        (PRESETS["tiny"], ""),
    ],
    ids=["engine", "vault", "chip"],
)
def test_the_example_runs_a_program(tmp_path, config, cycles):
    """As a user takes it from the README: a matrix by a vector."""
    compiler, simulator = icarus(), icarus("vvp")
    generate(config, tmp_path)
    readme = (tmp_path / "README.md").read_text()
    (text,) = re.findall("```verilog\n(.*?)```", readme, re.DOTALL)
    (command,) = re.findall("^    (iverilog .* example.v) && vvp ", readme, re.MULTILINE)
    (tmp_path / "example.v").write_text(text)
    words = assemble((ROOT / "examples" / "product.s").read_text()).words
    (tmp_path / "program.mem").write_text("".join(f"{word:08x}\n" for word in words))
    numbers = array("h", [*range(12), 3, 1, 4, 1, 0, 0, 0, 0]).tobytes()
    lines = [numbers[n : n + 8][::-1].hex() for n in range(0, len(numbers), 8)]
    (tmp_path / "memory.mem").write_text("\n".join(lines))
    subprocess.run([compiler, *command.split()[1:]], cwd=tmp_path, check=True)
    ran = subprocess.run(
        [simulator, "example.vvp"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert re.search(rf"^state 2, cause 0{cycles}$", ran.stdout, re.MULTILINE)
    written = re.findall("^[0-9a-f]{16}$", (tmp_path / "memory.out").read_text(), re.MULTILINE)
    assert written == [*lines[:4], "000000540030000c"]  # 84, 48, 12


def test_a_memory_on_a_bus_has_no_example():
    config = PRESETS["vault-axi"]
    assert example(component(config), "vault") == ""


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


def test_counters_listed_are_those_that_exist():
    def index(config, port="counter_index"):
        ports = {row.name: row.meaning for row in ports_of(component(config))}
        return ports[port].partition("; ")[2]

    tile = PRESETS["vault"]
    pe = PRESETS["pe"]
    assert "0 CYCLES, 1 ISSUED_SCALAR" in index(pe, "control__counter_index")
    none = "there are none, and all values are 0"
    assert index(replace(pe, counters=False), "control__counter_index") == none
    history = replace(pe, load_history=8, instructions=pe.instructions | {"set.ws"})
    named = index(history, "control__counter_index")
    assert "15 BYTES_STORED, 16 HISTORY_PROBES, 17 HISTORY_HITS" in named
    assert "3 ROW_HITS" in index(tile)
    assert "12 LINE_MERGED" in index(replace(tile, line_buffer=8))
    assert index(replace(tile, vault=replace(tile.vault, counters=False))) == none
    axi = index(PRESETS["vault-axi"])
    assert axi == "0 CYCLES, 1 READS, 2 WRITES, 7 BUS_BUSY, 10 OCCUPANCY"


def test_notes_are_of_the_configuration():
    """Times of the DRAM, and what a program that is built in changes."""
    assert "tCL is 18 and tCWL 18 cycles" in port_table(component(PRESETS["vault"]))
    note = "built in, so offer only `launch`"
    pe = PRESETS["pe"]
    assert note not in port_table(component(pe))
    assert note in port_table(component(replace(pe, program=(0,), instruction_words=64)))


@pytest.mark.parametrize("name", PRESETS)
def test_directions_are_of_the_module_and_names_of_the_reader(name):
    text = port_table(component(PRESETS[name]))
    assert "seen from" not in text
    assert not re.search(r"pc_shape|HistoryCounter|START_REGISTERS|decisions/", text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("behavioural", "`vip generate --config vip.json --memories fpga -o ../fpga`"),
        ("fpga", "They become block and LUT RAM."),
        ("macro", "Memories are macros"),
    ],
)
def test_the_readme_says_how_its_memories_are_built(tmp_path, kind, text):
    generate(PRESETS["pe-small"].with_sram(kind), tmp_path)
    readme = (tmp_path / "README.md").read_text()
    assert text in readme
    assert ("../fpga" in readme) == (kind == "behavioural")
