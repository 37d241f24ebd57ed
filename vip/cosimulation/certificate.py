"""The verb ``certify``: the timing model against the Verilog."""

from collections.abc import Sequence

from sim_tb.runner.build import need_simulator
from sim_tb.workloads import certificate
from sim_tb.workloads.certificate import KINDS, ModelCertificate, certified_runs
from support.errors import VipError, unknown
from vip.progress import Progress, silent


def certify(kinds: Sequence[str] = KINDS, *, progress: Progress = silent) -> ModelCertificate:
    """Run a fixed set of programs on the timing model and on the Verilog, and compare cycles and
    counters. ``certify(["engine"]).holds`` does so for the suite's applications.

    Parameters:
        kinds: of machines: "memory", "engine", "vault", "chip".
        progress: called with the name of each run.

    Raises:
        VipError: an unknown kind, a run that differs from its golden model, or a model or simulator
            that can't be built.
    """
    if not kinds:
        raise VipError(f"no machine is named; there are: {', '.join(KINDS)}")
    for kind in kinds:
        if kind not in KINDS:
            raise VipError(unknown("machine", kind, KINDS))
    need_simulator()
    runs = list(certified_runs([kind for kind in KINDS if kind in kinds], layers=False))
    stage = "timing model and Verilog"
    done = iter(range(len(runs)))
    return certificate.certify(runs, lambda name: progress(stage, next(done), len(runs), name))
