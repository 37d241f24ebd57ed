"""Design choices measured: memory-memory vectors and their reductions (thesis 7.2.2), and one
vector unit in each engine."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from hdl.sram_macro import SramGeometry
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.table import Instruction, Role
from isa.timing import VECTOR_LATENCY, VectorOperation
from microkernels.common.schedule import ScheduleModel, watch
from microkernels.runtime.job import KernelJob
from microkernels.suite import suite
from microkernels.vector_registers.belief import belief_job
from microkernels.vector_registers.convolution import FILTERS, convolution_job
from microkernels.vector_registers.machine import MACHINES
from pe.config import LOGISTIC_INSTRUCTIONS
from soc.generate.presets import preset, tile_preset
from synth.sram import sram_um2

from .harness.experiment import AMARANTH, SIMULATION, Measurement, experiment, figure, say
from .harness.runs import launch_runs

_JOBS: Mapping[str, tuple[Callable[[str], KernelJob], Callable[[KernelJob], int]]] = {
    "belief": (belief_job, lambda job: job.updates or 0),
    "convolution": (convolution_job, lambda job: job.expected.size // FILTERS),
}


@experiment(presets=("vault",), tools=SIMULATION[:1], minutes=1)
def ablation() -> Iterator[Measurement]:
    """Belief propagation and a convolution on machines with a vector register file (thesis 7.2.2).

    A vault's engines on the timing model, outputs exact. For each machine: engine cycles of a
    message or pixel, beats of the vector unit, which are the cycles if issue never waits, and both
    as multiples of VIP's.
    """
    tile = tile_preset("vault")
    for work, (make, count) in _JOBS.items():
        base: dict[str, float] = {}
        for machine in MACHINES:
            say(f"{work}, {machine}")
            job = make(machine)
            (run,) = launch_runs(job, tile, f"{work}, {machine}").values()
            beats = run.counters["VECTOR_BUSY"] / count(job)
            for name, value in (("cycles", run.cycles * job.pes / count(job)), ("beats", beats)):
                key = f"{work}_{machine}_{name}"
                factor = value / base.setdefault(name, value)
                yield Measurement(key, value, "cycles", 0.01)
                yield Measurement(f"{key}_factor", factor, "", 0.01)


#: Banks of the scratchpad, each a byte wide.
_BANKS = 8


class _SeveralUnits(ScheduleModel):
    """The estimate of a schedule on an engine with several vector units behind one front end.

    Whatever may help them is free: an instruction goes to the unit that ends first, waits for
    exactly those bytes of operands that are not there yet, and ``v.drain`` does not wait.
    """

    def __init__(self, units: int, scratchpad_bytes: int) -> None:
        super().__init__()
        self._ends = [0] * units
        self._starts = [0] * units
        #: By byte of the scratchpad: cycles from which its value can be read, and of its last read.
        self._ready = np.zeros(scratchpad_bytes, np.int64)
        self._read = np.zeros(scratchpad_bytes, np.int64)

    def step(
        self,
        pc: int,
        instruction: Instruction,
        numbers: tuple[int, ...],
        values: tuple[int, ...],
        vl: int,
        mr: int,
        branched: bool,
    ) -> None:
        """Process one executed instruction, as a :class:`ScheduleModel`."""
        if instruction.key == "v.drain":
            self._issue += 1
            return
        super().step(pc, instruction, numbers, values, vl, mr, branched)
        self._end = max(self._ends)

    def _vector(
        self, pc: int, row: Instruction, values: tuple[int, ...], vl: int, mr: int, time: int
    ) -> int:
        result, first, second = (*values, 0)[:3]
        operation = VectorOperation(row, result, first, second, vl, mr)
        extents = operation.extents
        target, *sources = (slice(span.start, span.start + span.size) for span in operation.spans)
        ranges = [(part.start, part.stop) for part in (target, *sources)]
        time = self._clear(self._clear(time, ranges, self._loads), ranges[:1], self._stores)
        unit = int(np.argmin(self._ends))
        time = max(time, self._starts[unit])
        start = max(time + 1, self._ends[unit])
        for source, beats in zip(sources, extents.read_beats, strict=False):
            start = max(start, int((self._ready[source] - beats).max(initial=0)))
        made = extents.result_beats + VECTOR_LATENCY
        for earlier in (self._read, self._ready):
            start = max(start, int((earlier[target] - made).max(initial=-1)) + 1)
        for source, beats in zip(sources, extents.last_read_beats, strict=False):
            np.maximum(self._read[source], start + beats, out=self._read[source])
        self._ready[target] = start + made
        self._starts[unit], self._ends[unit] = start, start + extents.beats
        return time

    def _transfer(
        self,
        pc: int,
        row: Instruction,
        numbers: tuple[int, ...],
        values: tuple[int, ...],
        time: int,
    ) -> int:
        if row.scratchpad:
            roles = {one.role: value for one, value in zip(row.operands, values, strict=True)}
            assert row.width is not None
            start = roles[Role.SCRATCHPAD_ADDRESS]
            place = slice(start, start + roles[Role.LENGTH] * row.width.bytes)
            # A load arrives later than it issues.
            late = self.latency if row.loads else 0
            for earlier in (self._ready, self._read) if row.loads else (self._ready,):
                time = max(time, int(earlier[place].max(initial=0)) - late)
        return super()._transfer(pc, row, numbers, values, time)


def _estimate(job: KernelJob, model: Callable[[], ScheduleModel]) -> int:
    """Estimated cycles of a job of one engine with ideal memory."""
    cycles = 0
    with DramImage(job.end) as memory:
        job.prepare(memory)
        for launch in job.launches:
            schedule = model()
            simulator = Simulator(
                launch.program,
                memory,
                parameters=launch.parameters,
                instructions=LOGISTIC_INSTRUCTIONS,
            )
            watch(launch.program, simulator, schedule)
            cycles += schedule.cycles
    return cycles


@experiment(presets=("pe-logistic",), tools=AMARANTH, minutes=1)
def vector_units() -> Iterator[Measurement]:
    """Cycles of the suite on one engine, over those with two vector units behind its front end.

    Estimates with ideal memory. With two units, waiting for operands costs nothing but the time
    until they are there, so the quotients are upper bounds. And the areas of scratchpads with the
    ports for one and two units.
    """
    config = preset("pe-logistic")
    gains = []
    for application in suite().values():
        say(application.name)
        one, two = (
            sum(_estimate(job, model) for job in application.jobs)
            for model in (
                ScheduleModel,
                lambda: _SeveralUnits(2, config.scratchpad_bytes),
            )
        )
        gains.append(one / two)
        yield Measurement(f"{figure(application.name)}_gain", gains[-1], "", 0.01, True)
    yield Measurement("mean_gain", float(np.mean(gains)), "", 0.01, True)
    for units in (1, 2):
        # Two operands and a result of each unit; a store's read and a load's write.
        ports = SramGeometry(config.scratchpad_bytes // _BANKS, 8, 2 * units + 1, units + 1)
        yield Measurement(f"scratchpad_um2_{units}_units", _BANKS * sram_um2(ports), "um2")
