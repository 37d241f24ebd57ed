"""Instruction set simulators of several engines as a machine: they take turns."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from isa.assembly.disassembler import located
from isa.image import DramImage
from isa.program import still_running
from isa.run import Launch, Machine, RunError, RunResult

from .simulator import CompiledSimulator

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
            RunError: the engines wait for each other in a deadlock, or there are not so many; or
                the launch has a stop or limits, which need cycles.
            isa.iss.simulator.SimulatorError: the launch does not fit.
            support.native.CompilerError: there is no C++ compiler, or it fails.
        """
        started = time.perf_counter()
        launched = self._slots if engines is None else engines
        if not 1 <= launched <= self._slots:
            raise RunError(f"{launched} engines can't be launched in a vault of {self._slots}")
        if launch.stop_after is not None or launch.limits is not None:
            raise RunError("instruction set simulators have no cycles and do not stop or limit")
        places = [(vault, slot) for vault in range(self._vaults) for slot in range(launched)]
        simulators = [
            CompiledSimulator(
                launch.program,
                image,
                pe_index=vault * self._slots + slot,
                vault=vault,
                slot=slot,
                pe_count=self._vaults * self._slots,
                parameters=launch.parameters,
                **self._settings,
            )
            for vault, slot in places
        ]
        ends = [simulator.run(0) for simulator in simulators]
        faulted = False
        while not faulted and (
            running := [at for at, end in enumerate(ends) if end.state == "running"]
        ):
            for at in running:
                ends[at] = simulators[at].run(self._turn)
                faulted = faulted or ends[at].state == "faulted"
            if progress is not None:
                progress(sum(end.executed for end in ends))
            if min(ends[at].executed for at in running) > launch.max_cycles:
                place = located(launch.program, ends[running[0]].pc)
                raise RunError(still_running(place, launch.max_cycles, "instruction"))
        return RunResult(
            engines=tuple(
                replace(
                    end,
                    registers=tuple(simulator.registers),
                    scratchpad=simulator.scratchpad.tobytes(),
                    pe=vault * self._slots + slot,
                    vault=vault,
                    slot=slot,
                )
                for (vault, slot), simulator, end in zip(places, simulators, ends, strict=True)
            ),
            simulated_cycles=0,
            seconds=time.perf_counter() - started,
        )
