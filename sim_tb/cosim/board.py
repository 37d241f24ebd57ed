"""The Verilog of a board's bit file, simulated at its pins."""

import subprocess
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from sim_tb.runner.pins import build_board
from soc.board.design import PLL, TOP, board_verilog, top_verilog
from soc.chip.config import ChipConfig
from support.processes import tool

from .engine import CosimError

#: The board's clock is the chip's.
_NO_PLL = (
    f"module {PLL}(input clkin, output clkout0, output locked);\n"
    "  assign clkout0 = clkin, locked = 1'b1;\nendmodule\n"
)


class BoardSimulation:
    """A simulated board, whose serial line is a pseudo-terminal; a context manager.

    Time passes from the host's first byte on, until it closes the terminal.

    Parameters:
        chip, divisor: see :class:`soc.board.design.BoardDesign`.

    Attributes:
        terminal: name of its file.

    Raises:
        BuildError: the simulator can't be built.
        CosimError: it does not start.
    """

    def __init__(self, chip: ChipConfig, divisor: int) -> None:
        modules = board_verilog(chip, divisor=divisor).modules
        program = build_board({**modules, PLL: _NO_PLL, TOP: top_verilog()})
        self._command = [str(program), str(divisor)]
        self._stack = ExitStack()
        self.terminal = ""

    def __enter__(self) -> Self:
        self._process = self._stack.enter_context(tool(self._command, stdout=subprocess.PIPE))
        self.terminal = self._line()
        if not self.terminal:
            self._stack.close()
            raise CosimError("the simulator of the board did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def cycles(self) -> int:
        """Cycles that have passed, once the host has closed the terminal."""
        return int(self._line() or 0)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()
