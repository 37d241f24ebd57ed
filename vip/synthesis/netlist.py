"""The netlist of an engine, to run instead of its Verilog."""

from typing import Unpack

from sim_tb.cosim.machine import MachineOptions, On, check_machine
from sim_tb.runner.build import need_simulator
from soc.generate.designs import Configuration
from support.errors import VipError
from support.extras import together
from synth.physical.asic import need_nangate
from synth.physical.mapping import mapped_verilog
from synth.physical.targets import check_target
from vip.progress import Progress, by_part

_TARGET = "generic"


def netlist_of(
    config: Configuration,
    on: On,
    target: str | None,
    progress: Progress,
    **options: Unpack[MachineOptions],
) -> tuple[Configuration, str]:
    """What a run needs on the netlist: the engine with the memories of ``target``, and Verilog;
    elsewhere ``config`` as it is, and "".

    Parameters:
        on: where the run is.
        target: as of :func:`vip.synth`; None: ``generic``.
        options: of the run, to be refused before the work.

    Raises:
        VipError: a target of another run, or one that does not exist; a design that is not one
            engine, or an option that a netlist does not take.
        MissingExtraError: a tool is not installed.
    """
    if on != "netlist":
        if target is not None:
            raise VipError(f"target {target}: only a run on the netlist has a target")
        return config, ""
    check_machine(config, on, **options)
    name = target or _TARGET
    with together():
        need_simulator()
        need_nangate(name)
    check_target(name)
    return mapped_verilog(config.pe, name, by_part(progress, f"mapping to {name}"))
