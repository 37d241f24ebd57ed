"""Benchmark of proofs that engines trimmed to applications are equivalent to the full one."""

import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from unittest.mock import patch

import synth.formal
import synth.formal.prove
from isa.program import Program
from pe.config import PeConfig
from sim_tb.cosim.applications import choose
from soc.generate.presets import preset
from synth.analysis.trim import Known, trim
from synth.formal.prove import prove
from vip.trimming.subjects import known_launches

from . import fingerprints
from .measurement import BenchError, Measurement, cpu_seconds

__all__ = ["made_of_proofs", "proofs"]

#: Applications whose proofs are measured: a small one, one with products, a large one.
_MEASURED = ("matrix-addition", "image-convolution", "bp")


def _launches(full: PeConfig) -> dict[str, list[tuple[str, Program, Known]]]:
    return {each.name: known_launches([each], full) for each in choose(_MEASURED)}


def proofs() -> Iterator[Measurement]:
    """Conditions and seconds of a processor of some proofs that ``vip prove`` makes, without
    cached results."""
    full = preset("pe")
    for name, launches in _launches(full).items():
        programs = [program for _, program, _ in launches]
        trimmed = trim(programs, full, known=[known for _, _, known in launches])
        with TemporaryDirectory() as folder, patch.dict(os.environ, VIP_BUILD_DIR=folder):
            before = cpu_seconds()
            proof = prove(full, trimmed)
            seconds = cpu_seconds() - before
        if not proof.holds:
            raise BenchError(f"{name}: the proof fails; vip prove {name} says where")
        key = name.replace("-", "_")
        yield Measurement(f"{key}_conditions", proof.goals, "conditions", 0.0, True)
        yield Measurement(f"{key}_cpu_seconds", seconds, "s", None)


def made_of_proofs() -> dict[str, str]:
    """The engine, the programs, and the code that sets up proofs."""
    found = _launches(preset("pe")).values()
    programs = [program for launches in found for _, program, _ in launches]
    return {
        "Verilog of pe": fingerprints.hardware(preset("pe")),
        "programs": fingerprints.programs(programs),
        "what is proved": fingerprints.code(synth.formal.prove, *fingerprints.parts(synth.formal)),
    }
