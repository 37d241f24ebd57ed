"""The page's questions and Python's answers, both as JSON, and its examples: depth from stereo by
belief propagation, and trimming to a program.

Python runs in a worker of the browser. Each question is short, so that the page stays responsive: a
run proceeds by some thousand instructions at a time.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from isa.iss.simulator import Simulator
from isa.run import EngineEnd
from isa.table import Unit
from microkernels.bp.golden import labels, percent_wrong
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem
from pe.config import PeConfig
from support.errors import VipError
from synth.analysis.contents import Subject
from synth.analysis.trim import report

from .workbench import PageError, PlainMemory, Workbench


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

    def forward(self, count: int) -> EngineEnd:
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

    def subject(self) -> Subject:
        """The program, with what all its launches on images of this size have in common."""
        return Subject(
            program=self.job.program,
            memories=(self.memory.read(0, self.job.end),),
            declared=self.job.declared,
            parameters=self.job.parameters,
        )


def trimmed(subject: Subject) -> dict[str, object]:
    """The engine that a program needs; its sizes are proved for every run.

    Raises:
        VipError: the program does not run on the full engine.
    """
    analysis = report(subject, PeConfig())
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


class BrowserSession:
    """The work of one page.

    Parameters:
        scene: file of the stereo problem (:mod:`vip.browser.build`).
    """

    def __init__(self, scene: str) -> None:
        self._scene = Path(scene)
        self._bench: Workbench | None = None
        self._stereo: Stereo | None = None
        self._actions: dict[str, Callable[..., dict[str, object]]] = {
            "assemble": self._assemble,
            "toggle": self._toggle,
            "forward": self._forward,
            "back": self._back,
            "show": self._show,
            "hazards": self._hazards,
            "stereo": self._start_stereo,
            "stereo_forward": self._stereo_forward,
            "trim": self._trim,
            "trim_stereo": self._trim_stereo,
        }

    def ask(self, question: str) -> str:
        """Answer a question.

        Parameters:
            question: JSON with ``action`` and its arguments.

        Returns:
            JSON; for invalid input, ``error`` with a readable message.
        """
        request: dict[str, Any] = json.loads(question)
        try:
            answer = self._actions[request.pop("action")](**request)
        except VipError as error:
            answer = {"error": str(error)}
        return json.dumps(answer)

    def _loaded(self) -> Workbench:
        if self._bench is None:
            raise PageError("nothing has been assembled")
        return self._bench

    def _assemble(self, source: str, data: str, view: dict[str, str]) -> dict[str, object]:
        self._bench = Workbench(source, data)
        return {"listing": self._bench.listing(), **self._bench.state(**view)}

    def _toggle(self, address: int) -> dict[str, object]:
        self._loaded().toggle(address)
        return {}

    def _forward(self, count: int, view: dict[str, str]) -> dict[str, object]:
        self._loaded().forward(count)
        return self._loaded().state(**view)

    def _back(self, view: dict[str, str]) -> dict[str, object]:
        self._loaded().back()
        return self._loaded().state(**view)

    def _show(self, view: dict[str, str]) -> dict[str, object]:
        return self._loaded().state(**view)

    def _hazards(self) -> dict[str, object]:
        return {"hazards": self._loaded().hazards()}

    def _start_stereo(self, iterations: int) -> dict[str, object]:
        if not 1 <= iterations <= 16:
            raise PageError(f"iterations must be from 1 to 16, not {iterations}")
        self._stereo = Stereo(self._scene, iterations)
        return {"words": len(self._stereo.job.program.words)}

    def _stereo_forward(self, count: int) -> dict[str, object]:
        if self._stereo is None:
            raise PageError("belief propagation has not been started")
        steps = self._stereo.forward(count)
        return {"state": steps.state, **self._stereo.result()}

    def _trim(self, source: str) -> dict[str, object]:
        return trimmed(Subject(program=Workbench(source, "").program, parameters=0))

    def _trim_stereo(self) -> dict[str, object]:
        stereo = self._stereo or Stereo(self._scene, 1)
        return trimmed(stereo.subject())
