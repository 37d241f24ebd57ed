"""A kernel with its data, ready to run; every job is of this class.

Layers (:mod:`microkernels.nn.jobs`), belief propagation (:mod:`microkernels.bp.jobs`) and the
applications (:mod:`microkernels.suite`) create jobs that differ only in their data.
:func:`simulate` runs one on instruction set simulators, :mod:`sim_tb.cosim.kernels` on the Verilog
of an engine, a vault or a chip. Any other host, whatever its transport, runs a job in these steps:

1. write :meth:`KernelJob.segments` to the DRAM; nothing else needs a defined value;
2. for each of :attr:`KernelJob.launches`, in order: load the same program into all engines; launch
   them with the launch's start register ``parameters``, and with ``vault`` and ``slot`` as defined
   in :mod:`isa.launch`; wait until all have halted. Engines may start at different times. Engines
   in slots from :attr:`KernelJob.pes` on end at once;
3. let :attr:`KernelJob.outputs` read the DRAM; the outputs should equal :attr:`KernelJob.expected`.

Engines may wait for each other, so a fault of one may block the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from isa.assembly.disassembler import disassemble
from isa.compiled.machine import TURN, SimulatedMachine
from isa.image import DramImage
from isa.program import NOTHING_DECLARED, Declared, Program
from isa.run import Launch, RunError, RunResult
from isa.table import INSTRUCTIONS, find
from isa.timing import Hazard
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, count_saturation
from microkernels.common.memory import Readable, Writable
from support.errors import Shown
from support.files import write_atomically

from .interleave import Together
from .ring import ONE_ENGINE, ChipEngines

#: Instructions of every untrimmed engine: all except the optional ones.
STANDARD: frozenset[str] = frozenset(row.key for row in INSTRUCTIONS if not row.optional)
#: Maximum bytes of a memory that is written to a file.
_SAVED_BYTES = 1 << 28


class Golden:
    """The result of a golden model, computed once.

    Parameters:
        model: computes the result and nothing else that saturates. Its exceptions are raised when
            the job is made, unless ``lazy``.
        lazy: compute it when it is first needed.
    """

    def __init__(self, model: Callable[[], Elements], *, lazy: bool = False) -> None:
        self._model = model
        if not lazy:
            _ = self.values

    @cached_property
    def _found(self) -> tuple[Elements, int]:
        with count_saturation() as count:
            return self._model(), count()

    @property
    def values(self) -> Elements:
        """The result."""
        return self._found[0]

    @property
    def saturated(self) -> int:
        """Number of values that saturate in the model (:mod:`microkernels.common.fixed_point`)."""
        return self._found[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelJob(Shown):
    """A kernel with its data; see the module's text.

    Attributes:
        name: for messages.
        launches: at least one; they run one after the other on the same memory.
        prepare: writes inputs and all other data to a memory.
        outputs: reads the outputs from a memory.
        golden: the expected outputs.
        end: number of bytes that the job uses from the start of each vault's memory.
        pes: engines per vault that work, in slots from 0.
        ring: of vaults, which use the chip's addresses.
        operations: additions, multiplications and comparisons of elements that the job requires,
            independent of the instructions that the program executes.
        updates: belief propagation messages updated; None: not belief propagation.
        remote_bytes: fraction of the bytes moved that go to another vault, by the layout.
        declared: what the layout fixes in every launch: parameter blocks and flags. Everything else
            in memory is data.

    Raises:
        KernelError: two launches have the same name.
    """

    name: str
    launches: tuple[Launch, ...]
    prepare: Callable[[Writable], None]
    outputs: Callable[[Readable], Elements]
    golden: Golden
    end: int
    pes: int = 1
    ring: ChipEngines = ONE_ENGINE
    operations: int = 0
    updates: int | None = None
    remote_bytes: float = 0.0
    declared: Declared = NOTHING_DECLARED

    def __post_init__(self) -> None:
        names = [launch.name for launch in self.launches]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise KernelError(f"{self.name}: two launches have the name {twice!r}")

    @property
    def program(self) -> Program:
        """The only launch's program."""
        (launch,) = self.launches
        return launch.program

    @property
    def parameters(self) -> int:
        """The only launch's start register ``parameters``."""
        (launch,) = self.launches
        return launch.parameters

    @property
    def declarations(self) -> Mapping[str, Declared]:
        """What is fixed in each launch, by its name."""
        return {launch.name: self.declared for launch in self.launches}

    @property
    def vaults(self) -> int:
        """Number of vaults that work."""
        return self.ring.vaults

    @property
    def memory_bytes(self) -> int:
        """Size in bytes of a memory that is large enough: of a single vault what the job uses,
        of several all of each."""
        return self.end if self.vaults == 1 else self.vaults << self.ring.address_bits

    @property
    def expected(self) -> Elements:
        """The expected outputs."""
        return self.golden.values

    @property
    def saturated(self) -> int:
        """Number of values that saturate in the golden model."""
        return self.golden.saturated

    def differing(self, outputs: Elements) -> int:
        """Number of elements of ``outputs`` that differ from the expected ones."""
        return int(np.count_nonzero(outputs != self.expected))

    def check_instructions(self, instructions: frozenset[str]) -> None:
        """Check that engines with these instructions (keys) can run all programs.

        Raises:
            KernelError: an instruction is missing; the message names the first.
        """
        for launch in self.launches:
            place = f"{self.name}, {launch.name}" if launch.name else self.name
            for address, word in enumerate(launch.program.words):
                row = find(word)
                if row is not None and row.key not in instructions:
                    raise KernelError(
                        f"{place}: the program needs {row.key} (word {address}), which the PEs lack"
                    )

    @property
    def memory(self) -> bytes:
        """The memory before the first launch, from address 0 on."""
        with DramImage(self.end) as memory:
            self.prepare(memory)
            return memory.read(0, self.end)

    def segments(self) -> list[tuple[int, bytes]]:
        """Address and bytes of each segment that must be in memory before the first launch."""
        written = _Written()
        self.prepare(written)
        return written.segments

    def save(self, folder: Path | str) -> None:
        """Write ``memory.bin``, the memory before the first launch, and of each launch the program
        and its assembly text, ``program.vip`` and ``program.s``, or ``NAME.vip`` and ``NAME.s``,
        with ``_`` for a slash in the name of a launch.

        The first line of a text has the options for commands: ``--memory`` and ``--parameters``.

        Raises:
            KernelError: the memory has more than 256 MiB. OSError: a file can't be written.
        """
        segments = self.segments()
        size = max([self.end, *(address + len(data) for address, data in segments)])
        if size > _SAVED_BYTES:
            limit = f"a saved memory has at most {_SAVED_BYTES:,}"
            raise KernelError(f"{self.name}: the job uses {size:,} bytes, {limit}")
        memory = bytearray(size)
        for address, data in segments:
            memory[address : address + len(data)] = data
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "memory.bin", bytes(memory))
        for launch in self.launches:
            path = folder / (launch.name or "program").replace("/", "_")
            launch.program.save(path.with_name(f"{path.name}.vip"))
            options = f"--memory memory.bin --parameters {launch.parameters:#x}"
            text = f"; {self.name}: {options}\n{disassemble(launch.program)}"
            write_atomically(path.with_name(f"{path.name}.s"), text.encode())


