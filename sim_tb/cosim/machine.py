"""Machines that run programs: the Verilog of an engine, a vault or a chip, or the timing model."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from isa.image import DramImage
from pe.config import PeConfig
from sim_tb.timed.chip.chip_model import ChipModel
from sim_tb.timed.engine.pe_model import PeModel
from sim_tb.timed.vault.vault_model import VaultModel
from soc.chip.config import ChipConfig
from soc.tile.config import VaultTileConfig

from .chip_session import AXI_LATENCY, ChipSession, ChipSimulation, Periods
from .engine import CosimError, PeSimulation
from .vault import VaultSimulation

__all__ = ["Machine", "open_chip", "open_engine", "open_vault"]

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
        support.native.CompilerError: the timing model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    if on == "rtl":
        return PeSimulation(config, trace=trace, ports_only=ports_only)
    _check(trace)
    return PeModel(config)


def open_chip(
    config: ChipConfig,
    image: DramImage,
    on: Machine = "rtl",
    *,
    outer: bool = False,
    trace: Path | None = None,
    progress: Callable[[int], None] | None = None,
    axi_latency: int = AXI_LATENCY,
    periods: Periods | None = None,
) -> ChipSession:
    """The machine of a chip, to be used in a ``with`` statement.

    Parameters:
        config: of the chip. on: the Verilog, or the timing model.
        image: its DRAM, of ``config.memory_bytes``.
        outer, trace, periods: as of :class:`sim_tb.cosim.chip_session.ChipSimulation`, for Verilog;
            the timing model has one clock.
        progress: called now and then with the cycles so far.
        axi_latency: as of :class:`sim_tb.cosim.chip_session.ChipSession`.

    Raises:
        CosimError: the image is not of the chip's size; the timing model does not cover ``config``,
            or has no waveforms or outer host.
        support.native.CompilerError: the timing model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    if on == "rtl":
        return ChipSimulation(
            config,
            image,
            outer=outer,
            trace=trace,
            progress=progress,
            axi_latency=axi_latency,
            periods=periods,
        )
    _check(trace)
    if outer:
        raise CosimError("the timing model has no AXI buses for an outer host; the Verilog has")
    return ChipModel(config, image, progress=progress, axi_latency=axi_latency)


def open_vault(
    config: VaultTileConfig, on: Machine = "rtl", *, trace: Path | None = None
) -> VaultSimulation | VaultModel:
    """The machine of a vault, to be used in a ``with`` statement.

    Parameters:
        trace: as of :class:`sim_tb.cosim.vault.VaultSimulation`, for Verilog.

    Raises:
        CosimError: the vault does not run alone, or the timing model has no waveforms.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    if on == "rtl":
        return VaultSimulation(config, trace=trace)
    _check(trace)
    return VaultModel(config)


def _check(trace: Path | None) -> None:
    if trace is not None:
        raise CosimError(f"{trace}: the timing model writes no waveforms; the Verilog does")
