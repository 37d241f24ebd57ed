"""The simulator of a vault with its engines, between hosts and a DRAM that are models in C++."""

from collections.abc import Iterator
from pathlib import Path

from hdl.counter_bank import COUNTER_BITS
from hdl.ports import WORD_BITS
from memory.controller.counters import INDEX_BITS
from memory.controller.dram_port import DramCommand
from memory.model.device_model import DEVICE_SOURCES
from pe.interface import PC_BITS, status_layout
from sim_tb.runner.build import Design, build
from soc.tile.config import VaultTileConfig

from .engine import check_trace, configuration_verilog

__all__ = ["TOP", "build_tile", "tile_design"]

#: Top module, and so the executable's name.
TOP = "vip_tile_top"

_SUPPORT = (
    "pe_host.h",
    "pe_host.cpp",
    "pe_host.sv",
    "memory_model.h",
    "tile_host.h",
    "tile_host.cpp",
    *(f"../../memory/model/{name}" for name in DEVICE_SOURCES),
)
_DUT = "vault_tile"
#: Half a clock period in ps.
_HALF_PERIOD = 400


def build_tile(config: VaultTileConfig, trace: str = "") -> Path:
    """The folder of the simulator of a vault with its engines; see
    :func:`sim_tb.runner.build.build`.

    Parameters:
        config: of the vault and its engines.
        trace: "" or the format of waveform files that it can write.

    Raises:
        BuildError: as :func:`sim_tb.runner.build.build`, or no such format.
    """
    check_trace(trace)
    return build(tile_design(config, trace))


def tile_design(config: VaultTileConfig, trace: str = "") -> Design:
    """What :func:`build_tile` builds."""
    return Design(
        top=TOP,
        verilog={"vault_tile.v": configuration_verilog(config), "tile_top.sv": _top(config)},
        support=_SUPPORT,
        trace=trace,
    )


def _engine(config: VaultTileConfig, slot: int) -> str:
    """Declarations and host of the engine in ``slot``. The tile itself says who its engines are."""
    pc_bits = config.pe.pc_bits
    cause_bits = status_layout()["cause"].width
    return f"""
  logic load_valid_{slot}, load_ready_{slot}, launch_valid_{slot}, launch_ready_{slot};
  logic stop_{slot};
  logic [{pc_bits + 31}:0] load_payload_{slot};
  logic [{pc_bits + 64}:0] launch_payload_{slot};
  logic [{status_layout().size - 1}:0] status_{slot};
  logic [3:0] counter_index_{slot};
  logic [{COUNTER_BITS - 1}:0] counter_value_{slot};
  assign launches[{slot}] = launch_valid_{slot} & launch_ready_{slot};
  vip_pe_host #(
      .PC_BITS({pc_bits}),
      .CAUSE_BITS({cause_bits}),
      .STATUS_PC_BITS({PC_BITS}),
      .COUNTER_BITS({COUNTER_BITS}),
      .ENGINE({slot})
  ) host_{slot} (
      .clk,
      .reset(resets[{slot}]),
      .idle(idles[{slot}]),
      .failed,
      .load_valid(load_valid_{slot}),
      .load_ready(load_ready_{slot}),
      .load_payload(load_payload_{slot}),
      .launch_valid(launch_valid_{slot}),
      .launch_ready(launch_ready_{slot}),
      .launch_payload(launch_payload_{slot}),
      .stop(stop_{slot}),
      .status(status_{slot}),
      .counter_index(counter_index_{slot}),
      .counter_value(counter_value_{slot}),
      .pe_index(),
      .vault(),
      .slot(),
      .pe_count()
  );
"""


def _connections(config: VaultTileConfig) -> Iterator[str]:
    """Connections of the tile but for the DRAM."""
    for slot in range(config.pes):
        control = f"control__{slot}"
        for channel in ("load", "launch"):
            for signal in ("valid", "ready", "payload"):
                yield f".{control}__{channel}__{signal}({channel}_{signal}_{slot})"
        for signal in ("stop", "status", "counter_index", "counter_value"):
            yield f".{control}__{signal}({signal}_{slot})"
    for port in range(config.extra_ports):
        for signal in ("request__valid", "request__payload", "response__ready"):
            yield f".ports__{port}__{signal}('0)"
        for signal in ("request__ready", "response__valid", "response__payload"):
            yield f".ports__{port}__{signal}()"


def _top(config: VaultTileConfig) -> str:
    vault = config.dram
    engines = "".join(_engine(config, slot) for slot in range(config.pes))
    dram = ("valid", "kind", "bank", "row", "column", "write_data", "write_strobe", "read_data")
    tile = ",\n      ".join(
        [*_connections(config), *(f".dram__{name}(dram_{name})" for name in dram)]
    )
    device = "\n".join(f"      .{name}(dram_{name})," for name in dram)
    return f"""// A vault with its engines between hosts and DRAM, which are models in C++.
module {TOP};
  timeunit 1ps; timeprecision 1ps;

  import "DPI-C" function int vip_tile_cycle(
      input bit launched,
      input bit engines_idle,
      input longint unsigned counter_value,
      output int unsigned counter_index
  );

  logic clk = 1'b0;
  always #{_HALF_PERIOD} clk = ~clk;

  logic [{config.pes - 1}:0] resets, idles, launches;
  wire rst = |resets;
  logic idle  /* verilator public_flat_rd */ = 1'b1;
  logic failed;
{engines}
  logic dram_valid;
  logic [{DramCommand.as_shape().width - 1}:0] dram_kind;
  logic [{vault.bank_bits - 1}:0] dram_bank;
  logic [{vault.row_bits - 1}:0] dram_row;
  logic [{vault.column_bits - 1}:0] dram_column;
  logic [{WORD_BITS - 1}:0] dram_write_data, dram_read_data;
  logic [{WORD_BITS // 8 - 1}:0] dram_write_strobe;
  vip_dram_device #(
      .BANK_BITS({vault.bank_bits}),
      .ROW_BITS({vault.row_bits}),
      .COLUMN_BITS({vault.column_bits}),
      .DEVICE(0)
  ) device (
      .clk,
      .rst,
{device}
      .failed
  );

  logic [{INDEX_BITS - 1}:0] counter_index = '0;
  logic [{COUNTER_BITS - 1}:0] counter_value;
  {_DUT} tile (
      .clk,
      .rst,
      .vault('0),
      .first_pe('0),
      .pe_count(16'd{config.pes}),
      .counter_index,
      .counter_value,
      {tile}
  );

  int unsigned next_index;
  int next_idle;

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    next_idle = vip_tile_cycle(|launches, &idles, 64'(counter_value), next_index);
    idle <= next_idle != 0;
    counter_index <= {INDEX_BITS}'(next_index);
  end
  // verilator lint_on BLKSEQ
endmodule
"""
