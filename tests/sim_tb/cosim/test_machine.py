"""Machines of an engine, a vault and a chip: the same runs, and what each of them lacks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vip
from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.run import Launch, RunError
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.chip import Periods
from sim_tb.cosim.engine import CosimError, MemoryBehaviour
from sim_tb.cosim.kernels import bp_job_on, run_on
from sim_tb.cosim.machine import On, open_machine
from soc.generate.presets import PRESETS, chip_preset

#: Each engine stores its number in the chip to a word of its own.
NUMBERS = assemble("""
    sll r9, r1, #3
    add r9, r9, r5
    st.reg [64-bit] r9, r1
    memfence
    halt
""")
PROBLEM = motorcycle(9, 7, 8).problem


@pytest.mark.parametrize("on", ["iss", "model", "rtl"])
@pytest.mark.parametrize("preset", ["pe", "vault-small", "tiny"])
def test_a_program_runs_on_every_machine(preset: str, on: On) -> None:
    design = PRESETS[preset]
    size = 8 * design.engines
    run = vip.cosim(NUMBERS, design, on=on, parameters=4096, dump=vip.Dump(4096, size))
    assert [end.state for end in run.result.engines] == ["halted"] * design.engines
    assert np.frombuffer(run.dumped, np.int64).tolist() == list(range(design.engines))
    assert (run.comparison is None) == (design.kind != "engine" or on == "iss")
    numbers = run.to_json()
    assert numbers["machine"] == on
    assert ("vault_counters" in numbers) == (design.kind != "engine" and on != "iss")
    assert (run.result.cycles > 0) == (on != "iss")


@pytest.mark.parametrize("on", ["iss", "model"])
def test_engines_that_are_not_launched_count(on: On) -> None:
    """An engine's number and the count of all are the machine's, however many run."""
    program = assemble("""
        sll r9, r1, #4
        add r9, r9, r5
        st.reg [64-bit] r9, r1
        add r9, r9, #8
        st.reg [64-bit] r9, r4
        memfence
        halt
    """)
    design = PRESETS["vault-small"]
    launch = Launch(program=program, parameters=4096)
    with DramImage(design.memory_bytes) as image, open_machine(design, on) as machine:
        result = machine.run(launch, image, engines=design.slots - 1)
        stored = np.frombuffer(image.read(4096, 16 * design.slots), np.int64).reshape(-1, 2)
        for engines in (0, design.slots + 1):
            with pytest.raises(RunError, match=f"{engines} engines can't be launched in a vault"):
                machine.run(launch, image, engines=engines)
    working = [[pe, design.engines] for pe in range(design.slots - 1)]
    assert stored.tolist() == [*working, [0, 0]]
    assert [end.pe for end in result.engines] == list(range(design.slots - 1))


@pytest.mark.parametrize(
    ("preset", "on"), [("pe", "iss"), ("vault-small", "model"), ("tiny", "model")]
)
@pytest.mark.parametrize("disturbance", [{"stop_after": 5}, {"limits": (1, 1)}])
def test_a_disturbance_that_a_machine_lacks_is_refused(
    preset: str, on: On, disturbance: dict[str, Any]
) -> None:
    design = PRESETS[preset]
    launch = Launch(program=NUMBERS, **disturbance)
    with (
        DramImage(design.memory_bytes) as image,
        open_machine(design, on) as machine,
        pytest.raises(RunError, match="not stop"),
    ):
        machine.run(launch, image)


@pytest.mark.parametrize("preset", ["pe", "vault-small"])
def test_a_kernel_takes_the_same_cycles_on_model_and_verilog(preset: str) -> None:
    design = PRESETS[preset]
    room = design.pe.scratchpad_bytes
    job = bp_job(PROBLEM, 1, engines=ChipEngines(pes=design.slots, scratchpad_bytes=room))
    functional, model, verilog = (run_on(job, design, on=on) for on in ("iss", "model", "rtl"))
    assert functional.match
    assert model.match
    assert verilog.match
    assert functional.cycles == 0 < model.cycles == verilog.cycles


def test_a_kernel_on_the_simulators_of_a_chip() -> None:
    tiny = chip_preset("tiny")
    job = bp_job_on(PROBLEM, 1, tiny)
    assert run_on(job, tiny, on="iss").match


@pytest.mark.parametrize(
    ("preset", "on", "option", "message"),
    [
        ("pe", "model", {"trace": Path("wave.vcd")}, r"wave\.vcd: the timing model writes no wave"),
        ("tiny", "iss", {"trace": Path("wave.vcd")}, r"the instruction set simulator writes no"),
        ("vault-small", "rtl", {"ports_only": True}, "the Verilog of a vault has no waveforms of"),
        ("vault-small", "model", {"memory": MemoryBehaviour()}, "a vault has its own memory"),
        ("tiny", "rtl", {"memory": MemoryBehaviour()}, "a chip has its own memory"),
        ("pe", "rtl", {"outer": True}, "no AXI buses for an outer host"),
        ("vault-small", "rtl", {"periods": Periods()}, "of a vault has no periods of two clocks"),
    ],
)
def test_what_a_machine_lacks_is_refused_by_name(
    preset: str, on: On, option: dict[str, Any], message: str
) -> None:
    with pytest.raises(CosimError, match=message):
        open_machine(PRESETS[preset], on, **option)  # type: ignore[misc]


def test_simulators_that_wait_for_each_other_end() -> None:
    endless = Launch(program=assemble("loop: jmp loop\n"), max_cycles=10_000)
    design = PRESETS["vault-small"]
    with (
        DramImage(design.memory_bytes) as image,
        open_machine(design, "iss") as machine,
        pytest.raises(RunError, match="still running after 10,000 instructions"),
    ):
        machine.run(endless, image)
