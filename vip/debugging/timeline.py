"""A program's run, forwards and backwards.

Time is the number of executed instructions. Every :data:`INTERVAL` instructions the engine's state
becomes a checkpoint; the bytes of memory that each store replaces are logged in order. To reach an
earlier time, undo stores back to the last checkpoint before it, and execute again from there
(docs/decisions/machine.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from isa.accesses import Access, Space, accesses
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.iss.state import Operation, ProcessorState
from isa.limits import Limits
from isa.program import Program
from isa.run import EngineEnd
from isa.table import Instruction
from vip.progress import Progress

from .views import Hit, ListedWord, Point, listed

#: Instructions from a checkpoint to the next.
INTERVAL = 10_000


class _Stopped(Exception):
    """A point is met: the next instruction is not executed."""


@dataclass(frozen=True)
class _Checkpoint:
    """The engine at a time; ``settings``: VL, MR and FX; ``stores``: number of logged stores until
    then."""

    time: int
    pc: int
    registers: tuple[int, ...]
    scratchpad: bytes
    settings: tuple[int, int, int]
    stores: int


class Timeline:
    """The run of ``program`` on one engine.

    Parameters:
        program: the program. memory: its memory, which the run changes.
        limits: sizes of the engine. parameters: start register r5.
        progress: called with the instructions so far.

    Attributes:
        simulator: the engine at present; another object after each way back.
        breakpoints: word address -> number. watchpoints: by number. Change them in place.
        end: outcome of the program, once it has ended; else None.
        hits: the points met by the last instruction, or at the next one.
    """

    def __init__(
        self,
        program: Program,
        memory: DramImage,
        limits: Limits,
        parameters: int,
        progress: Progress,
    ) -> None:
        self._program, self._memory, self._limits = program, memory, limits
        self._parameters, self._progress = parameters, progress
        self.breakpoints: dict[int, int] = {}
        self.watchpoints: dict[int, Point] = {}
        self.hits: list[Hit] = []
        self._passing = False
        self._state: ProcessorState | None = None
        self._stores: list[tuple[int, bytes]] = []
        self._executed: set[str] = set()
        self._launched = 0
        self.end: EngineEnd | None = None
        self.simulator = self._launch(None)
        self._checkpoints = [self._checkpoint()]

    @property
    def now(self) -> int:
        """Instructions executed since the launch."""
        return self._launched + sum(self.simulator.visits)

    @property
    def executed(self) -> set[str]:
        """Keys of all instructions that were ever executed, also on the way back."""
        return self._executed | self.simulator.executed.keys()

    def size(self, space: Space) -> int:
        """Bytes of the scratchpad or of the memory, or number of registers."""
        if space == "memory":
            return self._memory.size
        engine = self.simulator
        return len(engine.registers) if space == "register" else engine.scratchpad.size

    def content(self, space: Space, start: int, size: int) -> bytes:
        """Bytes of the scratchpad or of the memory; all eight of the register number ``start``."""
        if space == "register":
            return self.simulator.registers[start].to_bytes(8, "little")
        if space == "memory":
            return self._memory.read(start, size)
        return self.simulator.scratchpad[start : start + size].tobytes()

    def listing(self, addresses: Sequence[int]) -> tuple[ListedWord, ...]:
        """The words of the program at ``addresses``."""
        return listed(self._program, addresses, self.simulator.pc, self.breakpoints)

    def forward(self, until: int) -> bool:
        """Execute until time ``until`` is reached, a point is met, or the program ends.

        Returns:
            Whether a point is met, now named by :attr:`hits`. A breakpoint at the first instruction
            counts as met before.
        """
        self.hits.clear()
        if (time := self.now) >= until or self.end is not None:
            return False
        self._passing = self.simulator.pc in self.breakpoints
        try:
            while time < until:
                boundary = min(until, (time // INTERVAL + 1) * INTERVAL)
                outcome = self.simulator.run(boundary - time)
                time = self.now
                if outcome.state != "running":
                    self.end = outcome
                    break
                self._progress("instructions", time)
                if time % INTERVAL == 0 and time > self._checkpoints[-1].time:
                    self._checkpoints.append(self._checkpoint())
                if self.hits:
                    break
        except _Stopped:
            pass
        except BaseException:
            # An instruction may be half done.
            self._restore(self._checkpoints[-1])
            raise
        pc = self.simulator.pc
        if self.end is None and (number := self.breakpoints.get(pc)) is not None:
            self.hits.append(Hit(number, pc))
        return bool(self.hits)

    def go(self, time: int) -> None:
        """Go to ``time``, 0..now, past all points between."""
        self._restore(self._before(time + 1))
        points = dict(self.breakpoints), dict(self.watchpoints)
        self.breakpoints.clear()
        self.watchpoints.clear()
        try:
            self.forward(time)
        finally:
            self.breakpoints.update(points[0])
            self.watchpoints.update(points[1])

    def reverse(self) -> bool:
        """Go back to the last time before now at which a point was met, or to the launch.

        Returns:
            Whether there is such a time.
        """
        end = self.now
        while True:
            start = self._before(end - 1)
            self._restore(start)
            last = self._last(end)
            if last is not None:
                self._restore(self._before(last))
                while self.now < last:
                    self.forward(last)
                return True
            if start.time == 0:
                self.go(0)
                return False
            end = start.time + 1

    def _last(self, end: int) -> int | None:
        """Execute until ``end``; the last time before it at which a point is met."""
        last = None
        while self.end is None and self.now < end - 1:
            if self.forward(end - 1):
                last = self.now
        return last

    def _before(self, time: int) -> _Checkpoint:
        """The last checkpoint before ``time``, or that of the launch; later ones are dropped."""
        while len(self._checkpoints) > 1 and self._checkpoints[-1].time >= time:
            self._checkpoints.pop()
        return self._checkpoints[-1]

    def _launch(self, start: _Checkpoint | None) -> Simulator:
        simulator = Simulator(
            self._program,
            self._memory,
            parameters=self._parameters,
            **self._limits,
            scratchpad=None if start is None else start.scratchpad,
            observer=self._observe,
        )
        if start is not None:
            simulator.registers[:] = start.registers
            simulator.pc = start.pc
            if self._state is not None:
                self._state.vl, self._state.mr, self._state.fx = start.settings
        return simulator

    def _checkpoint(self) -> _Checkpoint:
        simulator = self.simulator
        return _Checkpoint(
            time=self.now,
            pc=simulator.pc,
            registers=tuple(simulator.registers),
            scratchpad=simulator.scratchpad.tobytes(),
            settings=(simulator.vl, simulator.mr, simulator.fx),
            stores=len(self._stores),
        )

    def _restore(self, target: _Checkpoint) -> None:
        while len(self._stores) > target.stores:
            self._memory.write(*self._stores.pop())
        self._executed = self.executed
        self._launched, self.simulator, self.end = target.time, self._launch(target), None
        self.hits.clear()

    def _observe(
        self, state: ProcessorState, row: Instruction, word: int, address: int, operation: Operation
    ) -> Operation:
        """The operation, which stops at a point and logs the bytes that a store replaces."""
        self._state = state
        find = accesses(state, row, word)
        stores = row.memory is not None and not row.loads
        hits, breakpoints, watchpoints = self.hits, self.breakpoints, self.watchpoints

        def observed() -> int:
            if hits or (address in breakpoints and not self._passing):
                raise _Stopped
            self._passing = False
            if find is None or not (stores or watchpoints):
                return operation()
            touched = find()
            if stores:
                self._keep(touched[0], state.memory_bytes)
            met = self._met(touched) if watchpoints else ()
            following = operation()
            for watch, wrote, before in met:
                hits.append(Hit(watch.number, address, wrote, before, self._watched(watch)))
            return following

        return observed

    def _keep(self, target: Access, memory_bytes: int) -> None:
        if target.start + target.size <= memory_bytes:
            self._stores.append((target.start, self._memory.read(target.start, target.size)))

    def _met(self, touched: tuple[Access, ...]) -> list[tuple[Point, bool, bytes]]:
        met = []
        for watch in self.watchpoints.values():
            assert watch.space is not None
            kinds = {
                access.writes
                for access in touched
                if access.overlaps(watch.space, watch.start, watch.size)
                and watch.concerns(access.writes)
            }
            if kinds:
                met.append((watch, True in kinds, self._watched(watch)))
        return met

    def _watched(self, watch: Point) -> bytes:
        assert watch.space is not None
        return self.content(watch.space, watch.start, watch.size)
