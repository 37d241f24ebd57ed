"""Instruction set simulators of several engines as a machine: they take turns."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from isa.image import DramImage
from isa.iss.simulator import Outcome
from isa.run import EngineEnd, Launch, Machine, RunError, RunResult

from .simulator import CompiledSimulator

__all__ = ["TURN", "SimulatedMachine"]

#: Instructions of a turn: few, as a waiting engine spends its whole turns in the wait loop.
TURN = 4096


class SimulatedMachine(Machine):
    """Compiled simulators of all engines on one memory. Its results have no cycles; a launch counts
    as hung after ``max_cycles`` instructions of each engine.

    Parameters:
        settings: of each engine, as of :class:`isa.iss.simulator.Simulator`.
        vaults: that there are. slots: engines of each.
        turn: instructions that an engine executes before the next one's turn, at least 1.
        config: kept for who opened it.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        vaults: int = 1,
        slots: int = 1,
        turn: int = TURN,
        config: Any = None,
    ) -> None:
        self.config = config
        self._settings, self._vaults, self._slots, self._turn = settings, vaults, slots, turn

    def run(
        self,
        launch: Launch,
        image: DramImage,
        *,
        engines: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> RunResult:
        """Run a launch, until a fault of any engine at most.

        Raises:
            RunError: the engines wait for each other in a deadlock.
            isa.iss.simulator.SimulatorError: the launch does not fit.
            support.native.CompilerError: there is no C++ compiler, or it fails.
        """
        started = time.perf_counter()
        slots = self._slots if engines is None else engines
        count = self._vaults * slots
        simulators = [
            CompiledSimulator(
                launch.program,
                image,
                pe_index=pe,
                vault=pe // slots,
                slot=pe % slots,
                pe_count=count,
                parameters=launch.parameters,
                **self._settings,
            )
            for pe in range(count)
        ]
        outcomes = [simulator.run(0) for simulator in simulators]
        faulted = False
        while not faulted and (running := [pe for pe in range(count) if _runs(outcomes[pe])]):
            for pe in running:
                outcomes[pe] = simulators[pe].run(self._turn)
                faulted = faulted or outcomes[pe].state == "faulted"
            if progress is not None:
                progress(sum(outcome.instructions for outcome in outcomes))
            if min(outcomes[pe].instructions for pe in running) > launch.max_cycles:
                raise RunError(f"no end after {launch.max_cycles} instructions of each engine")
        return RunResult(
            engines=tuple(
                EngineEnd(
                    state="running" if _runs(outcome) else outcome.state,
                    cause=outcome.cause,
                    pc=outcome.pc,
                    registers=tuple(simulator.registers),
                    scratchpad=simulator.scratchpad.tobytes(),
                    pe=pe,
                    vault=pe // slots,
                    slot=pe % slots,
                    executed=outcome.instructions,
                )
                for pe, (simulator, outcome) in enumerate(zip(simulators, outcomes, strict=True))
            ),
            simulated_cycles=0,
            seconds=time.perf_counter() - started,
        )


def _runs(outcome: Outcome) -> bool:
    return outcome.state == "limit"
