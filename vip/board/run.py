"""Applications on a board, or on the Verilog of one at its pins, compared with golden models."""

import time
from dataclasses import dataclass
from pathlib import Path

from microkernels.runtime.job import KernelJob
from sim_tb.cosim.board import BoardSimulation
from sim_tb.runner.build import need_simulator
from soc.board.serial_transport import SerialTransport
from soc.board.terminal import Terminal
from soc.host.driver import Host
from soc.host.transport import Blocking, HostError, run
from support.errors import Shown
from vip.progress import Progress, silent

from .design import BoardDesign

#: Seconds without a byte after which the host sends again: a chip's gap at the slowest clock, and
#: in a simulation, which is a few hundred times slower.
_PATIENCE, _SIMULATED_PATIENCE = 0.05, 20.0
_POLL = 0.01
#: Seconds of polls for a launch.
_TIMEOUT = 600.0


@dataclass(frozen=True, kw_only=True)
class BoardRun(Shown):
    """An application's jobs on a board.

    Attributes:
        design: of the board.
        values: outputs compared. differing: of them, those that differ from the golden model.
        resent: requests sent again. seconds: of all jobs.
        cycles: of the simulated clock, from the first byte to the last; None: not simulated.
    """

    design: BoardDesign
    values: int
    differing: int
    resent: int
    seconds: float
    cycles: int | None = None

    @property
    def match(self) -> bool:
        """Whether all outputs equal the golden model's."""
        return not self.differing

    def to_json(self) -> dict[str, object]:
        """The run as plain JSON data."""
        return {
            **self.design.to_json(),
            "match": self.match,
            "values": self.values,
            "differing": self.differing,
            "resent": self.resent,
            "seconds": round(self.seconds, 3),
            "cycles": self.cycles,
        }


class _HostMemory:
    """A chip's memory, as outputs of jobs read it."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def read(self, address: int, n: int, /) -> bytes:
        """``n`` bytes at ``address``."""
        return run(self._host.read(address, n))


def run_board(design: BoardDesign, port: Path | str, *, progress: Progress = silent) -> BoardRun:
    """Run the design's application on a board at the serial port ``port``, loaded with the bit file
    of ``design``.

    Parameters:
        progress: called with each stage.

    Raises:
        HostError: the port can't be opened, nobody answers, the board has another bit file, the
            line breaks, or an engine faults or does not end.
    """
    with Terminal(port, design.rate) as line:
        return run_over(SerialTransport(line, patience=_PATIENCE), design, progress)


def simulate_board(design: BoardDesign, *, progress: Progress = silent) -> BoardRun:
    """Run the design's application on the Verilog of the bit file, all of it but the PLL, at its
    pins: the program that runs a board talks to the simulated serial line.

    Parameters:
        progress: called with each stage.

    Raises:
        BuildError: the simulator can't be built.
        HostError: as for :func:`run_board`.
    """
    need_simulator()
    progress("building the simulator")
    with BoardSimulation(design.chip, design.divisor) as simulation:
        with Terminal(simulation.terminal, design.rate) as line:
            transport = SerialTransport(line, patience=_SIMULATED_PATIENCE)
            result = run_over(transport, design, progress)
        return BoardRun(**{**vars(result), "cycles": simulation.cycles()})


def run_over(
    transport: SerialTransport, design: BoardDesign, progress: Progress = silent
) -> BoardRun:
    """:func:`run_board` over a transport that is open."""
    started = time.monotonic()
    values = differing = 0
    transport.check(design.chip.digest, design.what)
    host = Host(Blocking(transport))
    for job in design.application.jobs:
        outputs = _run_job(host, job, progress)
        values += outputs[0]
        differing += outputs[1]
    return BoardRun(
        design=design,
        values=values,
        differing=differing,
        resent=transport.resent,
        seconds=time.monotonic() - started,
    )


def _run_job(host: Host, job: KernelJob, progress: Progress) -> tuple[int, int]:
    """Run a job; its outputs, and those that differ."""
    segments = job.segments()
    for number, (address, content) in enumerate(segments):
        progress("writing the memory", number, len(segments))
        run(host.write(address, content))
    for launch in job.launches:
        progress(f"running {job.name}", part=launch.name)
        run(host.load(launch.program))
        run(host.launch(parameters=launch.parameters))
        run(host.wait(timeout=_TIMEOUT, poll=_POLL))
        if faults := run(host.faults()):
            raise HostError(f"{job.name}: {'; '.join(map(str, faults))}")
    progress("reading the results")
    outputs = job.outputs(_HostMemory(host))
    return int(outputs.size), job.differing(outputs)
