"""Simulator sessions, with a traffic generator in the place of the engine."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pe.config import PeConfig
from sim_tb.dut.engine import TOP, engine_design
from sim_tb.harness.engine import HostJob, HostResult, Outcome
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.runner.build import BuildError, Design, build
from sim_tb.runner.session import Session, SessionError

SIZE = 1 << 20
COUNTERS = ("cycles", "latency", "sum", "words", "disorder", "errors", "pe_index")
TRAFFIC = (Path(__file__).parent / "traffic.sv").read_text()
CONFIG = PeConfig(address_bits=20, load_store_queue=16)


def request(address: int, words: int = 1, *, write: bool = False, bad: bool = False) -> int:
    """A word of the traffic generator's program."""
    return write | bad << 1 | (words - 1) << 2 | address // 8 << 4 | 0xFF << 24


def counters(result: HostResult) -> dict[str, int]:
    return dict(zip(COUNTERS, result.counters, strict=False))


@pytest.fixture(scope="module")
def simulator() -> Path:
    return build(engine_design(CONFIG, netlist=TRAFFIC))


@pytest.fixture(scope="module")
def session(simulator: Path) -> Iterator[Session]:
    with Session(simulator, TOP) as running:
        yield running


@pytest.fixture
def job(tmp_path: Path) -> HostJob:
    image = tmp_path / "image"
    np.arange(SIZE // 8, dtype=np.uint64).tofile(image)
    return HostJob(
        words=(request(0x100),),
        memory=str(image),
        behaviour=MemoryBehaviour(),
        reset=True,
        parameters=0,
        max_cycles=100_000,
        stop_cycles=10_000,
        identity=(7, 0, 0, 1),
    )


def run(session: Session, job: HostJob) -> HostResult:
    (result,) = session.run_many([job])
    return result


@pytest.mark.parametrize("latency", [1, 2, 40, 1000])
def test_latency_through_the_port(session: Session, job: HostJob, latency: int) -> None:
    found = counters(run(session, replace(job, behaviour=MemoryBehaviour(latency=latency))))
    assert (found["latency"], found["words"], found["sum"]) == (latency, 1, 0x100 // 8)
    assert found["pe_index"] == 7


def test_default_memory_moves_a_word_a_cycle(session: Session, job: HostJob) -> None:
    words = tuple(request(32 * i, 4) for i in range(1000))
    result = run(session, replace(job, words=words))
    found = counters(result)
    assert found["words"] == 4000
    assert found["sum"] == sum(range(4000))
    assert found["disorder"] == 0
    assert found["cycles"] == result.cycles
    assert 4000 <= result.cycles <= 4000 + 40 + 4


def test_bandwidth_limits_reads(session: Session, job: HostJob) -> None:
    words = tuple(request(32 * i, 4) for i in range(200))
    result = run(session, replace(job, words=words, behaviour=MemoryBehaviour(bandwidth=64)))
    assert 3200 - 4 <= result.cycles <= 3200 + 50


def test_writes_reach_the_file(session: Session, job: HostJob) -> None:
    words = tuple(request(0x8000 + 32 * i, 4, write=True) for i in range(100))
    assert run(session, replace(job, words=words)).outcome is Outcome.ENDED
    image = np.fromfile(job.memory, dtype=np.uint64)
    written = slice(0x8000 // 8, 0x8000 // 8 + 400)
    assert np.array_equal(image[written], np.arange(0x8000, 0x8000 + 3200, 8))
    image[written] //= 8
    assert np.array_equal(image, np.arange(SIZE // 8))


def test_rough_memory_gives_the_same_data_in_another_order(session: Session, job: HostJob) -> None:
    words = tuple(request(32 * i, 4) for i in range(300))
    rough = MemoryBehaviour(extra_latency=50, stall=0.3, gap=0.3, out_of_order=True)
    found = counters(run(session, replace(job, words=words, behaviour=rough)))
    assert found["sum"] == sum(range(1200))
    assert found["disorder"] > 10


def test_errors_are_answered(session: Session, job: HostJob) -> None:
    words = tuple(request(32 * i, 4) for i in range(10))
    behaviour = MemoryBehaviour(errors=(32, 96))
    found = counters(run(session, replace(job, words=words, behaviour=behaviour)))
    assert found["errors"] == 2


def test_broken_rule_fails_the_run_and_not_the_next(session: Session, job: HostJob) -> None:
    bad = replace(job, words=(request(0), request(32, bad=True)), reset=False)
    first, second = session.run_many([bad, replace(job, reset=False)])
    assert first.outcome is Outcome.VIOLATION
    assert first.violation.startswith("TAG_REUSED: tag 0 is still in flight")
    assert second.outcome is Outcome.ENDED


def test_endless_program_is_stopped_and_a_deaf_engine_reset(session: Session, job: HostJob) -> None:
    slow = replace(job, behaviour=MemoryBehaviour(latency=5000), max_cycles=100)
    hung = replace(slow, stop_cycles=4000)
    results = session.run_many([slow, hung, job])
    outcomes = [result.outcome for result in results]
    assert outcomes == [Outcome.TOO_LONG, Outcome.HUNG, Outcome.ENDED]


def test_many_runs_keep_their_order_and_report_progress(session: Session, job: HostJob) -> None:
    jobs = [replace(job, identity=(i, 0, 0, 1), reset=i % 2 == 0) for i in range(20)]
    results = list(session.run_many(jobs))
    assert [counters(result)["pe_index"] for result in results] == list(range(20))
    seen: list[int] = []
    slow = replace(job, behaviour=MemoryBehaviour(latency=1_000_000), max_cycles=10**7)
    list(session.run_many([slow], seen.append))
    assert seen == sorted(seen)
    assert len(seen) > 1


def test_results_that_nobody_takes_do_not_disturb(simulator: Path, job: HostJob) -> None:
    jobs = [replace(job, identity=(i, 0, 0, 1)) for i in range(9)]
    with Session(simulator, TOP) as session:
        assert counters(next(session.run_many(jobs)))["pe_index"] == 0
        assert counters(run(session, jobs[8]))["pe_index"] == 8
        next(session.run_many(jobs))


def test_missing_image_ends_the_session_with_its_reason(simulator: Path, job: HostJob) -> None:
    with (
        pytest.raises(SessionError, match="cannot map the memory image /nowhere"),
        Session(simulator, TOP) as session,
    ):
        list(session.run_many([replace(job, memory="/nowhere")]))


def wait_until_ended(process: int, seconds: float = 10) -> None:
    """Wait for the end of a process, which its parent may not have waited for (a zombie)."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail(f"process {process} runs still after {seconds} s")


class Interruption:
    """Progress that, at its first call, does something to the simulator's process."""

    def __init__(self, session: Session, action: Callable[[int], object]) -> None:
        self.session = session
        self.action = action
        self.process = 0

    def __call__(self, cycles: int) -> None:
        if not self.process:
            self.process = self.session.process
            self.action(self.process)


@pytest.fixture
def endless(job: HostJob) -> HostJob:
    words = (request(0),) * 1000
    return replace(job, words=words, behaviour=MemoryBehaviour(latency=1_000_000), max_cycles=2**60)


def test_killed_simulator_is_an_error(simulator: Path, endless: HostJob) -> None:
    def kill(process: int) -> None:
        os.kill(process, signal.SIGKILL)

    def run_and_kill() -> None:
        with Session(simulator, TOP) as session:
            list(session.run_many([endless], Interruption(session, kill)))

    with pytest.raises(SessionError, match="simulator failed"):
        run_and_kill()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_leaving_by_an_exception_kills_the_simulator(simulator: Path, endless: HostJob) -> None:
    processes = []

    def interrupt(process: int) -> None:
        processes.append(process)
        raise KeyboardInterrupt

    def run_and_interrupt() -> None:
        with Session(simulator, TOP) as session:
            list(session.run_many([endless], Interruption(session, interrupt)))

    with pytest.raises(KeyboardInterrupt):
        run_and_interrupt()
    wait_until_ended(processes[0])


def test_waveforms_appear_when_all_went_well(tmp_path: Path, job: HostJob) -> None:
    traced = build(engine_design(CONFIG, "vcd", netlist=TRAFFIC))
    wave = tmp_path / "wave.vcd"
    with Session(traced, TOP, trace=wave) as session:
        assert run(session, job).outcome is Outcome.ENDED
        assert not wave.exists()
    text = wave.read_text()
    assert "$enddefinitions" in text
    assert "memory__request__valid" in text
    assert text.count("#") > 50
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image", "wave.vcd"]


def test_builds_are_shared_by_content(simulator: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert build(engine_design(CONFIG, netlist=TRAFFIC)) == simulator
    with pytest.raises(BuildError, match=r"needs a C\+\+ compiler: 'c\+\+' is not on the path"):
        build(engine_design(CONFIG, netlist=TRAFFIC + "\n"))


def test_refused_source_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path))
    design = Design(
        top="broken", verilog={"broken.v": "module broken; wire w = ; endmodule\n"}, support=()
    )
    with pytest.raises(
        BuildError, match=r"^building broken failed: %Error.*syntax error"
    ) as caught:
        build(design)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "simulators").iterdir()) == []
