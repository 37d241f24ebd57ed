"""A vault with its engines on an AXI bus in place of a DRAM controller."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hdl.config import ConfigurationError
from isa.assembly.assembler import assemble
from memory.axi.layout import AxiConfig
from soc.generate.generate import verilog
from soc.generate.presets import tile_preset
from soc.tile.config import VaultTileConfig
from tests.small_engine import only
from tests.verilog_bench import build_open, check_bench

TOP = "vault_tile"
PARAMETERS, SHARE, TARGET = 0x800, 1024, 0x8003
#: Each engine copies its share of the memory to an unaligned place.
PROGRAM = f"""
    sll r9, r3, #10
    add r10, r5, r9
    mov r11, #0
    mov r12, #{SHARE // 8}
    ld.sram [64-bit] r11, r10, r12
    mov r13, #1
    sll r13, r13, #15
    add r13, r13, r9
    add r14, r13, #3
    st.sram [64-bit] r14, r11, r12
    memfence
    halt
"""


def config(data_bits: int) -> VaultTileConfig:
    small = tile_preset("vault-small")
    vault = AxiConfig(
        address_bits=small.pe.address_bits,
        tag_bits=small.vault.tag_bits + 1,
        data_bits=data_bits,
        outstanding=16,
    )
    return replace(small, vault=vault, extra_ports=2)


def test_type_of_the_memory_selects_the_back_end() -> None:
    emission = verilog(config(128))
    classes = set(emission.classes.values())
    assert "memory.axi.backend.AxiBackend" in classes
    assert "memory.controller.controller.Controller" not in classes
    top = emission.modules[TOP]
    assert " axi__awaddr;" in top
    assert "dram__" not in top
    assert "dram__valid" in verilog(tile_preset("vault-small")).modules[TOP]


def test_preset_for_a_board() -> None:
    board = tile_preset("vault-axi")
    assert replace(board, vault=tile_preset("vault").vault) == tile_preset("vault")
    assert board.vault == AxiConfig(address_bits=28, data_bits=256)


def test_what_needs_a_dram_refuses_an_axi_back_end() -> None:
    with pytest.raises(ConfigurationError, match=r"^the vault has an AXI back end; a vault with"):
        _ = config(64).dram
    assert tile_preset("vault").dram is tile_preset("vault").vault


def test_parts_must_fit_an_axi_back_end_too() -> None:
    with pytest.raises(ConfigurationError, match=r"^pe\.address_bits must be 19, as the vault's"):
        replace(config(64), vault=AxiConfig(address_bits=19, tag_bits=5))
    with pytest.raises(ConfigurationError, match=r"^vault\.tag_bits must be at least 6 for 16 req"):
        replace(config(64), vault=AxiConfig(address_bits=20, tag_bits=4))


@pytest.mark.parametrize(
    ("data_bits", "pause"), [pytest.param(64, 0.3, marks=pytest.mark.slow), (256, 0.6)]
)
def test_engines_work_on_an_axi_memory(tmp_path: Path, data_bits: int, pause: float) -> None:
    tile = config(data_bits)
    tile = replace(tile, pe=only(tile.pe, assemble(PROGRAM)))
    folder = build_open(TOP, "".join(verilog(tile).modules.values()), "pe")
    case = {
        "pes": tile.pes,
        "extra_ports": tile.extra_ports,
        "port_tag_bits": tile.port_tag_bits,
        "pause": pause,
        "seed": data_bits,
        "program": PROGRAM,
        "report": str(tmp_path / "report.json"),
    }
    environment = {"VIP_VAULT_AXI_BENCH": json.dumps(case)}
    check_bench(folder, TOP, "tests.soc.vault_axi_bench", tmp_path, **environment)
    report = json.loads((tmp_path / "report.json").read_text())
    assert [state[:2] for state in report["states"]] == [["HALTED", "NONE"]] * tile.pes
    before, after = (bytes.fromhex(report[name]) for name in ("before", "after"))
    assert after[: len(before)] == before
    moved = tile.pes * SHARE
    for slot in range(tile.pes):
        source = PARAMETERS + slot * SHARE
        target = TARGET + slot * SHARE
        assert after[target : target + SHARE] == before[source : source + SHARE]
    assert not any(after[0x8000:TARGET])
    assert not any(after[TARGET + moved :])
    # Unaligned stores touch one column more.
    columns = moved // 32
    assert report["read"] == [before[8 * port :][:8].hex() for port in range(tile.extra_ports)]
    assert report["counters"] == {
        "READS": columns + tile.extra_ports,
        "WRITES": columns + tile.pes,
        "ROW_HITS": 0,
    }