@dataclass(frozen=True, kw_only=True)
class KernelOutcome(Shown):
    """A job's result.

    Attributes:
        job: the job that ran.
        outputs: as the engines left them in memory.
        results: of the machine, by launch name.
    """

    job: KernelJob
    outputs: Elements
    results: Mapping[str, RunResult]

    @property
    def cycles(self) -> int:
        """Cycles of all programs; with several engines, until the last one ends."""
        return sum(result.cycles for result in self.results.values())

    @property
    def pes(self) -> int:
        """Number of engines that shared the work."""
        return self.job.pes * self.job.vaults

    @cached_property
    def differing(self) -> int:
        """Number of output elements that differ from the golden model's."""
        return self.job.differing(self.outputs)

    @property
    def match(self) -> bool:
        """Whether every output equals the golden model's."""
        return self.differing == 0

    @property
    def result(self) -> RunResult:
        """The only launch's result."""
        (result,) = self.results.values()
        return result

    @property
    def updates(self) -> int:
        """Number of belief propagation messages updated."""
        return self.job.updates or 0

    @property
    def cycles_per_update(self) -> float:
        """Engine cycles per message, averaged over all directions; the datapath's limit for 16
        labels of 16 bits is 80."""
        return self.cycles * self.pes / self.updates

    @property
    def instructions(self) -> int:
        """Instructions that all engines executed on a simulator, including those spent waiting."""
        return sum(end.executed for result in self.results.values() for end in result.engines)


