"""The first difference from the simulator, on engines that are simulators with seeded bugs; and
cut waveforms."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from vcd.reader import TokenKind, tokenize

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.run import EngineEnd, Launch, RunResult
from pe.config import PeConfig
from pe.interface import PeCounter
from sim_tb.cosim.difference import FirstDifference, first_difference
from sim_tb.cosim.engine import CosimError, MemoryBehaviour
from sim_tb.waves.cycles import TraceError, read_cycles
from sim_tb.waves.pipeline import TracedInstruction
from sim_tb.waves.saved import cut_waves, save_file, texts_of

CONFIG = PeConfig(address_bits=20)
PROGRAM = assemble(
    """
    li r8, #100         ; rounds
    li r9, #0
    li r10, #4
    li r11, #0x200
    set.vl r10
loop:
    add r9, r9, #3
    ld.sram [16-bit] r0, r0, r10
    v.v.add [16-bit] r11, r0, r0
    v.drain
    st.sram [16-bit] r11, r11, r10
    sub r8, r8, #1
    bne r8, r0, loop
    halt
""",
    name="loop.s",
)
MEMORY = bytes(range(16))
#: Cycles of an instruction.
CYCLES = 7

Bug = Callable[[Simulator, DramImage, int], None]


class Engine:
    """An engine of the simulator, with a ``bug`` that spoils it after each instruction, given the
    number executed. A run leaves its scratchpad to the next one. It ends ``wait`` cycles after its
    last instruction."""

    def __init__(self, bug: Bug, config: PeConfig = CONFIG, wait: int = 0) -> None:
        self.bug, self.config, self.runs, self.wait = bug, config, 0, wait
        self.scratchpad = bytes(config.scratchpad_bytes)

    def run(
        self,
        launch: Launch,
        image: DramImage,
        *,
        memory: MemoryBehaviour,
        scratchpad: bytes | None = None,
    ) -> RunResult:
        self.runs += 1
        start = self.scratchpad if scratchpad is None else scratchpad
        simulator = Simulator(launch.program, image, **self.config.limits, scratchpad=start)
        outcome = EngineEnd(state="running", cause=simulator.run(0).cause, pc=0, executed=0)
        stop = launch.max_cycles if launch.stop_after is None else launch.stop_after
        done = 0
        while outcome.state == "running" and done * CYCLES < stop:
            outcome = simulator.step()
            done += outcome.state != "faulted"
            self.bug(simulator, image, done)
        self.scratchpad = simulator.scratchpad.tobytes()
        ended = outcome.state != "running"
        counters = {item.name: 0 for item in PeCounter}
        counters["ISSUED_SCALAR"] = done
        end = EngineEnd(
            state="faulted" if outcome.state == "faulted" else "halted",
            cause=outcome.cause,
            pc=outcome.pc,
            elapsed_cycles=done * CYCLES + self.wait if ended else stop + CYCLES,
            counters=counters,
            registers=list(simulator.registers),
            scratchpad=self.scratchpad,
        )
        return RunResult(engines=(end,), simulated_cycles=done, seconds=1.0)


def located(bug: Bug, commits: int = 3, wait: int = 0) -> FirstDifference | None:
    return first_difference(
        Engine(bug, wait=wait),  # type: ignore[arg-type]
        Launch(program=PROGRAM, max_cycles=100_000),
        lambda image: image.write(0, MEMORY),
        memory_bytes=1 << CONFIG.address_bits,
        commits=commits,
    )


def executed(simulator: Simulator, text: str) -> bool:
    """Whether the instruction that was executed last has the line ``text``."""
    source = PROGRAM.source.get(simulator.pc - 1)
    return source is not None and source.text.strip() == text


@pytest.mark.parametrize("wait", [0, 5000])
def test_an_engine_without_a_bug_does_not_differ(wait: int) -> None:
    # A stop may come while the halt waits.
    assert located(lambda *_: None, wait=wait) is None


def test_a_register_that_differs_is_found_at_its_instruction() -> None:
    def bug(simulator: Simulator, image: DramImage, done: int) -> None:
        if simulator.registers[9] == 3 * 40 and executed(simulator, "add r9, r9, #3"):
            simulator.registers[9] ^= 1 << 5

    found = located(bug)
    assert found is not None
    assert found.instruction.text == "add r9, r9, #3"
    assert found.instruction.source is not None
    assert found.instruction.source.file == "loop.s"
    assert found.instruction.number == 5 + 39 * 7 + 1
    assert [each.text.split()[0] for each in found.commits] == ["sub", "bne", "add"]
    (place,) = found.differing
    assert (place.space, place.start) == ("register", 9)
    assert int.from_bytes(place.expected, "little") == 120
    assert int.from_bytes(place.got, "little") == 120 ^ 32
    (operand,) = found.operands
    assert (operand.start, int.from_bytes(operand.expected, "little")) == (9, 117)
    # As many runs as it takes to halve the cycles of the run, twice.
    assert found.runs < 30


def test_elements_of_a_vector_that_differ_are_found_with_the_operands() -> None:
    def bug(simulator: Simulator, image: DramImage, done: int) -> None:
        if done > 300 and executed(simulator, "v.v.add [16-bit] r11, r0, r0"):
            simulator.scratchpad[0x202:0x206] ^= 0xFF

    found = located(bug)
    assert found is not None
    assert found.instruction.text == "v.v.add [16-bit] r11, r0, r0"
    assert 300 < found.instruction.number <= 307
    (place,) = found.differing
    assert (place.space, place.start, place.bytes_each) == ("scratchpad", 0x202, 2)
    assert place.expected == b"\x04\x06\x08\x0a"
    assert place.got == bytes(0xFF - each for each in place.expected)
    assert [each.expected for each in found.operands if each.space == "scratchpad"] == [
        MEMORY[:8],
        MEMORY[:8],
    ]


def test_the_scratchpad_of_the_run_before_is_no_difference() -> None:
    def bug(simulator: Simulator, image: DramImage, done: int) -> None:
        if executed(simulator, "v.v.add [16-bit] r11, r0, r0"):
            simulator.scratchpad[0x202] ^= 0xFF

    found = located(bug)
    assert found is not None
    assert (found.instruction.number, found.instruction.text[:7]) == (8, "v.v.add")


def test_memory_that_differs_is_found_at_its_store() -> None:
    def bug(simulator: Simulator, image: DramImage, done: int) -> None:
        if done > 500 and executed(simulator, "st.sram [16-bit] r11, r11, r10"):
            image.write(0x207, b"\x77")

    found = located(bug)
    assert found is not None
    assert found.instruction.text.startswith("st.sram")
    (place,) = found.differing
    assert (place.space, place.start, place.got) == ("memory", 0x207, b"\x77")


def test_a_program_that_ends_early_is_found() -> None:
    def bug(simulator: Simulator, image: DramImage, done: int) -> None:
        if done == 200:
            simulator.pc = len(PROGRAM.words) - 1

    found = located(bug)
    assert found is not None
    assert found.instruction.number in (201, 202)
    assert "halted" in found.end.lower() or found.differing


def test_an_engine_that_breaks_down_is_located() -> None:
    class Hanging(Engine):
        def run(self, launch: Launch, image: DramImage, **settings: Any) -> RunResult:
            found = super().run(launch, image, **settings)
            if found.engine.counters["ISSUED_SCALAR"] >= 90:
                raise CosimError("the engine hangs")
            return found

    found = first_difference(
        Hanging(lambda *_: None),  # type: ignore[arg-type]
        Launch(program=PROGRAM, max_cycles=100_000),
        lambda image: image.write(0, MEMORY),
        memory_bytes=1 << CONFIG.address_bits,
    )
    assert found is not None
    assert (found.instruction.number, found.end) == (90, "the engine hangs")


def test_an_engine_without_counters_is_refused() -> None:
    engine = Engine(lambda *_: None, replace(CONFIG, counters=False))
    launch = Launch(program=PROGRAM, max_cycles=1000)
    with pytest.raises(CosimError, match="no counters"):
        first_difference(engine, launch, lambda _: None, memory_bytes=4096)  # type: ignore[arg-type]


def waves(path: Path, cycles: int) -> Path:
    """A file with a clock and a number that counts its cycles; another signal never changes."""
    lines = [
        "$timescale 1ps $end",
        "$scope module top $end",
        "$var wire 1 ! clk $end",
        "$var wire 8 # count [7:0] $end",
        "$var wire 4 % still [3:0] $end",
        "$upscope $end",
        "$enddefinitions $end",
        "#0",
        "0!",
        "b0 #",
        "b1010 %",
    ]
    for cycle in range(cycles):
        lines += [f"#{10 * cycle + 5}", "1!", f"b{cycle + 1:b} #", f"#{10 * cycle + 10}", "0!"]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_cut_waveforms_hold_their_cycles_with_all_values(tmp_path: Path) -> None:
    whole, part = waves(tmp_path / "whole.vcd", 50), tmp_path / "part.vcd"
    cut_waves(whole, part, 20, 29)
    signals = ["top.count", "top.still"]
    found = list(read_cycles(part, "top.clk", signals))
    assert [count for count, _ in found[1:]] == [count + 20 for count in range(1, 10)]
    assert {still for _, still in found[1:]} == {0b1010}
    assert "#205\n" in part.read_text()
    assert "#305\n" not in part.read_text()
    assert list(read_cycles(whole, "top.clk", signals))[21:30] == found[1:]


def test_texts_and_groups_are_beside_the_signals(tmp_path: Path) -> None:
    instructions = [TracedInstruction(0), TracedInstruction(1)]
    for each, start in zip(instructions, (18, 25), strict=True):
        each.enter("F", start)
        each.enter("O", start + 5)
        each.leave(start + 6)
    texts = texts_of(PROGRAM, instructions)
    assert texts["fetch"][0] == (18, 22, "0: mov r8, #100")
    part = tmp_path / "part.vcd"
    cut_waves(waves(tmp_path / "whole.vcd", 50), part, 20, 29, texts)
    with part.open("rb") as file:
        variables = [each.var for each in tokenize(file) if each.kind is TokenKind.VAR]
    assert ("text0", "fetch") in [(each.id_code, each.reference) for each in variables]
    changes = part.read_text().partition("$enddefinitions")[2].splitlines()
    assert [line.split()[0] for line in changes if line.endswith(" text0")] == [
        "s0:\\x20mov\\x20r8,\\x20#100",
        "s",
        "s1:\\x20mov\\x20r9,\\x20#0",
        "s",
    ]
    saved = save_file(part, texts, ".gtkw")
    assert '[dumpfile] "part.vcd"' in saved
    assert "\ntop.clk\n" in saved
    assert "[timestart] 205\n" in saved
    assert saved.index("-instructions") < saved.index("instructions.fetch")


def test_cycles_beyond_the_waveforms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="ends before clock cycle 80"):
        cut_waves(waves(tmp_path / "whole.vcd", 50), tmp_path / "part.vcd", 80, 90)
