"""Runs of jobs whose results are cached on disk, and that must be exact."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from microkernels.runtime.job import KernelJob
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import launches_key
from sim_tb.cosim.machine import Timed
from sim_tb.dut.engine import configuration_verilog
from sim_tb.runner.cache import ResultCache, fingerprint
from sim_tb.timed.library import sources
from soc.generate.designs import Configuration
from soc.generate.generate import configuration_json

__all__ = ["cached", "exact", "model_key"]


class _Outcome(Protocol):
    @property
    def match(self) -> bool: ...


_T = TypeVar("_T", bound=_Outcome)


def exact(outcome: _T, name: str) -> _T:
    """``outcome``, whose outputs are the golden model's.

    Raises:
        CosimError: they are not; the message has the name.
    """
    if not outcome.match:
        raise CosimError(f"{name}: outputs differ from the golden model's")
    return outcome


def cached(
    folder: str,
    config: Configuration,
    job: KernelJob,
    measure: Callable[[], Any],
    *,
    on: Timed,
    also: str = "",
) -> Any:
    """What ``measure`` gives, measured once for a job with its data on a machine.

    Parameters:
        folder: of the cache. on: the Verilog of ``config``, or the timing model of it.
        also: whatever else decides the result.
    """
    if on == "model":
        return ResultCache(folder).get(model_key(config, job, also), measure)
    key = fingerprint(also, configuration_verilog(config), launches_key(job))
    return ResultCache(folder).get(key, measure)


def model_key(config: Configuration, job: KernelJob, also: str = "") -> str:
    """Identifies a run of a job with its data on the timing model of ``config``."""
    machine = repr(sorted(configuration_json(config).items()))
    model = [path.read_bytes() for path in sources()]
    return fingerprint(also, machine, launches_key(job), *model)
