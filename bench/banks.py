"""Prototype: cycles and prices of organisations of the scratchpad's banks.

    python -m bench.banks bp,conv,suite,bp_m 1,3,2,0,0,0,4,8 2,1,1,2,1,0,4,8,0,1,0,2

runs kernels on the timing model with the ports that sim_tb/timed/engine/scratchpad_ports.h
describes, and prints cycles, um2 of the banks and mW of their accesses at 28 nm and 1.25 GHz.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from hdl.sram_macro import SramGeometry
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from microkernels.nn.conv_loop import conv_loop_data, conv_loop_job
from sim_tb.cosim.kernels import bp_job_on, run_on
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.workloads.certificate import certified_runs, run_certified
from soc.generate.presets import preset
from synth.power.power import THESIS_MHZ, THESIS_NM, THESIS_VOLTS
from synth.sram import access_fj, sram_um2


def _cycles(name: str) -> Iterator[tuple[str, float, str]]:
    config = preset("pe")
    if name == "bp":
        job, memory = bp_job(motorcycle(64, 48, 16).problem), MemoryBehaviour(latency=20)
        found = run_on(job, config, on="model", memory=memory)
        assert found.match
        yield name, found.cycles_per_update, "per update"
    elif name == "bp_power":
        found = run_on(bp_job_on(motorcycle(8, 4, 16).problem, 1, config), config, on="model")
        yield name, found.cycles_per_update, "per update"
    elif name == "conv":
        assert run_on(conv_loop_job(*conv_loop_data(64)), config, on="model").match
        yield name, 0, ""
    else:
        kind = "engine" if name == "suite" else "vault"
        for run in certified_runs([kind]):
            mine = kind == "engine" or run.name.startswith(f"{name}_batch")
            if mine and "entries" not in run.name:
                yield run.name, run_certified(run, "model")[0], "cycles"


def main() -> None:
    """Print a line for each organisation and kernel."""
    names, organisations = sys.argv[1].split(","), sys.argv[2:]
    with TemporaryDirectory() as folder:
        lines = Path(folder) / "runs.json"
        os.environ["VIP_PORTS_OUT"] = str(lines)
        for organisation in organisations:
            os.environ["VIP_PORTS"] = organisation
            sets, reads, writes, shared = map(int, organisation.split(",")[:4])
            ports = (shared, 0) if shared else (reads, writes)
            bank = SramGeometry(512 // sets, 8, *ports)
            fj = access_fj(bank, THESIS_NM, THESIS_VOLTS)
            for name in names:
                for kernel, cycles, what in _cycles(name):
                    runs = [json.loads(line) for line in lines.read_text().splitlines()]
                    lines.unlink()
                    total = {
                        key: sum(run[key] for run in runs)
                        for key, value in runs[0].items()
                        if isinstance(value, int)
                    }
                    accesses = 8 * (total["a"] + total["b"] + total["store"])
                    accesses += total["bytes_result"] + total["bytes_load"]
                    mw = accesses / total["cycles"] * fj * THESIS_MHZ * 1e-6
                    um2 = 8 * sets * sram_um2(bank)
                    early = [run["early"] for run in runs if any(run["early"])]
                    price = f"{mw:.2f} mW {um2:.0f} um2"
                    print(organisation, kernel, cycles, what, price, total, early)


if __name__ == "__main__":
    main()
