"""Runs of traffic against a vault's memory in simulation."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cocotb_tools.runner import get_runner

from isa.errors import VipError
from isa.image import DramImage
from memory.config import VaultConfig
from memory.counters import LAG_CYCLES, VaultCounter
from memory.device_model import DeviceSetup, device_setup
from memory.timing import DramTiming

from .vault_models import Pattern, TrafficJob, TrafficOutcome, TrafficResult, Walk
from .vault_serve import JOBS_VARIABLE
from .vault_top import TOP, build_vault, ports_of

__all__ = [
    "Pattern",
    "TrafficError",
    "TrafficJob",
    "TrafficResult",
    "Walk",
    "run_traffic",
]

#: Counters that the host reads.
_COUNTERS = max(VaultCounter) + 8
#: Cycles after which a write that was acknowledged is in the DRAM.
_SETTLE = 256


class TrafficError(VipError):
    """A run in which the memory did not do as it must, or that can't be made; says why."""


def run_traffic(
    config: VaultConfig,
    requesters: int,
    jobs: Sequence[TrafficJob],
    *,
    dram: DramTiming | None = None,
) -> list[TrafficResult]:
    """Run ``jobs`` one after the other, each from reset, against one vault's memory.

    The DRAM model checks every command, the requesters every response, and at the end of each run
    the memory's contents are compared with what the writes must have made of them. The first run of
    a configuration builds its simulator (half a minute).

    Parameters:
        config: of the vault.
        requesters: at the star, 1..8; 0: one straight at the controller.
        jobs: each with a pattern for each requester.
        dram: the DRAM's own timing; by default that which ``config`` gives the controller.

    Raises:
        TrafficError: a rule of port or DRAM broken, a request lost or late, a run longer than its
            ``max_cycles``, or a job that does not fit the vault.
        sim_tb.build.BuildError: the simulator can't be built.
    """
    for job in jobs:
        if len(job.patterns) != ports_of(requesters):
            raise TrafficError(
                f"a job for {len(job.patterns)} requesters given to a vault with "
                f"{ports_of(requesters)}"
            )
        if job.begin + job.span > config.size_bytes:
            raise TrafficError(
                f"accesses up to byte {job.begin + job.span} of a vault of {config.size_bytes}"
            )
    folder = build_vault(config, requesters)
    setup = device_setup(replace(config, timing=dram or config.timing))
    with tempfile.TemporaryDirectory(prefix="vip-vault-") as name:
        work = Path(name)
        (work / "jobs").write_text("".join(_line(config, setup, job) + "\n" for job in jobs))
        with DramImage(config.size_bytes, work / "image"):
            _simulate(folder, work)
        lines = (work / "results").read_text().splitlines()
    results = [TrafficResult.from_json(line) for line in lines]
    for number, result in enumerate(results):
        if result.outcome is not TrafficOutcome.DONE:
            reason = result.violation or f"not done after {result.total_cycles} cycles"
            raise TrafficError(f"run {number}: {reason}")
        if result.longest > jobs[number].patience:
            raise TrafficError(
                f"run {number}: an access took {result.longest} cycles, at most "
                f"{jobs[number].patience} are allowed"
            )
    return results


def _line(config: VaultConfig, setup: DeviceSetup, job: TrafficJob) -> str:
    return json.dumps(
        {
            "setup": {field[0]: getattr(setup, field[0]) for field in DeviceSetup._fields_},
            "job": job.to_dict(),
            "size": config.size_bytes,
            "limit": 1 << config.request_address_bits,
            "counters": _COUNTERS,
            "settle": max(_SETTLE, LAG_CYCLES),
        }
    )


def _simulate(folder: Path, work: Path) -> None:
    log = work / "log"
    try:
        get_runner("verilator").test(
            test_module="sim_tb.vault_serve",
            hdl_toplevel=TOP,
            hdl_toplevel_lang="verilog",
            build_dir=folder,
            test_dir=work,
            results_xml=str(work / "results.xml"),
            extra_env={JOBS_VARIABLE: str(work)},
            log_file=log,
        )
    except (SystemExit, RuntimeError, OSError) as error:
        raise TrafficError(f"simulator failed: {_reason(log) or error}") from None
    if "<failure" in (work / "results.xml").read_text():
        raise TrafficError(f"simulator failed: {_reason(log)}")


def _reason(log: Path) -> str:
    """The line of the simulator's output that says what went wrong."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    for line in reversed(lines):
        if "Error" in line or "ERROR" in line:
            return line.strip()
    return lines[-1].strip() if lines else ""
