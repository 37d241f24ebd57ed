"""Any time of a run, and the points met on the way, equal those of a simulator that only steps."""

from random import Random
from typing import Any

import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.iss.simulator import Simulator
from sim_tb.random.programs import random_program
from sim_tb.random.random_program import RandomProgram
from soc.generate.presets import preset
from vip.debugging import timeline
from vip.debugging.timeline import Timeline
from vip.debugging.views import Point
from vip.progress import silent

CONFIG = preset("pe-small")
STEPS = 400


def state(simulator: Simulator, memory: DramImage, program: RandomProgram) -> Any:
    return (
        simulator.pc,
        list(simulator.registers),
        (simulator.vl, simulator.mr, simulator.fx),
        simulator.scratchpad.tobytes(),
        [memory.read(start, len(content)) for start, content in program.windows],
    )


def fill(memory: DramImage, program: RandomProgram) -> None:
    for address, content in program.windows:
        memory.write(address, content)


def history(program: RandomProgram) -> list[Any]:
    """The state at each time, by steps of a simulator."""
    with DramImage(1 << CONFIG.address_bits) as memory:
        fill(memory, program)
        parameters = program.launch.parameters
        simulator = Simulator(program.words, memory, parameters=parameters, **CONFIG.limits)
        states = [state(simulator, memory, program)]
        for _ in range(STEPS):
            if simulator.step().state == "faulted":
                break
            states.append(state(simulator, memory, program))
            if simulator.run(0).state == "halted":
                break
        return states


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "INTERVAL", 7)


def opened(program: RandomProgram, memory: DramImage) -> Timeline:
    fill(memory, program)
    launch = program.launch
    return Timeline(launch.program, memory, CONFIG.limits, launch.parameters, silent)


@pytest.mark.parametrize("seed", range(12))
def test_any_time_can_be_reached(seed: int) -> None:
    random = Random(seed)
    program = random_program(seed, CONFIG)
    states = history(program)
    with DramImage(1 << CONFIG.address_bits) as memory:
        run = opened(program, memory)
        assert state(run.simulator, memory, program) == states[0]
        for _ in range(12):
            time = random.randrange(len(states))
            if time < run.now:
                run.go(time)
            else:
                run.forward(time)
            assert run.now == time
            assert state(run.simulator, memory, program) == states[time]


def changes(states: list[Any], watch: Point) -> set[int]:
    """The times right after a change of the watched bytes."""

    def value(found: Any) -> Any:
        if watch.space == "register":
            return found[1][watch.start]
        return found[3][watch.start : watch.start + watch.size]

    return {
        time for time in range(1, len(states)) if value(states[time]) != value(states[time - 1])
    }


@pytest.mark.parametrize("seed", range(12))
def test_points_are_the_same_forwards_and_backwards(seed: int) -> None:
    random = Random(seed)
    program = random_program(seed, CONFIG)
    states = history(program)
    address = states[random.randrange(len(states))][0]
    watches = [Point(2, "write", random.randrange(8, 16), 1, "register")]
    watches += [Point(3, "write", random.randrange(200), 8, "scratchpad")]
    with DramImage(1 << CONFIG.address_bits) as memory:
        run = opened(program, memory)
        run.breakpoints[address] = 1
        run.watchpoints.update({watch.number: watch for watch in watches})
        forwards = []
        while run.end is None and run.now < len(states) - 1:
            if run.forward(len(states) - 1):
                forwards.append((run.now, [hit.point for hit in run.hits]))
        # Of a program that has ended, the last place is no stop.
        broken = {time for time in range(1, len(states)) if states[time][0] == address}
        broken -= {run.now} if run.end is not None else set()
        assert {time for time, points in forwards if 1 in points} == broken
        for watch in watches:
            met = {time for time, points in forwards if watch.number in points}
            assert met >= changes(states, watch)
        backwards = []
        while run.reverse():
            assert state(run.simulator, memory, program) == states[run.now]
            backwards.append((run.now, [hit.point for hit in run.hits]))
        assert run.now == 0
        assert backwards == [each for each in reversed(forwards) if each[0] < len(states) - 1]


def test_an_interrupt_leaves_a_time_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = (random_program(seed, CONFIG) for seed in range(100))
    program, states = next(
        (program, states) for program in programs if len(states := history(program)) > 30
    )

    def interrupt(stage: str, done: float = 0, *rest: object) -> None:
        if done >= 14:
            raise KeyboardInterrupt

    with DramImage(1 << CONFIG.address_bits) as memory:
        run = opened(program, memory)
        monkeypatch.setattr(run, "_progress", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run.forward(STEPS)
        assert state(run.simulator, memory, program) == states[run.now]
        monkeypatch.setattr(run, "_progress", silent)
        run.forward(20)
        assert state(run.simulator, memory, program) == states[20]


def test_the_way_back_forgets_no_executed_instruction() -> None:
    program = assemble("mov r1, #40\nloop: sub r1, r1, #1\nbne r1, r0, loop\nhalt")
    with DramImage(1 << CONFIG.address_bits) as memory:
        run = Timeline(program, memory, CONFIG.limits, 0, silent)
        run.forward(30)
        run.go(20)
        assert run.executed == {"mov.imm", "sub.imm", "bne"}
