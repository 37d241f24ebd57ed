"""Whole jobs on compiled simulators."""

from dataclasses import replace

import numpy as np
import pytest

from isa.assembly.assembler import assemble
from isa.run import Launch
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.common.errors import KernelError
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import Golden, KernelJob, execute
from microkernels.runtime.ring import ChipEngines

ENGINES = [
    ChipEngines(),
    ChipEngines(columns=2, rows=2, address_bits=20),
    ChipEngines(columns=3, address_bits=20),
]


@pytest.mark.parametrize("turn", [7, 4096])
@pytest.mark.parametrize("engines", ENGINES)
def test_messages_of_a_chip_are_exact(engines: ChipEngines, turn: int) -> None:
    problem = motorcycle(34, 22, 16).problem
    run = execute(bp_job(problem, 2, engines=engines), turn=turn)
    assert run.match
    assert run.instructions > 10_000


def test_several_launches_share_one_memory() -> None:
    problem = motorcycle(34, 22, 16).problem
    job = bp_levels_job(problem, 1, 1, engines=replace(ENGINES[1], pes=2))
    assert len(job.launches) > 1
    assert execute(job).match


def _job(text: str, max_cycles: int = 1000) -> KernelJob:
    return KernelJob(
        name="some",
        launches=(Launch(program=assemble(text), max_cycles=max_cycles),),
        prepare=lambda memory: None,
        outputs=lambda memory: np.frombuffer(memory.read(0, 8), "<i8"),
        golden=Golden(lambda: np.array([0])),
        end=4096,
        pes=2,
    )


def test_engines_that_fault_or_do_not_end_are_named() -> None:
    faulting = _job("bne r1, r0, bad\nhalt\nbad: set.vl r0\n")
    with pytest.raises(KernelError, match=r"engine 1 of vault 0: .*: set\.vl r0: 0 "):
        execute(faulting)
    with pytest.raises(KernelError, match=r"some: .*still running after 1,000 instructions"):
        execute(_job("bne r1, r0, wait\nhalt\nwait: jmp wait\n"))
    with pytest.raises(KernelError, match="turn must be at least 1, not 0"):
        execute(faulting, turn=0)
    run = execute(_job("st.reg [64-bit] r0, r4\nhalt\n"))
    assert (run.match, run.outputs[0], run.instructions) == (False, 2, 4)
    assert execute(replace(_job("halt\n"), pes=1)).match


def test_launches_have_names_of_their_own() -> None:
    job = _job("halt")
    with pytest.raises(KernelError, match=r"^some: two launches have the name ''$"):
        replace(job, launches=2 * job.launches)
