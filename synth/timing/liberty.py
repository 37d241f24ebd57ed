"""A small library of generic standard cells, with areas in gate equivalents.

A gate equivalent is the area of a two-input NAND gate. Areas come from the smallest drive strengths
in the datasheet of the Nangate 45 nm Open Cell Library, divided by the 0.798 um2 of its NAND2_X1.
The ratios are typical: those of other libraries differ little, so counts are comparable with
published ones. There is no full adder because Yosys rarely finds a use for one, and adders come out
smaller from gates.
"""

import re
from collections.abc import Mapping

#: Area of the two-input NAND gate, in square micrometres.
GATE_EQUIVALENT_UM2 = 0.798

#: Name -> area in square micrometres, function.
CELLS: Mapping[str, tuple[float, str]] = {
    "BUF": (0.798, "A"),
    "INV": (0.532, "!A"),
    "NAND2": (0.798, "!(A & B)"),
    "NAND3": (1.064, "!(A & B & C)"),
    "NAND4": (1.330, "!(A & B & C & D)"),
    "NOR2": (0.798, "!(A | B)"),
    "NOR3": (1.064, "!(A | B | C)"),
    "NOR4": (1.330, "!(A | B | C | D)"),
    "AND2": (1.064, "(A & B)"),
    "AND3": (1.330, "(A & B & C)"),
    "AND4": (1.596, "(A & B & C & D)"),
    "OR2": (1.064, "(A | B)"),
    "OR3": (1.330, "(A | B | C)"),
    "OR4": (1.596, "(A | B | C | D)"),
    "XOR2": (1.596, "(A ^ B)"),
    "XNOR2": (1.596, "!(A ^ B)"),
    "MUX2": (1.862, "((A & !S) | (B & S))"),
    "AOI21": (1.064, "!((A & B) | C)"),
    "AOI22": (1.330, "!((A & B) | (C & D))"),
    "AOI211": (1.330, "!((A & B) | C | D)"),
    "AOI221": (1.596, "!((A & B) | (C & D) | E)"),
    "AOI222": (2.128, "!((A & B) | (C & D) | (E & F))"),
    "OAI21": (1.064, "!((A | B) & C)"),
    "OAI22": (1.330, "!((A | B) & (C | D))"),
    "OAI211": (1.330, "!((A | B) & C & D)"),
    "OAI221": (1.596, "!((A | B) & (C | D) & E)"),
    "OAI222": (2.128, "!((A | B) & (C | D) & (E | F))"),
}
#: The rising-edge flip-flop and its area; gates in front of it implement enable and reset.
FLIP_FLOP = "DFF"
_FLIP_FLOP_UM2 = 4.522


def liberty_text() -> str:
    """The library as Liberty text, areas in gate equivalents."""
    lines = ["library(vip_generic) {"]
    for name, (area, function) in CELLS.items():
        inputs = "".join(
            f" pin({pin}) {{ direction : input; }}"
            for pin in sorted(set(re.findall(r"[A-Z]", function)))
        )
        lines.append(
            f"  cell({name}) {{ area : {area / GATE_EQUIVALENT_UM2:.4f};{inputs}"
            f' pin(Y) {{ direction : output; function : "{function}"; }} }}'
        )
    lines.append(
        f"  cell({FLIP_FLOP}) {{ area : {_FLIP_FLOP_UM2 / GATE_EQUIVALENT_UM2:.4f};"
        ' ff(IQ, IQN) { clocked_on : "C"; next_state : "D"; }'
        " pin(C) { direction : input; clock : true; } pin(D) { direction : input; }"
        ' pin(Q) { direction : output; function : "IQ"; } }'
    )
    return "\n".join([*lines, "}"]) + "\n"
