"""Benchmark of proofs that engines trimmed to applications are equivalent to the full one."""

import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from time import monotonic
from unittest.mock import patch

import synth.formal
import synth.formal.prove
import vip.proofs
from isa.program import Program
from sim_tb.cosim.applications import applications
from soc.generate.presets import preset
from vip.proofs import prove
from vip.trimming.subjects import known_launches

from . import fingerprints
from .measurement import BenchError, Measurement
from .terminal import say

__all__ = ["made_of_proofs", "proofs"]


def _programs() -> list[Program]:
    return [
        launch.program
        for each in applications()
        for launch in known_launches([each], preset(each.preset))
    ]


def _say(stage: str, done: float = 0, total: float | None = None, part: str = "") -> None:
    say(f"{stage} {done} of {total} {part}".rstrip())


def proofs() -> Iterator[Measurement]:
    """Conditions of each proof that ``vip prove`` makes of the suite, and its seconds beside the
    others, one a processor; then the seconds of all. No result is cached before."""
    with TemporaryDirectory() as folder, patch.dict(os.environ, VIP_BUILD_DIR=folder):
        before = monotonic()
        report = prove(progress=_say)
        seconds = monotonic() - before
    for name, proof in report.proofs.items():
        if not proof.holds:
            raise BenchError(f"{name}: the proof fails; vip prove {name} says where")
        key = name.replace("-", "_")
        yield Measurement(f"{key}_conditions", proof.goals, "conditions", 0.0, True)
        yield Measurement(f"{key}_seconds", proof.seconds, "s", None)
    yield Measurement("minutes", seconds / 60, "min", None)


def made_of_proofs() -> dict[str, str]:
    """The engines, the programs, and the code that sets up proofs."""
    return {
        "Verilog of pe": fingerprints.hardware(preset("pe")),
        "Verilog of pe-logistic": fingerprints.hardware(preset("pe-logistic")),
        "programs": fingerprints.programs(_programs()),
        "what is proved": fingerprints.code(
            vip.proofs, synth.formal.prove, *fingerprints.parts(synth.formal)
        ),
    }