class _Written:
    """A memory that collects the segments written to it."""

    def __init__(self) -> None:
        self.segments: list[tuple[int, bytes]] = []

    def write(self, address: int, data: bytes) -> None:
        self.segments.append((address, bytes(data)))


def simulate(
    job: KernelJob, *, seed: int = 0, instructions: frozenset[str] = STANDARD
) -> tuple[Elements, list[Hazard]]:
    """Run a single-vault job on instruction set simulators, instruction by instruction.

    Parameters:
        seed: determines the order in which stores become visible to other engines.
        instructions: keys of the instructions that the engines have, such as
            ``config.instructions`` of a preset. The default is :data:`STANDARD`.

    Returns:
        The outputs, and the hazards of the schedule.

    Raises:
        KernelError: a program has an instruction that the engines lack, or an engine faulted.
    """
    hazards: list[Hazard] = []
    job.check_instructions(instructions)
    with DramImage(job.end) as memory:
        job.prepare(memory)
        for launch in job.launches:
            together = Together(
                launch.program,
                memory,
                members=job.pes,
                parameters=launch.parameters,
                seed=seed,
                instructions=instructions,
            )
            for slot, outcome in enumerate(together.run(together.in_step, limit=1 << 28)):
                if outcome.state != "halted":
                    why = outcome.fault or f"{outcome.state} at word {outcome.pc}"
                    raise KernelError(f"{job.name}: PE {slot}: {why}")
            hazards += [hazard for log in together.hazards for hazard in log.hazards]
        return job.outputs(memory), hazards


def execute(
    job: KernelJob,
    *,
    instructions: frozenset[str] = STANDARD,
    turn: int = TURN,
) -> KernelOutcome:
    """Run ``job`` with all its engines and vaults on compiled simulators, without timing.

    The engines take turns on one memory, executing the same number of instructions each. A kernel
    with correct synchronisation leaves the same values in any order;
    :mod:`microkernels.runtime.interleave` tries hostile orders and checks hazards.

    Parameters:
        instructions: keys of the instructions that the engines have.
        turn: instructions an engine executes per turn, at least 1.

    Raises:
        KernelError: a program has an instruction that the engines lack, an engine faulted, or the
            engines are in a deadlock.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """
    CHECK.at_least("turn", turn, 1)
    job.check_instructions(instructions)
    results: dict[str, RunResult] = {}
    with DramImage(job.memory_bytes) as memory:
        settings = {
            "address_bits": max(12, (memory.size - 1).bit_length()),
            "instructions": instructions,
        }
        machine = SimulatedMachine(settings, vaults=job.vaults, slots=job.pes, turn=turn)
        job.prepare(memory)
        for launch in job.launches:
            try:
                results[launch.name] = result = machine.run(launch, memory)
            except RunError as error:
                raise KernelError(f"{job.name}: {error}") from None
            for end in result.faults:
                place = f"{job.name}: engine {end.slot} of vault {end.vault}"
                raise KernelError(f"{place}: {end.fault}")
        return KernelOutcome(job=job, outputs=job.outputs(memory), results=results)
