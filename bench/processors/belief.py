"""BP-M on the processor of this machine."""

import ctypes
import platform
from pathlib import Path

import numpy as np

from bench.measurement import BenchError
from microkernels.bp.problem import BpProblem, Messages
from support.native import compile_library

__all__ = ["LABELS", "iterate", "seconds_an_iteration"]

#: Labels that the program is made for, of 16 bits.
LABELS = 16
_SOURCE = Path(__file__).with_name("bp_avx2.cpp")
_FLAGS = ("-O3", "-std=c++17", "-mavx2", "-pthread")


def _library() -> ctypes.CDLL:
    flags = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or (flags.is_file() and " avx2 " not in flags.read_text()):
        raise BenchError("BP-M on a processor needs one with AVX2")
    return compile_library("bp_avx2", _SOURCE, _FLAGS)


def iterate(problem: BpProblem, messages: Messages, *, threads: int = 1) -> float:
    """One iteration of BP-M on ``messages``, in place; bit for bit as
    :func:`microkernels.bp.golden.iterate`.

    Parameters:
        problem: of 16 labels and 16 bits, without edge weights. messages: contiguous.
        threads: at least 1.

    Returns:
        Seconds of a processor: of each sweep those of the thread that worked longest.

    Raises:
        BenchError: another problem, or a processor without AVX2.
        support.native.CompilerError: there is no C++ compiler.
    """
    if problem.labels != LABELS or problem.bits != 16 or problem.weights is not None:
        raise BenchError(f"the program is for {LABELS} labels of 16 bits, without edge weights")
    if not messages.flags.c_contiguous or messages.dtype != np.dtype("<i2"):
        raise BenchError("messages must be contiguous, of 16 bits")
    data = np.ascontiguousarray(problem.data_costs)
    smoothness = np.ascontiguousarray(problem.smoothness)
    run = _library().vip_bp_iterate
    run.restype = ctypes.c_double
    seconds: float = run(
        *(ctypes.c_void_p(each.ctypes.data) for each in (data, messages, smoothness)),
        ctypes.c_long(problem.width),
        ctypes.c_long(problem.height),
        ctypes.c_int(threads),
    )
    return seconds


def seconds_an_iteration(problem: BpProblem, *, threads: int, runs: int) -> float:
    """Seconds of an iteration: of each sweep those of its slowest thread; the least of ``runs``."""
    messages = problem.no_messages()
    # The first one takes the memory's pages.
    iterate(problem, messages, threads=threads)
    return min(iterate(problem, messages, threads=threads) for _ in range(runs))
