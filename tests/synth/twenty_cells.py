"""A Liberty library of twenty cells, whose only flip-flops have an asynchronous reset, as in IHP's
SG13G2: nine functions of NAND, NOR and XOR gates, in up to three sizes."""

import re

_LOADS, _SLEWS = (0.0, 0.02, 0.1), (0.01, 0.2)
#: Name -> area of size 1 in um2, inputs, function, sizes.
_GATES = {
    "inv": (5.4, "A", "!A", (1, 2, 4)),
    "buf": (7.3, "A", "A", (1, 4)),
    "nand2": (7.3, "A B", "!(A&B)", (1, 2)),
    "nand3": (9.1, "A B C", "!(A&B&C)", (1,)),
    "nor2": (7.3, "A B", "!(A|B)", (1, 2)),
    "nor3": (9.1, "A B C", "!(A|B|C)", (1,)),
    "and2": (9.1, "A B", "A&B", (1,)),
    "or2": (9.1, "A B", "A|B", (1,)),
    "a21oi": (9.1, "A B C", "!((A&B)|C)", (1,)),
    "o21ai": (9.1, "A B C", "!((A|B)&C)", (1,)),
    "xor2": (14.5, "A B", "A^B", (1,)),
    "xnor2": (14.5, "A B", "!(A^B)", (1,)),
    "mux2": (18.1, "A B S", "(A&!S)|(B&S)", (1,)),
}


def _values(start: float, per_pf: float) -> str:
    rows = (
        ", ".join(f"{start + 0.1 * slew + per_pf * load:.4f}" for load in _LOADS) for slew in _SLEWS
    )
    return ", ".join(f'"{row}"' for row in rows)


def _timing(pin: str, kind: str, sense: str, size: int) -> str:
    tables = "".join(
        f" {name} (grid) {{ values ({_values(start, 3.0 / size)}); }}"
        for name, start in (
            ("cell_rise", 0.03),
            ("cell_fall", 0.025),
            ("rise_transition", 0.02),
            ("fall_transition", 0.015),
        )
    )
    return f"timing () {{ related_pin : {pin}; {kind} timing_sense : {sense};{tables} }}"


def _gate(name: str, size: int) -> str:
    area, inputs, function, _ = _GATES[name]
    sense = "non_unate" if name[0] in "xm" else "positive_unate" if name in POSITIVE else _NEGATIVE
    pins = "".join(
        f" pin ({pin}) {{ direction : input; capacitance : {0.002 * size}; }}"
        for pin in inputs.split()
    )
    arcs = "".join(_timing(pin, "", sense, size) for pin in inputs.split())
    return (
        f"cell (sg_{name}_{size}) {{ area : {area * (0.6 + 0.4 * size):.2f};{pins}"
        f' pin (Y) {{ direction : output; function : "{function}"; {arcs} }} }}\n'
    )


POSITIVE = ("buf", "and2", "or2")
_NEGATIVE = "negative_unate"


def _checks() -> str:
    return "".join(
        f" timing () {{ related_pin : CLK; timing_type : {kind}_rising;"
        f' rise_constraint (scalar) {{ values ("{ns}"); }}'
        f' fall_constraint (scalar) {{ values ("{ns}"); }} }}'
        for kind, ns in (("setup", 0.08), ("hold", 0.01))
    )


def _flip_flop(size: int) -> str:
    launch = _timing("CLK", "timing_type : rising_edge;", "non_unate", size)
    return f"""cell (sg_dfrbp_{size}) {{ area : {45.0 + 4 * size};
  ff (IQ, IQN) {{ clocked_on : CLK; next_state : D; clear : "!RESET_B"; }}
  pin (CLK) {{ direction : input; clock : true; capacitance : 0.003; }}
  pin (D) {{ direction : input; capacitance : 0.002;{_checks()} }}
  pin (RESET_B) {{ direction : input; capacitance : 0.004; }}
  pin (Q) {{ direction : output; function : IQ; {launch} }}
  pin (Q_N) {{ direction : output; function : IQN; {launch} }} }}
"""


def _clock_gate() -> str:
    return f"""cell (sg_slgcp_1) {{ area : 34.5; clock_gating_integrated_cell : latch_posedge;
  pin (CLK) {{ direction : input; clock_gate_clock_pin : true; capacitance : 0.003; }}
  pin (GATE) {{ direction : input; clock_gate_enable_pin : true; capacitance : 0.002;{_checks()} }}
  pin (GCLK) {{ direction : output; clock_gate_out_pin : true;
    {_timing("CLK", "", "positive_unate", 1)} }} }}
"""


def twenty_cells(slower: float = 1.0, *, gated: bool = False) -> str:
    """Liberty text; of a corner, whose delays are so much longer.

    Parameters:
        gated: with a clock gate instead of the larger flip-flop.
    """
    registers = _flip_flop(1) + (_clock_gate() if gated else _flip_flop(2))
    loads, slews = (", ".join(map(str, axis)) for axis in (_LOADS, _SLEWS))
    gates = (_gate(name, size) for name, (*_, sizes) in _GATES.items() for size in sizes)
    text = f"""library (sg_twenty) {{
  time_unit : "1ns"; capacitive_load_unit (1, pf); nom_voltage : 1.2;
  lu_table_template (grid) {{ variable_1 : input_net_transition;
    variable_2 : total_output_net_capacitance; index_1 ("{slews}"); index_2 ("{loads}"); }}
  {"  ".join(gates)}{registers}}}
"""
    return re.sub(
        r"(?<=values \()[^)]*",
        lambda table: re.sub(r"[\d.]+", lambda ns: f"{slower * float(ns[0]):.4f}", table[0]),
        text,
    )
