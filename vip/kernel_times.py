"""Times of kernels, of which several run at a time."""

from collections.abc import Sequence
from typing import Any

from sim_tb.cosim.machine import Timed
from sim_tb.measure.kernel_rows import KernelRow
from sim_tb.measure.kernels import NAMES, ROUNDS, measure_kernels, totals
from sim_tb.runner.build import need_simulator
from soc.generate.configuration_file import configuration_as
from soc.generate.generate import configuration_json
from soc.tile.config import VaultTileConfig
from support.errors import VipError
from vip.executor.executor import opened
from vip.executor.work import Task
from vip.progress import Progress, silent

__all__ = ["KernelError", "kernel_times", "run_kernel"]

#: Of :mod:`vip.executor.work`.
_WORK = "vip.kernel_times:run_kernel"


class KernelError(VipError):
    """A kernel that could not be measured; the message names it."""


def run_kernel(task: Task) -> dict[str, Any]:
    """The ``rows`` of the kernel ``name`` on the vault ``configuration``, as plain data; or
    ``error``: one line."""
    try:
        config = configuration_as(VaultTileConfig, task["configuration"])
        rows = measure_kernels(config, names=(task["name"],), rounds=task["rounds"], on=task["on"])
    except VipError as error:
        return {"error": str(error).splitlines()[0]}
    return {"rows": [row.to_dict() for row in rows]}


def kernel_times(
    config: VaultTileConfig,
    *,
    names: Sequence[str] = (),
    rounds: int | None = ROUNDS,
    on: Timed = "rtl",
    scheduler: str | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> list[KernelRow]:
    """:func:`sim_tb.measure.kernels.measure_kernels`, with several kernels at a time.

    Parameters:
        config, names, rounds, on: as there.
        scheduler: address of a Dask scheduler whose workers measure; None: processes of this
            machine. jobs: how many; None: one a processor.
        progress: called with the number of kernels that are done.

    Raises:
        KernelError: a kernel faulted, or a process ended.
        MissingExtraError: a tool that runs Verilog is not installed on this machine, which is to.
        vip.executor.work.ExecutorError: as :func:`vip.executor.executor.opened`.
    """
    if on != "model" and scheduler is None:
        need_simulator()
    chosen = [name for name in NAMES if not names or name in names]
    shared = {"configuration": configuration_json(config), "rounds": rounds, "on": on}
    tasks = [{"name": name, **shared} for name in chosen]
    stage = f"kernels on {'the timing model' if on == 'model' else 'Verilog'}"
    progress(stage, 0, len(tasks))
    found: dict[str, list[KernelRow]] = {}
    with opened(_WORK, scheduler=scheduler, jobs=jobs) as executor:
        for number, result in executor(tasks):
            if "rows" not in result:
                reason = result.get("error") or result["lost"]
                raise KernelError(f"{chosen[number]}: {reason}")
            found[chosen[number]] = [KernelRow.from_dict(row) for row in result["rows"]]
            progress(stage, len(found), len(tasks), chosen[number])
    rows = [row for name in chosen for row in found[name]]
    return [*rows, *totals(rows)] if not names else rows
