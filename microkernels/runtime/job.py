"""A kernel with its data, ready to run: the only class of jobs.

Layers (:mod:`microkernels.nn.jobs`), belief propagation (:mod:`microkernels.bp.jobs`) and the
applications (:mod:`microkernels.suite`) make objects of it that differ in their data alone.
:func:`simulate` runs one on instruction set simulators, :mod:`sim_tb.cosim.kernels` on the Verilog
of an engine, a vault or a chip. Any other host runs it in these steps, whatever its transport:

1. write :meth:`KernelJob.segments` to the DRAM; nothing else needs a defined value;
2. for each of :attr:`KernelJob.launches`, in order: load the same program into all engines, launch
   them with the start register ``parameters`` of the launch, and with ``vault`` and ``slot`` as
   :mod:`isa.launch` defines them, and wait until all have halted. Engines may start at different
   times. Engines in slots from :attr:`KernelJob.pes` on end at once;
3. give :attr:`KernelJob.outputs` a way to read the DRAM; they should equal
   :attr:`KernelJob.expected`.

Engines may wait for each other, so a fault of one engine may block the others.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from isa.declared import Declared
from isa.image import DramImage
from isa.program import Program
from isa.run import Launch, RunResult
from isa.table import INSTRUCTIONS, find
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements, count_saturation
from microkernels.common.memory import Readable, Writable
from microkernels.common.schedule import Hazard

from .interleave import Together
from .ring import VaultRing

__all__ = ["STANDARD", "Golden", "KernelJob", "KernelOutcome", "simulate"]

#: Instructions of every engine that is not trimmed: all but the optional ones.
STANDARD: frozenset[str] = frozenset(row.key for row in INSTRUCTIONS if not row.optional)


class Golden:
    """The result of a golden model, computed once.

    Parameters:
        model: computes it, and nothing else that saturates. Its exceptions are raised when the job
            is made, unless ``lazy``.
        lazy: compute it when it is first needed.
    """

    def __init__(self, model: Callable[[], Elements], *, lazy: bool = False) -> None:
        self._model = model
        if not lazy:
            _ = self.values

    @cached_property
    def _found(self) -> tuple[Elements, int]:
        with count_saturation() as count:
            return self._model(), count.values

    @property
    def values(self) -> Elements:
        """The result."""
        return self._found[0]

    @property
    def saturated(self) -> int:
        """Values that saturate in it (:mod:`microkernels.common.fixed_point`)."""
        return self._found[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelJob:
    """A kernel with its data; see the module's text.

    Attributes:
        name: for messages.
        launches: one after the other on the same memory, at least one.
        prepare: puts inputs and all other data into a memory.
        outputs: reads the outputs from a memory.
        golden: the expected outputs.
        end: first byte after the part of each vault's memory that the job uses.
        pes: engines of each vault that work, in the slots from 0 on.
        ring: of the vaults, whose addresses are those of the chip; None: there is one.
        operations: additions, multiplications and comparisons of elements that the job requires,
            independent of the instructions that the program executes.
        updates: messages of belief propagation that it updates; None: it is something else.
        remote_bytes: share of the bytes moved that go to another vault, by the layout.
        declared: what is fixed with the layout, in every launch: parameter blocks and flags. All
            else in memory is data.

    Raises:
        KernelError: two launches have one name.
    """

    name: str
    launches: tuple[Launch, ...]
    prepare: Callable[[Writable], None]
    outputs: Callable[[Readable], Elements]
    golden: Golden
    end: int
    pes: int = 1
    ring: VaultRing | None = None
    operations: int = 0
    updates: int | None = None
    remote_bytes: float = 0.0
    declared: Declared = field(default_factory=Declared)

    def __post_init__(self) -> None:
        names = [launch.name for launch in self.launches]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise KernelError(f"{self.name}: two launches have the name {twice!r}")

    @property
    def program(self) -> Program:
        """Program of the only launch."""
        (launch,) = self.launches
        return launch.program

    @property
    def parameters(self) -> int:
        """Start register ``parameters`` of the only launch."""
        (launch,) = self.launches
        return launch.parameters

    @property
    def vaults(self) -> int:
        """Vaults that work."""
        return 1 if self.ring is None else self.ring.vaults

    @property
    def expected(self) -> Elements:
        """The expected outputs."""
        return self.golden.values

    @property
    def saturated(self) -> int:
        """Values that saturate in the golden model."""
        return self.golden.saturated

    def differing(self, outputs: Elements) -> int:
        """Elements of ``outputs`` that are not as expected."""
        return int(np.count_nonzero(outputs != self.expected))

    def check_instructions(self, instructions: frozenset[str]) -> None:
        """Check that engines with these instructions, by key, have all that the programs need.

        Raises:
            KernelError: they lack one; the message names the first.
        """
        for launch in self.launches:
            place = f"{self.name}, {launch.name}" if launch.name else self.name
            for address, word in enumerate(launch.program.words):
                row = find(word)
                if row is not None and row.key not in instructions:
                    raise KernelError(
                        f"{place}: the program needs {row.key} (word {address}), which the PEs lack"
                    )

    def segments(self) -> list[tuple[int, bytes]]:
        """Address and bytes of each segment that must be in memory before the first launch."""
        written = _Written()
        self.prepare(written)
        return written.segments


@dataclass(frozen=True, kw_only=True)
class KernelOutcome:
    """Result of a job.

    Attributes:
        job: as it was given.
        outputs: as the engines left them in memory.
        results: of the machine, by name of the launch.
    """

    job: KernelJob
    outputs: Elements
    results: Mapping[str, RunResult]

    @property
    def cycles(self) -> int:
        """Cycles of the programs; of several engines, till the last ends."""
        return sum(result.program_cycles for result in self.results.values())

    @property
    def pes(self) -> int:
        """Engines that shared the work."""
        return self.job.pes * self.job.vaults

    @cached_property
    def differing(self) -> int:
        """Output elements that differ from the golden model's."""
        return self.job.differing(self.outputs)

    @property
    def match(self) -> bool:
        """Every output equals the golden model's."""
        return self.differing == 0

    @property
    def result(self) -> RunResult:
        """Result of the only launch."""
        (result,) = self.results.values()
        return result

    @property
    def updates(self) -> int:
        """Messages of belief propagation that were updated."""
        return self.job.updates or 0

    @property
    def cycles_per_update(self) -> float:
        """Cycles of an engine for one message, the mean of all directions; the datapath's limit for
        16 labels of 16 bits is 80."""
        return self.cycles * self.pes / self.updates

    @property
    def instructions(self) -> int:
        """Instructions that all engines executed on a simulator, with those spent waiting."""
        return sum(end.executed for result in self.results.values() for end in result.engines)


class _Written:
    """Collects the written segments."""

    def __init__(self) -> None:
        self.segments: list[tuple[int, bytes]] = []

    def write(self, address: int, data: bytes) -> None:
        self.segments.append((address, bytes(data)))


def simulate(
    job: KernelJob, *, seed: int = 0, instructions: frozenset[str] = STANDARD
) -> tuple[Elements, list[Hazard]]:
    """Run a job of one vault on instruction set simulators, in the order of their estimated times.

    Parameters:
        seed: of the order in which stores become visible to other engines.
        instructions: keys of those that the engines have, such as ``config.instructions`` of a
            preset. The default is :data:`STANDARD`.

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
            for slot, outcome in enumerate(together.run(together.in_time, limit=1 << 28)):
                if outcome.state != "halted":
                    raise KernelError(
                        f"{job.name}: PE {slot} {outcome.state} at word {outcome.pc}: "
                        f"{outcome.cause.name}"
                    )
            hazards += [hazard for model in together.models for hazard in model.hazards]
        return job.outputs(memory), hazards
