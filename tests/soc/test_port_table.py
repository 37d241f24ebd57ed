"""The table of ports, against the Verilog that is emitted."""

import re
import shutil
import subprocess
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from isa.assembly.assembler import assemble
from soc.generate.designs import component
from soc.generate.generate import generate, verilog
from soc.generate.port_table import example, port_constants, port_table, ports_of, verilog_names
from soc.generate.presets import PRESETS
from soc.tile.config import ClockConfig
from tests.soc.four_states.icarus import icarus

ROOT = Path(__file__).parents[2]
PRODUCT = tuple(assemble((ROOT / "examples" / "product.s").read_text()).words)
BUILT_IN = replace(
    PRESETS["vault-small"],
    pe=replace(PRESETS["vault-small"].pe, program=PRODUCT, counters=False),
)
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


def ends_beyond(folder, words):
    """A memory of too few words ends the run, and its result is not written."""
    (folder / "memory.out").unlink()
    command = f"iverilog -c filelist.f -s example -P example.WORDS={words} -o small.vvp example.v"
    ran = subprocess.run(
        f"{command} && vvp small.vvp", shell=True, cwd=folder, capture_output=True, text=True
    )
    assert f"error: an access is beyond the WORDS = {words} words of the memory" in ran.stdout
    assert not (folder / "memory.out").exists()


@pytest.mark.parametrize(("built_in", "counters"), [(False, True), (True, False)])
def test_the_example_runs_a_program(tmp_path, built_in, counters):
    """The commands of the README as they are, except that the program is there: the sums of the
    tour, on an engine with other fields than the full one."""
    icarus()
    words = assemble((ROOT / "examples" / "sums.s").read_text()).words
    config = replace(PRESETS["pe-small"], counters=counters)
    if built_in:
        config = replace(config, program=tuple(words))
    generate(config, tmp_path)
    (tmp_path / "program.mem").write_text("".join(f"{word:08x}\n" for word in words))
    shutil.copy(ROOT / "examples" / "sums.bin", tmp_path / "FILE.bin")
    readme = (tmp_path / "README.md").read_text().partition("## Example")[2]
    commands = re.findall("^    (.*)$", readme, re.MULTILINE)
    assert (commands[0] == "vip asm FILE.s -o program.mem") != built_in
    for command in commands[0 if built_in else 1 :]:
        ran = subprocess.run(
            command, shell=True, cwd=tmp_path, check=True, capture_output=True, text=True
        )
    assert re.search(r"^state 2, cause 0, pc \d+$", ran.stdout, re.MULTILINE)
    assert bool(re.search(r"^\d{3} cycles$", ran.stdout, re.MULTILINE)) == counters
    assert ("load__valid <=" in (tmp_path / "example.v").read_text()) != built_in
    written = re.findall("^[0-9a-f]{16}$", (tmp_path / "memory.out").read_text(), re.MULTILINE)
    numbers = memoryview(b"".join(bytes.fromhex(word)[::-1] for word in written)).cast("h")
    assert numbers[256:288].tolist() == [numbers[n] + numbers[128 + n] for n in range(32)]
    assert any(numbers[256:288])
    if counters:
        ends_beyond(tmp_path, 64)


@pytest.mark.parametrize(
    "config", [TWO_CLOCKS, BUILT_IN, PRESETS["tiny"]], ids=["vault", "built in", "chip"]
)
def test_the_example_runs_on_the_first_engine(tmp_path, config):
    """A matrix by a vector, with DRAM."""
    icarus()
    generate(config, tmp_path)
    (tmp_path / "program.mem").write_text("".join(f"{word:08x}\n" for word in PRODUCT))
    numbers = array("h", [*range(12), 3, 1, 4, 1, 0, 0, 0, 0]).tobytes()
    (tmp_path / "FILE.bin").write_bytes(numbers)
    readme = (tmp_path / "README.md").read_text().partition("## Example")[2]
    for command in re.findall("^    ((?!vip asm ).*)$", readme, re.MULTILINE):
        ran = subprocess.run(
            command, shell=True, cwd=tmp_path, check=True, capture_output=True, text=True
        )
    assert re.search(r"^state 2, cause 0", ran.stdout, re.MULTILINE)
    written = re.findall("^[0-9a-f]{16}$", (tmp_path / "memory.out").read_text(), re.MULTILINE)
    before = (tmp_path / "memory.mem").read_text().splitlines()
    assert written[:5] == [*before[:4], "000000540030000c"]  # 84, 48, 12
    if config is BUILT_IN:
        ends_beyond(tmp_path, 4)


def test_a_memory_on_a_bus_has_no_example():
    config = PRESETS["vault-axi"]
    assert example(config.pe, component(config), "vault", ()) == ""


@pytest.mark.parametrize("name", PRESETS)
def test_constants_of_ports_have_names_of_their_own(name):
    design = component(PRESETS[name])
    lines = re.findall("^localparam (.*);$", port_constants(design, "top"), re.MULTILINE)
    values = dict(one.split(" = ") for line in lines for one in line.split(", "))
    names = [one.split(" = ")[0] for line in lines for one in line.split(", ")]
    assert len(names) == len(set(names)) > 0
    for port in ports_of(design):
        path = port.name.replace("__payload", "").split("__")
        prefix = "_".join(step for step in path if len(step) > 1).upper()
        if port.bits > 1:
            assert values[f"{prefix}_BITS"] == str(port.bits)
        for field in port.fields:
            place = f"{prefix}_{field.name.upper()}"
            assert values[place] == str(field.low)
            assert values[f"{place}_BITS"] == str(field.bits)


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
