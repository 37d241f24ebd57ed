"""What programs of one engine run on: its Verilog, or the timing model."""

from pathlib import Path
from typing import Literal

from pe.config import PeConfig
from sim_tb.timed.pe_model import PeModel

from .engine import CosimError, PeSimulation

__all__ = ["Machine", "open_engine"]

#: ``rtl``: the Verilog. ``model``: the timing model, which takes as many cycles and is faster.
Machine = Literal["rtl", "model"]


def open_engine(
    config: PeConfig,
    on: Machine = "rtl",
    *,
    trace: Path | None = None,
    ports_only: bool = False,
) -> PeSimulation | PeModel:
    """The machine of one engine, to be used in a ``with`` statement.

    Parameters:
        trace, ports_only: as of :class:`sim_tb.cosim.engine.PeSimulation`, for Verilog.

    Raises:
        CosimError: the timing model does not cover ``config``, or has no waveforms.
        isa.support.native.CompilerError: the timing model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    if on == "rtl":
        return PeSimulation(config, trace=trace, ports_only=ports_only)
    if trace is not None:
        raise CosimError(f"{trace}: the timing model writes no waveforms; the Verilog does")
    return PeModel(config)
