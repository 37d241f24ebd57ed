"""The simulator of the network alone, with the vaults' ends in C++."""

from functools import cache
from pathlib import Path

from hdl.emission import emit
from noc.config import NetworkConfig
from noc.network import Network
from sim_tb.runner.build import Design, build

__all__ = ["TOP", "build_network", "network_design"]

#: Top module, and so the executable's name.
TOP = "vip_network_top"

_SUPPORT = (
    "network_traffic.sv",
    "network_packet.h",
    "network_traffic.h",
    "network_traffic.cpp",
)
_DUT = "network"
#: Half a clock period in ps.
_HALF_PERIOD = 400


def build_network(config: NetworkConfig) -> Path:
    """The folder of the simulator of a network; see :func:`sim_tb.runner.build.build`.

    Raises:
        BuildError: as :func:`sim_tb.runner.build.build`.
        hdl.config.ConfigurationError: a single vault.
    """
    return build(network_design(config))


@cache
def network_design(config: NetworkConfig) -> Design:
    """What the simulator of a network is built from.

    Raises:
        hdl.config.ConfigurationError: a single vault.
    """
    return Design(
        top=TOP,
        verilog={
            "network.v": "".join(emit(Network(config), _DUT).modules.values()),
            "network_top.sv": _top(config),
        },
        support=_SUPPORT,
        blocks=("router",),
    )


def _top(config: NetworkConfig) -> str:
    connections = ",\n".join(
        f"      .local_{side}__{vault}__{signal}({side}_{signal}[{vault}])"
        for vault in range(config.vaults)
        for side in ("in", "out")
        for signal in ("valid", "channel", "flit", "credit")
    )
    vaults = f"[{config.vaults - 1}:0]"
    return f"""// A network between the ends of its vaults, which are a model in C++.
module {TOP};
  timeunit 1ps; timeprecision 1ps;

  logic clk = 1'b0;
  always #{_HALF_PERIOD} clk = ~clk;

  logic rst;
  logic idle  /* verilator public_flat_rd */;
  logic {vaults} in_valid, in_channel, out_valid, out_channel;
  logic {vaults}[65:0] in_flit, out_flit;
  logic {vaults}[1:0] in_credit, out_credit;
  vip_network_traffic #(.VAULTS({config.vaults})) traffic (.*);

  {_DUT} network (
      .clk,
      .rst,
{connections}
  );
endmodule
"""
