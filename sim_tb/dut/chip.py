"""The simulator of a chip, between AXI managers and DRAM that are models."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from amaranth.hdl import Value
from amaranth.lib import wiring

from hdl.axi import Axi4, Axi4Lite
from hdl.ports import WORD_BITS
from memory.axi.layout import AxiConfig
from memory.controller.dram_port import DramCommand
from memory.model.device_model import DEVICE_SOURCES
from sim_tb.harness.axi_memory import AXI_MEMORY_SOURCES
from sim_tb.runner.build import Design, build
from soc.chip.config import ChipConfig
from soc.host.config import HOST_ADDRESS_BITS
from soc.host.register_map import MAP_ADDRESS_BITS

from .engine import check_trace, configuration_verilog

__all__ = ["TOP", "build_chip", "chip_design"]

#: Top module, and so the executable's name.
TOP = "vip_chip_top"

_SUPPORT = (
    "chip_host.h",
    "chip_host.cpp",
    "chip_host.sv",
    *AXI_MEMORY_SOURCES,
    *(f"../../memory/model/{name}" for name in DEVICE_SOURCES),
)
#: Half a clock period in ps.
_HALF_PERIOD = 400
#: Modules that are compiled once for all their instances. Engines are where a tile has many: a tile
#: of few runs faster as one.
_BLOCK = "chip_tile"
_INNER_BLOCK = "pe"
_MANY_ENGINES = 5
_DRAM = ("valid", "kind", "bank", "row", "column", "write_data", "write_strobe", "read_data")
#: Signals of a vault's bus that its memory looks at and drives: name -> what it is.
_AXI = {
    "awid": "id",
    "awaddr": "address",
    "awlen": "length",
    "awvalid": "bit",
    "awready": "bit",
    "wdata": "data",
    "wstrb": "strobe",
    "wvalid": "bit",
    "wready": "bit",
    "bid": "id",
    "bresp": "response",
    "bvalid": "bit",
    "arid": "id",
    "araddr": "address",
    "arlen": "length",
    "arvalid": "bit",
    "arready": "bit",
    "rid": "id",
    "rdata": "data",
    "rresp": "response",
    "rlast": "bit",
    "rvalid": "bit",
}


def build_chip(config: ChipConfig, trace: str = "") -> Path:
    """The folder of the simulator of a chip; see :func:`sim_tb.runner.build.build`.

    Its tiles are compiled once (Verilator's hierarchical Verilation), so the time and memory that
    it takes hardly depend on how many there are.

    Parameters:
        config: of the chip.
        trace: "" or the format of waveform files that it can write.

    Raises:
        BuildError: as :func:`sim_tb.runner.build.build`, or no such format.
    """
    check_trace(trace)
    return build(chip_design(config, trace))


def chip_design(config: ChipConfig, trace: str = "") -> Design:
    """What :func:`build_chip` builds."""
    return Design(
        top=TOP,
        verilog={"chip.v": configuration_verilog(config), "chip_top.sv": _top(config)},
        support=_SUPPORT,
        trace=trace,
        blocks=(_BLOCK, _INNER_BLOCK) if config.tile.pes >= _MANY_ENGINES else (_BLOCK,),
    )


class _Signal(NamedTuple):
    """A signal of one of the host's buses: its name, width, and whether the host drives it."""

    name: str
    width: int
    driven: bool


def _signals(config: ChipConfig) -> Iterator[_Signal]:
    """The host's buses; a signal is called as the bus models look for it."""
    buses: dict[str, Any] = {
        "control": Axi4Lite(address_bits=MAP_ADDRESS_BITS),
        "data": Axi4(
            address_bits=HOST_ADDRESS_BITS, data_bits=WORD_BITS, id_bits=config.axi_id_bits
        ),
    }
    for bus, signature in buses.items():
        for (name,), member, value in signature.flatten(signature.create()):
            width = len(Value.cast(value))
            yield _Signal(f"{bus}_{name}", width, member.flow == wiring.Out)


def _axi_memory(config: AxiConfig, vault: int) -> str:
    """Declarations and memory of ``vault``, which has an AXI back end."""
    widths = {
        "id": config.id_bits,
        "address": config.address_bits,
        "length": 8,
        "data": config.data_bits,
        "strobe": config.data_bits // 8,
        "response": 2,
        "bit": 1,
    }
    declared = "\n".join(
        f"  logic [{widths[kind] - 1}:0] axi_{vault}_{name};" for name, kind in _AXI.items()
    )
    connections = ", ".join(f".{name}(axi_{vault}_{name})" for name in _AXI)
    return f"""
{declared}
  vip_axi_memory #(
      .ADDRESS_BITS({config.address_bits}),
      .DATA_BITS({config.data_bits}),
      .ID_BITS({config.id_bits}),
      .MEMORY({vault})
  ) memory_{vault} (.clk, .rst, {connections});
  assign failed[{vault}] = 1'b0;
"""


def _device(config: ChipConfig, vault: int) -> str:
    """Declarations and DRAM of ``vault``."""
    if isinstance(config.tile.vault, AxiConfig):
        return _axi_memory(config.tile.vault, vault)
    memory = config.tile.dram
    connections = ", ".join(f".{name}(dram_{vault}_{name})" for name in _DRAM)
    return f"""
  logic dram_{vault}_valid;
  logic [{DramCommand.as_shape().width - 1}:0] dram_{vault}_kind;
  logic [{memory.bank_bits - 1}:0] dram_{vault}_bank;
  logic [{memory.row_bits - 1}:0] dram_{vault}_row;
  logic [{memory.column_bits - 1}:0] dram_{vault}_column;
  logic [{WORD_BITS - 1}:0] dram_{vault}_write_data, dram_{vault}_read_data;
  logic [{WORD_BITS // 8 - 1}:0] dram_{vault}_write_strobe;
  vip_dram_device #(
      .BANK_BITS({memory.bank_bits}),
      .ROW_BITS({memory.row_bits}),
      .COLUMN_BITS({memory.column_bits}),
      .DEVICE({vault})
  ) device_{vault} (.clk, .rst, .failed(failed[{vault}]), {connections});
"""


def _top(config: ChipConfig) -> str:
    signals = list(_signals(config))
    declared = "\n".join(
        f"  logic [{signal.width - 1}:0] {signal.name}"
        f" /* verilator {'public_flat_rw' if signal.driven else 'public_flat_rd'} */"
        f"{' = 0' if signal.driven else ''};"
        for signal in signals
    )
    pins = "\n".join(f"  logic [{s.width - 1}:0] pin_{s.name};" for s in signals)
    models = "\n".join(
        f"  logic [{s.width - 1}:0] model_{s.name};\n"
        f"  assign pin_{s.name} = external ? {s.name} : model_{s.name};"
        for s in signals
        if s.driven
    )
    sampled = "\n".join(f"    {s.name} <= pin_{s.name};" for s in signals if not s.driven)
    host = ", ".join(f".{s.name}({'model' if s.driven else 'pin'}_{s.name})" for s in signals)
    chip = ", ".join(f".{s.name.replace('_', '__')}(pin_{s.name})" for s in signals)
    devices = "".join(_device(config, vault) for vault in range(config.vaults))
    kind, names = ("axi", _AXI) if isinstance(config.tile.vault, AxiConfig) else ("dram", _DRAM)
    dram = ",\n      ".join(
        f".{kind}__{vault}__{name}({kind}_{vault}_{name})"
        for vault in range(config.vaults)
        for name in names
    )
    return f"""// A chip between DRAM and two hosts: a model in C++, and one outside that drives
// the signals of the buses by their names.
module {TOP};
  timeunit 1ps; timeprecision 1ps;

  logic clk /* verilator public_flat_rd */ = 1'b0;
  always #{_HALF_PERIOD} clk = ~clk;

  // The outer host drives the buses, and its clock runs: to be changed while the clock is 1.
  logic external /* verilator public_flat_rw */ = 1'b0;
  logic external_clk /* verilator public_flat_rd */;
  assign external_clk = ~clk & external;

  logic rst;
  logic idle /* verilator public_flat_rd */;
  logic host_interrupt;
  logic [{config.vaults - 1}:0] failed;
{declared}
{pins}
{models}

  // The outer host looks and drives between two edges, and has to see what went with what it drove
  // at the edge before.
  always_ff @(posedge clk) begin
{sampled}
  end
{devices}
  vip_chip_host #(
      .CONTROL_ADDRESS_BITS({MAP_ADDRESS_BITS}),
      .DATA_ADDRESS_BITS({HOST_ADDRESS_BITS}),
      .ID_BITS({config.axi_id_bits})
  ) host (
      .clk,
      .failed(|failed),
      .host_interrupt,
      .reset(rst),
      .idle,
      {host}
  );

  chip chip (
      .clk,
      .rst,
      .host_interrupt,
      {chip},
      {dram}
  );
endmodule
"""
