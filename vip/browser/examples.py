"""Examples of the page: depth from stereo by belief propagation, and trimming to a program."""

import time
from pathlib import Path

import numpy as np

from isa.iss.simulator import Outcome, Simulator
from isa.program import Program
from isa.table import Unit
from microkernels.bp.golden import labels
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem
from microkernels.data.stereo import percent_wrong
from pe.config import PeConfig
from synth.analysis.contents import contents_of
from synth.analysis.trim import Known, report

from .workbench import PlainMemory


class Stereo:
    """Belief propagation on the packed pair of photographs, on one engine.

    Parameters:
        file: the problem, packed by :mod:`vip.browser.build`. iterations: at least 0.
    """

    def __init__(self, file: Path, iterations: int) -> None:
        with np.load(file) as packed:
            self._truth = packed["truth"]
            self._problem = BpProblem(packed["costs"], packed["smoothness"])
        self.job = bp_job(self._problem, iterations, sums=False)
        self.memory = PlainMemory(self.job.end)
        self.job.prepare(self.memory)
        self._simulator = Simulator(
            self.job.program, self.memory, parameters=self.job.parameters, **PeConfig().limits
        )
        self._seconds = 0.0

    def forward(self, count: int) -> Outcome:
        """Execute at most ``count`` instructions."""
        started = time.perf_counter()
        end = self._simulator.run(count)
        self._seconds += time.perf_counter() - started
        return end

    def result(self) -> dict[str, object]:
        """The labels in memory so far, and how they compare."""
        outputs = self.job.outputs(self.memory)
        chosen = labels(self._problem, outputs)
        return {
            "labels": chosen.tolist(),
            "count": self._problem.labels,
            "truth": self._truth.tolist(),
            "different": self.job.differing(outputs),
            "messages": int(np.prod(outputs.shape[:-1])),
            "wrong": round(percent_wrong(chosen, self._truth), 1),
            "instructions": sum(self._simulator.visits),
            "seconds": round(self._seconds, 2),
        }

    def known(self) -> Known:
        """What all launches of the program on images of this size have in common."""
        bits = PeConfig().address_bits
        contents = self.memory.read(0, self.job.end)
        return Known(
            contents=contents_of(self.job.declared, contents, 1 << bits),
            parameters=self.job.parameters,
            slots=self.job.declared.slots,
        )


def trimmed(program: Program, launch: Known) -> dict[str, object]:
    """The engine that ``program`` needs; its sizes are proved for every run.

    Raises:
        VipError: the program does not run on the full engine.
    """
    analysis = report([program], PeConfig(), known=[launch])
    return {
        "before": len(analysis.full.instructions),
        "after": len(analysis.trimmed.instructions),
        "units": [
            {
                "unit": unit.value,
                "kept": list(analysis.kept[unit]),
                "removed": len(analysis.removed[unit]),
                "why": analysis.why_unit(unit).removeprefix(f"{unit.value}: "),
            }
            for unit in Unit
        ],
        "sizes": [
            {"name": bound.name, "full": bound.full, "size": bound.size, "why": bound.why}
            for bound in analysis.bounds
            if bound.name != "fx"
        ],
    }
