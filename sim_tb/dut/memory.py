"""The simulator of a vault's memory between requesters and DRAM, all but the memory in C++."""

from importlib.metadata import version
from pathlib import Path

from hdl.emission import emit
from hdl.ports import WORD_BITS
from isa.support.cache import build_folder
from isa.support.files import write_atomically
from memory.config import VaultConfig
from memory.controller.controller import Controller
from memory.controller.counters import INDEX_BITS
from memory.model.device_model import DEVICE_SOURCES
from sim_tb.runner.build import Design, build, check_tools
from sim_tb.runner.cache import fingerprint
from soc.tile.vault_memory import VaultMemory

from .engine import source_digest

__all__ = ["TOP", "build_vault", "ports_of", "vault_design"]

#: Top module, and so the executable's name.
TOP = "vip_vault_top"

_SUPPORT = (
    "vault_traffic.sv",
    "vault_requester.h",
    "vault_requester.cpp",
    "vault_traffic.h",
    "vault_traffic.cpp",
    *(f"../../memory/model/{name}" for name in DEVICE_SOURCES),
)
#: Rooms whose source decides what the memory's Verilog is.
_SOURCES = ("hdl", "memory", "noc", "soc")
_DUT = "vault_memory"
#: Half a clock period in ps.
_HALF_PERIOD = 400


def ports_of(requesters: int) -> int:
    """Ports of a design with ``requesters``, of which 0 means one straight at the controller."""
    return max(requesters, 1)


def build_vault(config: VaultConfig, requesters: int) -> Path:
    """The folder of the simulator of a vault's memory; see :func:`sim_tb.runner.build.build`.

    Parameters:
        config: of the vault.
        requesters: at the star, 1..16; 0: one straight at the controller.

    Raises:
        BuildError: as :func:`sim_tb.runner.build.build`.
        hdl.config.ConfigurationError: more requesters than a star has, or than the tags number.
    """
    return build(vault_design(config, requesters))


def vault_design(config: VaultConfig, requesters: int) -> Design:
    """What :func:`build_vault` builds."""
    return Design(
        top=TOP,
        verilog={
            "vault_memory.v": _verilog(config, requesters),
            "vault_top.sv": _top(config, requesters),
        },
        support=_SUPPORT,
    )


def _verilog(config: VaultConfig, requesters: int) -> str:
    """The memory's Verilog, kept as long as the source that makes it stays the same."""
    key = fingerprint(version("amaranth"), f"{config} {requesters}", source_digest(_SOURCES))
    folder = build_folder() / "verilog"
    kept = folder / f"{key}.v"
    if not kept.is_file():
        check_tools()
        dut: VaultMemory | Controller
        dut = (
            VaultMemory(config=config, requesters=requesters) if requesters else Controller(config)
        )
        text = "".join(emit(dut, _DUT).modules.values())
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, text.encode())
    return kept.read_text()


def _top(config: VaultConfig, requesters: int) -> str:
    address_bits = config.request_address_bits
    count = ports_of(requesters)
    tag_bits = config.tag_bits - (count - 1).bit_length()
    traffic = "\n".join(
        f"""
  logic request_valid_{n}, request_ready_{n}, response_valid_{n}, response_ready_{n};
  logic [{address_bits + tag_bits + 75}:0] request_payload_{n};
  logic [{tag_bits + WORD_BITS + 1}:0] response_payload_{n};
  vip_traffic #(
      .ADDRESS_BITS({address_bits}),
      .TAG_BITS({tag_bits}),
      .REQUESTER({n})
  ) traffic_{n} (
      .clk,
      .rst,
      .request_valid(request_valid_{n}),
      .request_ready(request_ready_{n}),
      .request_payload(request_payload_{n}),
      .response_valid(response_valid_{n}),
      .response_ready(response_ready_{n}),
      .response_payload(response_payload_{n})
  );"""
        for n in range(count)
    )
    names = [f"ports__{n}" if requesters else "port" for n in range(count)]
    connections = "\n".join(
        f"      .{name}__{channel}__{signal}({channel}_{signal}_{n}),"
        for n, name in enumerate(names)
        for channel in ("request", "response")
        for signal in ("valid", "ready", "payload")
    )
    dram = ("valid", "kind", "bank", "row", "column", "write_data", "write_strobe", "read_data")
    return f"""// A vault's memory between requesters and DRAM, which are models in C++.
module {TOP};
  timeunit 1ps; timeprecision 1ps;

  import "DPI-C" function int vip_traffic_host(
      input bit failed,
      input longint unsigned counter_value,
      output bit reset,
      output int unsigned counter_index
  );

  logic clk = 1'b0;
  always #{_HALF_PERIOD} clk = ~clk;

  logic rst = 1'b1;
  logic idle  /* verilator public_flat_rd */ = 1'b1;
  logic failed;
  logic [{INDEX_BITS - 1}:0] counter_index = '0;
  logic [63:0] counter_value;
{traffic}

  logic dram_valid;
  logic [2:0] dram_kind;
  logic [{config.bank_bits - 1}:0] dram_bank;
  logic [{config.row_bits - 1}:0] dram_row;
  logic [{config.column_bits - 1}:0] dram_column;
  logic [{WORD_BITS - 1}:0] dram_write_data, dram_read_data;
  logic [{WORD_BITS // 8 - 1}:0] dram_write_strobe;
  vip_dram_device #(
      .BANK_BITS({config.bank_bits}),
      .ROW_BITS({config.row_bits}),
      .COLUMN_BITS({config.column_bits}),
      .DEVICE(0)
  ) device (
      .clk,
      .rst,
{"".join(f"      .{name}(dram_{name})," + chr(10) for name in dram)}      .failed
  );

  {_DUT} memory (
      .clk,
      .rst,
{connections}
{"".join(f"      .dram__{name}(dram_{name})," + chr(10) for name in dram)}      .counter_index,
      .counter_value(counter_value[43:0])
  );
  assign counter_value[63:44] = '0;

  bit next_reset;
  int unsigned next_index;
  int next_idle;

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    next_idle = vip_traffic_host(failed, counter_value, next_reset, next_index);
    idle <= next_idle != 0;
    rst <= next_reset;
    counter_index <= {INDEX_BITS}'(next_index);
  end
  // verilator lint_on BLKSEQ
endmodule
"""
