"""Bit files of boards."""

from collections.abc import Mapping
from dataclasses import dataclass

from hdl.yosys import need_yosys
from soc.board.design import board_verilog
from soc.board.terminal import line_rate
from soc.host.transport import HostError
from support.errors import Shown
from support.extras import together
from support.processes import workers
from synth.errors import SynthesisError
from synth.physical.bitstream import bit_file, map_board
from synth.physical.nextpnr import need_nextpnr
from vip.progress import Progress, silent

from .design import BoardDesign


@dataclass(frozen=True, kw_only=True)
class BoardBuild(Shown):
    """A bit file.

    Attributes:
        design: that it holds.
        content: its bytes.
        used: measure of ECP5 -> number after mapping.
        seeds: seed of the placer -> highest clock in MHz. seed: of the bit file, the fastest.
    """

    design: BoardDesign
    content: bytes
    used: Mapping[str, float]
    seeds: Mapping[int, float]
    seed: int

    @property
    def margin(self) -> float:
        """How much faster the design is than its clock, as a fraction of that."""
        return self.seeds[self.seed] / self.design.mhz - 1

    def to_json(self) -> dict[str, object]:
        """The bit file as plain JSON data."""
        return {
            **self.design.to_json(),
            "bytes": len(self.content),
            "used": dict(self.used),
            "seeds": {str(seed): round(mhz, 2) for seed, mhz in self.seeds.items()},
            "seed": self.seed,
            "margin": round(self.margin, 4),
        }


def build_board(design: BoardDesign, *, seeds: int = 1, progress: Progress = silent) -> BoardBuild:
    """Map a board's design, place and route it at the board's pins, and pack the bit file. Each
    step is cached by the content of its inputs; equal designs give equal bytes.

    Parameters:
        seeds: placements, with seeds from 1 on, side by side; the fastest is packed.
        progress: called with each stage.

    Raises:
        SynthesisError: the design does not fit, a tool fails, or the clock is too fast for every
            placement; the message names one that would do.
        MissingExtraError: a tool is not installed.
    """
    with together():
        need_yosys()
        need_nextpnr()
    if seeds < 1:
        raise SynthesisError(f"at least 1 seed is needed, not {seeds}")
    progress("writing Verilog")
    emission = board_verilog(design.chip, divisor=design.divisor)
    progress(f"synthesis of {design.what}")
    mapped = map_board(emission, design.board, design.mhz)
    stage = f"placing {design.what}"
    progress(stage, 0, seeds)
    numbers = range(1, seeds + 1)
    with workers(seeds) as pool:
        files = dict(
            zip(numbers, pool.map(lambda seed: bit_file(mapped, seed), numbers), strict=True)
        )
    rates = {seed: mhz for seed, (_, mhz) in files.items()}
    best = max(rates, key=lambda seed: rates[seed])
    if rates[best] < design.mhz:
        raise SynthesisError(
            f"{design.what} reaches {rates[best]:.1f} MHz, and its clock is {design.mhz:g}: "
            f"{_slower(rates[best])}"
        )
    return BoardBuild(
        design=design, content=files[best][0], used=mapped.used, seeds=rates, seed=best
    )


def _slower(mhz: float) -> str:
    """Advice: a clock of at most ``mhz`` that makes a rate of the serial line."""
    for whole in range(int(mhz), 7, -1):
        try:
            line_rate(whole)
        except HostError:
            continue
        return f"--clock {whole} would do"
    return "no clock would do"
