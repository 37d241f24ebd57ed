"""A library of three cells, whose delays are easily added up, and runs of netlists of them."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace


def recorded(
    inputs: Mapping[str, Sequence[int]],
    outputs: Mapping[str, Sequence[int]],
    running: tuple[int, int],
    **work: float,
) -> SimpleNamespace:
    """A run with these values at the ports (:class:`synth.power.gate_sim.Recording`)."""
    return SimpleNamespace(signals={**inputs, **outputs}, running=running, work=work)


def _arc(pin: str, kind: str, rise: float, fall: float, sense: str) -> str:
    tables = "".join(
        f'{name} (scalar) {{ values ("{value}"); }} '
        for name, value in (
            ("cell_rise", rise),
            ("cell_fall", fall),
            ("rise_transition", 0.01),
            ("fall_transition", 0.01),
        )
    )
    return f'timing () {{ related_pin : "{pin}"; {kind} timing_sense : {sense}; {tables} }}'


def edge_arc(clock: str) -> str:
    """The delay of a flip-flop."""
    return _arc(clock, "timing_type : rising_edge;", 0.08, 0.09, "non_unate")


def setup_arc(clock: str) -> str:
    """The times that an input is needed before the clock and after it."""
    arcs = []
    for kind, times in (("setup", (0.05, 0.07)), ("hold", (0.02, 0.01))):
        tables = " ".join(
            f'{edge}_constraint (scalar) {{ values ("{time}"); }}'
            for edge, time in zip(("rise", "fall"), times, strict=True)
        )
        when = f'related_pin : "{clock}"; timing_type : {kind}_rising;'
        arcs.append(f"timing () {{ {when} {tables} }}")
    return " ".join(arcs)


LIBRARY = (
    """/* A library
   for tests */
library (tiny) {
  delay_model : table_lookup;
  time_unit : "1ns";
  capacitive_load_unit (1, ff);
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  slew_lower_threshold_pct_rise : 20; slew_lower_threshold_pct_fall : 20;
  slew_upper_threshold_pct_rise : 80; slew_upper_threshold_pct_fall : 80;
  cell (INV) { area : 0.5; // the smallest
    pin (A) { direction : input; capacitance : 1.5; }
    pin (Y) { direction : output; function : "!A"; """
    + _arc("A", "", 0.10, 0.20, "negative_unate")
    + """ } }
  cell (NAND2) { area : 0.8;
    pin (A) { direction : input; capacitance : 1.0; }
    pin (B) { direction : input; capacitance : 1.0; }
    pin (Y) { direction : output; function : "!(A & B)"; """
    + _arc("A", "", 0.3, 0.3, "negative_unate")
    + _arc("B", "", 0.4, 0.4, "negative_unate")
    + """ } }
  cell (DFF) { area : 4.0; ff (IQ, IQN) { next_state : "D"; clocked_on : "C"; }
    pin (C) { direction : input; clock : true; }
    pin (D) { direction : input; capacitance : 1.0;
      """
    + setup_arc("C")
    + """ }
    pin (Q) { direction : output; function : "IQ"; """
    + edge_arc("C")
    + """ } }
}
"""
)
