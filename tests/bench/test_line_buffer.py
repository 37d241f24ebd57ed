"""The line buffer on the timing model, beside the record of the Verilog."""

import pytest

from bench.harness.record import values
from bench.reuse import buffered_job, buffered_runs
from sim_tb.cosim.kernels import run_on

RUNS = {prefix: run for prefix, *run in buffered_runs() if run[1].line_buffer}
RECORDED = values("line_buffer")


@pytest.mark.parametrize("prefix", RUNS)
def test_the_model_takes_the_recorded_cycles_and_columns(prefix: str) -> None:
    name, config, reuse = RUNS[prefix]
    machine, job = buffered_job(name, config, reuse=reuse)
    outcome = run_on(job, machine, on="model")
    assert outcome.match
    assert outcome.cycles == RECORDED[f"{prefix}_cycles"]
    counted = [result.vaults[0] for result in outcome.results.values()]
    assert sum(each["READS"] for each in counted) == RECORDED[f"{prefix}_columns"]
    for counter in (name for name in counted[0] if name.startswith("LINE_")):
        found = sum(each[counter] for each in counted)
        assert found == RECORDED[f"{prefix}_{counter.lower()}"], counter
