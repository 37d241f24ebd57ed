"""A project of Tiny Tapeout around an engine with its program built in."""

from hdl.emission import emit
from pe.config import PeConfig
from soc.board.byte_engine import ByteEngine

from .exported import ExportedDesign, ExportError

_TOP, _ENGINE = "tt_um_vip", "vip_bytes"
#: Bit of ``uio`` -> its name and whether it is an output.
_CONTROL = (
    ("received valid", False),
    ("received ready", True),
    ("sent valid", True),
    ("sent ready", False),
    ("launch", False),
    ("state 0", True),
    ("state 1", True),
    ("", False),
)
_PROJECT = f"""`default_nettype none
module {_TOP} (
  input wire [7:0] ui_in, output wire [7:0] uo_out,
  input wire [7:0] uio_in, output wire [7:0] uio_out, output wire [7:0] uio_oe,
  input wire ena, input wire clk, input wire rst_n
);
  reg rst;
  always @(posedge clk) rst <= !rst_n;
  wire unused = &{{ena, uio_in[7:5], uio_in[2:1], 1'b0}};
  assign uio_oe = 8'b{"".join(str(int(output)) for _, output in reversed(_CONTROL))};
  assign {{uio_out[7], uio_out[4:3], uio_out[0]}} = 4'b0;
  {_ENGINE} engine (
    .clk(clk), .rst(rst),
    .received__payload(ui_in), .received__valid(uio_in[0]), .received__ready(uio_out[1]),
    .sent__payload(uo_out), .sent__valid(uio_out[2]), .sent__ready(uio_in[3]),
    .launch(uio_in[4]), .state(uio_out[6:5])
  );
endmodule
"""


def tiny_tapeout(design: ExportedDesign) -> dict[str, str]:
    """``info.yaml``, ``docs/info.md`` and ``src/``, all of the project's Verilog.

    Raises:
        ExportError: the design is not an engine. ConfigurationError: it is one that
            :class:`soc.board.byte_engine.ByteEngine` refuses.
    """
    config = getattr(design.component, "config", None)
    if not isinstance(config, PeConfig):
        raise ExportError("a project of Tiny Tapeout is one engine, such as of vip trim --rom")
    modules = emit(ByteEngine(config), _ENGINE).modules
    sources = {f"{_TOP}.v": _PROJECT, f"{_ENGINE}.v": "".join(modules.values())}
    pins = [f'  ui[{bit}]: "received {bit}"' for bit in range(8)]
    pins += [f'  uo[{bit}]: "sent {bit}"' for bit in range(8)]
    pins += [f'  uio[{bit}]: "{name}"' for bit, (name, _) in enumerate(_CONTROL)]
    info = f"""project:
  title: "VIP {design.title}"
  author: ""
  discord: ""
  description: "An engine of VIP with its program built in and memory outside"
  language: "Verilog"
  clock_hz: 0
  tiles: "8x2"
  top_module: "{_TOP}"
  source_files:
{"".join(f'    - "{name}"' + chr(10) for name in sources)}
pinout:
{chr(10).join(pins)}

yaml_version: 6
"""
    manual = f"""## How it works

{ByteEngine.__doc__}
## How to test

Take each byte of `sent` in a cycle with valid and ready, do the access, and answer it.
All pins follow `clk`. Set `launch` for a cycle; `state` is 2 when the program has halted.

## External hardware

A controller with the memory, such as that of the demonstration board.
"""
    return {
        "info.yaml": info,
        "docs/info.md": manual,
        **{f"src/{name}": text for name, text in sources.items()},
    }
