"""The simulator of nodes joined to a torus, with requesters and memories in C++."""

from hdl.emission import emit
from hdl.ports import WORD_BITS
from noc.config import NetworkConfig
from noc.node.counters import INDEX_BITS
from noc.node.node import Node
from noc.topology import links, position
from sim_tb.runner.build import Design

__all__ = ["COUNTED_NODES", "TOP", "nodes_design", "ports_of"]

#: Top module, and so the executable's name.
TOP = "vip_nodes_top"
#: Nodes, from the first on, whose counters are read.
COUNTED_NODES = 4

_SUPPORT = (
    "vault_traffic.sv",
    "vault_requester.h",
    "vault_requester.cpp",
    "vault_traffic.h",
    "vault_traffic.cpp",
    "memory_model.sv",
    "memory_model.h",
    "memory_model.cpp",
)
_DUT = "node"
#: Half a clock period in ps.
_HALF_PERIOD = 400
#: Bits of a request and of a response beside address and tag.
_REQUEST_BITS = WORD_BITS + WORD_BITS // 8 + 4
_RESPONSE_BITS = WORD_BITS + 2


def ports_of(config: NetworkConfig, requesters: int) -> int:
    """Memory ports of all vaults: those of the own requesters, and one for all others."""
    return config.vaults * (requesters + 1)


def nodes_design(config: NetworkConfig, requesters: int) -> Design:
    """What the simulator is built from: a torus of ``config`` with ``requesters`` at each node.

    All memories share one image, in which each vault has its place.

    Raises:
        hdl.config.ConfigurationError: ``requesters`` outside its range.
    """
    node = Node(config, requesters=requesters)
    return Design(
        top=TOP,
        verilog={
            "node.v": "".join(emit(node, _DUT).modules.values()),
            "nodes_top.sv": _top(config, requesters),
        },
        support=_SUPPORT,
    )


def _port_wires(name: str, address_bits: int, tag_bits: int) -> str:
    return f"""
  logic {name}_request_valid, {name}_request_ready, {name}_response_valid, {name}_response_ready;
  logic [{address_bits + tag_bits + _REQUEST_BITS - 1}:0] {name}_request_payload;
  logic [{tag_bits + _RESPONSE_BITS - 1}:0] {name}_response_payload;"""


def _port_pins(member: str, name: str) -> str:
    return "".join(
        f"      .{member}{'__' if '__' in member or member == 'served' else '_'}"
        f"{channel}__{signal}({name}_{channel}_{signal}),\n"
        for channel in ("request", "response")
        for signal in ("valid", "ready", "payload")
    )


def _node(config: NetworkConfig, requesters: int, vault: int) -> str:
    """A node with its requesters and memories."""
    parts = []
    pins = ""
    for number in range(requesters):
        name = f"requester_{vault}_{number}"
        parts.append(_port_wires(name, config.chip_address_bits, config.tag_bits))
        parts.append(
            f"""
  vip_traffic #(
      .ADDRESS_BITS({config.chip_address_bits}),
      .TAG_BITS({config.tag_bits}),
      .REQUESTER({vault * requesters + number})
  ) traffic_{name} (
      .clk,
      .rst,
      .request_valid({name}_request_valid),
      .request_ready({name}_request_ready),
      .request_payload({name}_request_payload),
      .response_valid({name}_response_valid),
      .response_ready({name}_response_ready),
      .response_payload({name}_response_payload)
  );"""
        )
        pins += _port_pins(f"ports__{number}", name)
    for number in range(requesters + 1):
        name = f"memory_{vault}_{number}"
        member = f"near__{number}" if number < requesters else "served"
        low = config.address_bits
        top = low + config.tag_bits + _REQUEST_BITS - 1
        # The vault's number above the address makes it the place in the image of all.
        number_bits = f"{config.vault_bits}'d{vault}, " if config.vault_bits else ""
        parts.append(_port_wires(name, config.address_bits, config.tag_bits))
        parts.append(
            f"""
  vip_memory_model #(
      .ADDRESS_BITS({config.chip_address_bits}),
      .TAG_BITS({config.tag_bits}),
      .PORT({vault * (requesters + 1) + number})
  ) model_{name} (
      .clk,
      .rst,
      .request_valid({name}_request_valid),
      .request_ready({name}_request_ready),
      .request_payload({{
        {name}_request_payload[{top}:{low}], {number_bits}{name}_request_payload[{low - 1}:0]
      }}),
      .response_valid({name}_response_valid),
      .response_ready({name}_response_ready),
      .response_payload({name}_response_payload),
      .failed(failed[{vault * (requesters + 1) + number}])
  );"""
        )
        pins += _port_pins(member, name)
    for link in links(config):
        for side, mine, name in (
            ("out", link.source, link.direction),
            ("in", link.target, link.direction.opposite),
        ):
            if mine == vault:
                pins += "".join(
                    f"      .{name}_{side}__{signal}"
                    f"(link_{link.source}_{link.direction}_{signal}),\n"
                    for signal in ("valid", "channel", "flit", "credit")
                )
    x, y = position(config, vault)
    for axis, bits, value in (("x", config.x_bits, x), ("y", config.y_bits, y)):
        if bits:
            pins += f"      .{axis}({bits}'d{value}),\n"
    parts.append(
        f"""
  {_DUT} node_{vault} (
      .clk,
      .rst,
{pins}      .counter_index(counter_index[{INDEX_BITS - 1}:0]),
      .counter_value(values[{vault}])
  );"""
    )
    return "\n".join(parts)


def _top(config: NetworkConfig, requesters: int) -> str:
    ports = ports_of(config, requesters)
    channel_bits = max((config.channels - 1).bit_length(), 1)
    wires = "".join(
        f"""
  logic link_{link.source}_{link.direction}_valid;
  logic [{channel_bits - 1}:0] link_{link.source}_{link.direction}_channel;
  logic [{WORD_BITS + 1}:0] link_{link.source}_{link.direction}_flit;
  logic [{config.channels - 1}:0] link_{link.source}_{link.direction}_credit;"""
        for link in links(config)
    )
    nodes = "\n".join(_node(config, requesters, vault) for vault in range(config.vaults))
    counted = min(config.vaults, COUNTED_NODES)
    chosen = "".join(
        f"      {number}: counter_value = {{20'd0, values[{number}]}};\n"
        for number in range(counted)
    )
    return f"""// Nodes in a torus, between requesters and memories, which are models in C++.
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
  logic [{ports - 1}:0] failed;
  logic [{config.vaults - 1}:0][43:0] values;
  logic [5:0] counter_index = '0;
  logic [1:0] counted;
  logic [63:0] counter_value;
  always_ff @(posedge clk) counted <= counter_index[5:4];
  always_comb
    case (counted)
{chosen}      default: counter_value = '0;
    endcase
{wires}
{nodes}

  bit next_reset;
  int unsigned next_index;
  int next_idle;

  // verilator lint_off BLKSEQ
  always_ff @(posedge clk) begin
    next_idle = vip_traffic_host(|failed, counter_value, next_reset, next_index);
    idle <= next_idle != 0;
    rst <= next_reset;
    counter_index <= 6'(next_index);
  end
  // verilator lint_on BLKSEQ
endmodule
"""
