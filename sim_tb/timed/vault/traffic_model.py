"""Traffic on the timing model of a vault's memory, without engines."""

import ctypes
import time
from collections.abc import Iterator, Sequence
from ctypes import POINTER, byref, c_bool, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path

import memory.model.device_model
from memory.config import VaultConfig
from memory.model.device_model import DEVICE_SOURCES
from memory.timing import DramTiming
from sim_tb.harness.models import Library
from sim_tb.harness.traffic import REQUESTER, TRAFFIC, TrafficJob, TrafficResult
from sim_tb.harness.traffic_runs import traffic_through
from sim_tb.timed.library import compile_model

from .vault_sizes import VaultSizes, vault_constants

#: Cycles between checks for signals.
_AT_ONCE = 1 << 18


@cache
def _library() -> ctypes.CDLL:
    room = Path(memory.model.device_model.__file__).parent
    return compile_model(
        "../models/modelled_vault.cpp",
        (TRAFFIC, REQUESTER),
        compiled=[name for name in TRAFFIC.sources + REQUESTER.behaviour if name.endswith(".cpp")],
        includes=[room / name for name in DEVICE_SOURCES],
        generated={"vault.inc": vault_constants()},
        functions={
            "vip_modelled_vault_new": (c_void_p, POINTER(VaultSizes), c_uint32, c_uint32),
            "vip_modelled_vault_run": (c_bool, c_void_p, c_uint64),
            "vip_modelled_vault_end": (None, c_void_p),
        },
    )


def run_traffic_model(
    config: VaultConfig,
    requesters: int,
    jobs: Sequence[TrafficJob],
    *,
    dram: DramTiming | None = None,
) -> list[TrafficResult]:
    """:func:`sim_tb.harness.traffic_runs.run_traffic` on the timing model: same requesters, DRAM
    and checks, with the cycles of the Verilog.

    The counters ``CYCLES``, ``REFRESHES`` and ``REFRESH_BLOCKED`` cover the same interval to within
    :data:`memory.controller.counters.LAG_CYCLES`.

    Raises:
        TrafficError: as in that function.
        support.native.CompilerError: there is no C++ compiler, or it fails.
    """

    def perform(runs: Sequence[TrafficJob]) -> Iterator[TrafficResult]:
        tags = config.tag_bits - max(requesters - 1, 0).bit_length()
        library = _library()
        vault = None
        try:
            for run in runs:
                started = time.perf_counter()
                models = Library(library)
                run.start(models)
                # The next run resets and continues it, as in Verilog.
                vault = vault or library.vip_modelled_vault_new(
                    byref(VaultSizes.of(config, max(requesters, 1))), requesters, 1 << tags
                )
                while not library.vip_modelled_vault_run(vault, _AT_ONCE):
                    pass
                yield run.result(models, time.perf_counter() - started)
        finally:
            if vault:
                library.vip_modelled_vault_end(vault)

    return traffic_through(perform, config, requesters, jobs, dram=dram)
