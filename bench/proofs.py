"""Benchmark of proofs that engines trimmed to applications are equivalent to the full one."""

import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from unittest.mock import patch

import synth.formal
import synth.formal.prove
from isa.program import Program
from sim_tb.cosim.applications import choose
from soc.generate.presets import preset
from synth.analysis.trim import trim
from synth.formal.prove import prove
from vip.proofs import DEFAULT

from . import fingerprints
from .measurement import BenchError, Measurement, cpu_seconds

__all__ = ["made_of_proofs", "proofs"]


def _programs() -> dict[str, list[Program]]:
    return {each.name: [work.program for work in each.workloads] for each in choose(DEFAULT)}


def proofs() -> Iterator[Measurement]:
    """Conditions and seconds of a processor of the proofs that ``vip prove`` makes, without cached
    results."""
    full = preset("pe")
    for name, programs in _programs().items():
        trimmed = trim(programs, full)
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
    programs = [program for found in _programs().values() for program in found]
    return {
        "Verilog of pe": fingerprints.hardware(preset("pe")),
        "programs": fingerprints.programs(programs),
        "what is proved": fingerprints.code(synth.formal.prove, *fingerprints.parts(synth.formal)),
    }
