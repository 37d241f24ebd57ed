"""The public Python API: the verbs of the ``vip`` command as typed functions.

``import vip`` is cheap: a verb's module is imported when the verb is first named. Each verb returns
a frozen dataclass, reports progress to a callback (:class:`vip.progress.Progress`), and raises a
:class:`support.errors.VipError` of one line for input that can't be used. An example of each is
in ``docs/python_api.md``. The command line, ``vip.cli``, parses, shows progress and prints.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from microkernels.common.builder import KernelBuilder
    from microkernels.mrf.pair import PairOptions
    from sim_tb.cosim.engine import MemoryBehaviour
    from sim_tb.workloads.certificate import ModelCertificate, certify
    from soc.generate.generate import Generated
    from synth.analysis.bounds import Sizes
    from synth.analysis.contents import Subject
    from synth.power.power import PowerReport

    from .browser.build import browser_page
    from .built_models import build_model
    from .cosimulation.program import CosimRun, cosim
    from .cosimulation.stereo import BpRun, cosim_bp, stereo_pair
    from .debugging.debugger import Debugger, debug
    from .designs import generate
    from .diagrams.draw import diagram
    from .diagrams.links import Diagram
    from .models.check import ModelCheck, check_model
    from .models.compile import CompileReport, compile_model
    from .models.evaluate import Evaluation, evaluate_model
    from .models.run import ModelRun, run_model
    from .mrf.graph import GraphRun, solve_graph
    from .mrf.options import MrfOptions
    from .mrf.result import MrfRun
    from .mrf.run import mrf_stereo, solve_mrf
    from .output import WrittenPage
    from .preset_list import PresetList, presets
    from .programs import Dump, assemble
    from .proofs import ProofReport, prove
    from .reports.page import Report, report
    from .reports.run.page import report_run
    from .simulation import ProgramRun, run
    from .sweeps.sweep import SweepResult, sweep
    from .synthesis.area import SynthReport, synth
    from .synthesis.clocks import TimedNetlist, timing
    from .synthesis.layout import Layout, layout
    from .synthesis.power import power
    from .trimming.models import trim_model
    from .trimming.runs import subject
    from .trimming.trim import TrimResult, trim

#: Module -> the names above that it defines.
_MODULES = {
    "sim_tb.cosim.engine": ("MemoryBehaviour",),
    "vip.browser.build": ("browser_page",),
    "sim_tb.workloads.certificate": ("ModelCertificate", "certify"),
    "vip.cosimulation.program": ("CosimRun", "cosim"),
    "vip.cosimulation.stereo": ("BpRun", "cosim_bp", "stereo_pair"),
    "vip.debugging.debugger": ("Debugger", "debug"),
    "soc.generate.generate": ("Generated",),
    "synth.analysis.bounds": ("Sizes",),
    "synth.analysis.contents": ("Subject",),
    "synth.power.power": ("PowerReport",),
    "vip.designs": ("generate",),
    "vip.diagrams.draw": ("diagram",),
    "vip.diagrams.links": ("Diagram",),
    "microkernels.common.builder": ("KernelBuilder",),
    "microkernels.mrf.pair": ("PairOptions",),
    "vip.mrf.graph": ("GraphRun", "solve_graph"),
    "vip.mrf.options": ("MrfOptions",),
    "vip.mrf.result": ("MrfRun",),
    "vip.mrf.run": ("mrf_stereo", "solve_mrf"),
    "vip.models.check": ("ModelCheck", "check_model"),
    "vip.models.compile": ("CompileReport", "compile_model"),
    "vip.models.evaluate": ("Evaluation", "evaluate_model"),
    "vip.models.run": ("ModelRun", "run_model"),
    "vip.preset_list": ("PresetList", "presets"),
    "vip.programs": ("Dump", "assemble"),
    "vip.proofs": ("ProofReport", "prove"),
    "vip.output": ("WrittenPage",),
    "vip.reports.run.page": ("report_run",),
    "vip.reports.page": ("Report", "report"),
    "vip.simulation": ("ProgramRun", "run"),
    "vip.sweeps.sweep": ("SweepResult", "sweep"),
    "vip.synthesis.area": ("SynthReport", "synth"),
    "vip.synthesis.clocks": ("TimedNetlist", "timing"),
    "vip.synthesis.layout": ("Layout", "layout"),
    "vip.synthesis.power": ("power",),
    "vip.built_models": ("build_model",),
    "vip.trimming.models": ("trim_model",),
    "vip.trimming.runs": ("subject",),
    "vip.trimming.trim": ("TrimResult", "trim"),
}

__all__ = sorted(name for names in _MODULES.values() for name in names)


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            # From now on it is found without this function.
            globals()[name] = value = getattr(import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
