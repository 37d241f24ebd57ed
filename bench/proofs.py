"""Proofs that engines trimmed to applications are equivalent to the full one."""

import os
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from time import monotonic
from unittest.mock import patch

from vip.proofs import prove

from .harness.experiment import SYNTHESIS, BenchError, Measurement, experiment, figure, say_stage


@experiment(presets=("pe",), tools=SYNTHESIS, minutes=12)
def proofs() -> Iterator[Measurement]:
    """Conditions of each proof that ``vip prove`` makes of the suite, and its seconds.

    Beside the others, one a processor; then the seconds of all. No result is cached before.
    """
    with TemporaryDirectory() as folder, patch.dict(os.environ, VIP_BUILD_DIR=folder):
        before = monotonic()
        report = prove(progress=say_stage)
        seconds = monotonic() - before
    for name, proof in report.proofs.items():
        if not proof.holds:
            raise BenchError(f"{name}: the proof fails; vip prove {name} says where")
        key = figure(name)
        yield Measurement(f"{key}_conditions", proof.goals, "conditions", 0.0, True)
        yield Measurement(f"{key}_seconds", proof.seconds, "s", None)
    yield Measurement("minutes", seconds / 60, "min", None)
