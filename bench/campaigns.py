"""Campaigns of resets, errors, damage and stalls: everything that is disturbed, and how often."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated

import typer

from memory.axi.layout import AxiConfig
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.kernels import bp_job_on
from sim_tb.timed.chip.chip_model import ChipModel
from sim_tb.workloads.campaigns import (
    Campaign,
    engine_errors,
    engine_resets,
    line_damage,
    vault_resets,
)
from sim_tb.workloads.chip_campaigns import chip_errors, chip_resets, chip_stalls
from soc.board.terminal import line_rate
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset, preset, tile_preset
from vip.board.design import CLOCK_MHZ, board_chip

from .harness.experiment import (
    SIMULATION,
    BenchError,
    Measurement,
    NamesOption,
    SeedOption,
    chosen,
    experiment,
    say,
)

#: The chip of all campaigns.
TINY = chip_preset("tiny")
_VAULT = tile_preset("vault-small")


def on_axi(line_buffer: int) -> ChipConfig:
    """The chip ``tiny`` with memories on AXI buses, whose columns are bursts of four beats."""
    bus = AxiConfig(address_bits=20, tag_bits=6, data_bits=64, outstanding=8)
    return replace(TINY, tile=replace(TINY.tile, vault=bus, line_buffer=line_buffer))


def _on_vault() -> KernelJob:
    return bp_job_on(motorcycle(4, 4, 8).problem, 1, _VAULT, sums=False)


def on_chip() -> KernelJob:
    """Belief propagation on :data:`TINY`."""
    return bp_job_on(motorcycle(2, 2, 2).problem, 1, TINY)


def _on_board(points: int, seed: int) -> Campaign:
    rate, divisor = line_rate(CLOCK_MHZ)
    return line_damage(board_chip(preset("pe-small"), 1 << 14), divisor, rate, points, seed)


#: Name -> campaign of a number of points, with a seed.
CAMPAIGNS: Mapping[str, Callable[[int, int], Campaign]] = {
    "engine_resets": lambda points, seed: engine_resets(PeConfig(), points, seed),
    "engine_errors": lambda points, seed: engine_errors(PeConfig(), points, seed),
    "vault_resets": lambda points, seed: vault_resets(_VAULT, _on_vault(), points, seed),
    "chip_resets": lambda points, seed: chip_resets(TINY, on_chip(), points, seed),
    "chip_stalls": lambda points, seed: chip_stalls(TINY, on_chip(), points, seed),
    "chip_errors": lambda points, seed: chip_errors(on_axi(0), points, seed),
    "line_buffer_errors": lambda points, seed: chip_errors(on_axi(8), points, seed),
    "timing_model_errors": lambda points, seed: chip_errors(on_axi(8), points, seed, ChipModel),
    "board_lines": _on_board,
}


@experiment(presets=("pe", "vault-small", "tiny"), tools=SIMULATION, minutes=15)
def campaigns(
    points: Annotated[int, typer.Option(min=1, max=10**6, help="Of each campaign.")] = 300,
    seed: SeedOption = 1,
    only: NamesOption = None,
) -> Iterator[Measurement]:
    """Resets at random cycles, failing memories and lines, stalled hosts: what is left is exact.

    Engines run random programs, a vault and chips belief propagation or copies between vaults.
    Hung are points after which something did not end, lost those after which something was wrong.
    If there are any, the command ends, after all counts, with an error that names the first.

    Example: vip bench campaigns --points 20 --only engine_resets
    """
    wrong = ""
    for name in chosen(only, CAMPAIGNS):
        say(name)
        campaign = CAMPAIGNS[name](points, seed)
        for figure in ("points", "hung", "lost"):
            yield Measurement(f"{name}_{figure}", getattr(campaign, figure), "", 0.0)
        if campaign.first and not wrong:
            wrong = (
                f"{name}: {campaign.hung} of {campaign.points} points hung, {campaign.lost} lost; "
                f"{campaign.first}"
            )
    if wrong:
        raise BenchError(wrong)
