"""What tests of trimming need of it."""

from collections.abc import Sequence
from typing import Any

from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.program import Program
from pe.config import PeConfig
from synth.analysis.bounds import Sizes
from synth.analysis.contents import Subject
from synth.analysis.facts import Facts
from synth.analysis.profile import Profile, profile_of, profile_run, recorder
from synth.analysis.trim import report


def trim(
    programs: Subject | Program | list[Subject | Program],
    config: PeConfig,
    profiles: Sequence[Profile] = (),
    *,
    timed: Sequence[Profile] = (),
    **sizes: Any,
) -> PeConfig:
    """The trimmed configuration of :func:`synth.analysis.trim.report`."""
    return report(programs, config, profiles, timed=timed, sizes=Sizes(**sizes)).trimmed


def profile_on(subject: Subject, memory: bytes, config: PeConfig) -> Profile:
    """The profile of a program on ``memory``."""
    with DramImage(1 << config.address_bits) as image:
        image.write(0, memory)
        return profile_run(subject.program, image, config, parameters=subject.parameters or 0)


def profile_to_end(
    program: Program, image: DramImage, config: PeConfig, *, parameters: int = 0, **launch: int
) -> Profile:
    """The profile of a run until it ends or faults."""
    facts = Facts()
    simulator = Simulator(
        program,
        image,
        parameters=parameters,
        **launch,
        **config.limits,
        observer=recorder(facts),
    )
    assert simulator.run(1_000_000).state != "running"
    return profile_of(program, simulator, facts, parameters)
