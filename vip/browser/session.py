"""The page's questions and Python's answers, both as JSON.

Python runs in a worker of the browser. Each question is short, so that the page stays responsive: a
run proceeds by some thousand instructions at a time.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.errors import VipError
from synth.analysis.trim import Known

from .examples import Stereo, trimmed
from .workbench import PageError, Workbench


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
        self._bench = Workbench(source, data, 0)
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
        return trimmed(Workbench(source, "", 0).program, Known(parameters=0))

    def _trim_stereo(self) -> dict[str, object]:
        stereo = self._stereo or Stereo(self._scene, 1)
        return trimmed(stereo.job.program, stereo.known())
