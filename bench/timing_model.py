"""The timing model's certificate: its cycles against the Verilog's."""

from collections.abc import Iterator
from dataclasses import replace

from sim_tb.workloads.certificate import KINDS, certified_runs, run_certified

from .harness.experiment import SIMULATION, Measurement, experiment
from .harness.record import values
from .vault import vault


@experiment(
    presets=("vault", "vault-logistic", "pe", "pe-logistic", "tiny", "small"),
    tools=SIMULATION,
    minutes=10,
)
def timing_model() -> Iterator[Measurement]:
    """The timing model against the Verilog: cycles, and the number of equal runs.

    Against records: bandwidths of a vault's memory in its variants, and cycles of the kernels on a
    vault's four engines and of two with a load history. Against Verilog that is simulated now:
    cycles of belief propagation on chips, of every application of the suite on one engine, and of a
    load history on one engine. For each set: the number of equal runs, and the largest difference
    in percent.
    """
    kernels, histories = values("kernels"), values("history")
    for kind in KINDS:
        pairs = []
        if kind == "memory":
            bandwidths = values("vault")
            for item in vault(on="model"):
                pairs.append((item.value, bandwidths[item.name]))
                yield replace(item, name=f"memory_{item.name}")
        for run in certified_runs([kind] if kind != "memory" else []):
            mine, _ = run_certified(run, "model")
            name = f"{run.name.replace('-', '_')}_cycles"
            yield Measurement(name, mine, "cycles")
            recorded = histories if name in histories else kernels
            theirs = round(recorded[name]) if kind == "vault" else run_certified(run, "rtl")[0]
            pairs.append((mine, theirs))
        worst = max(abs(mine - theirs) / theirs for mine, theirs in pairs)
        equal = sum(mine == theirs for mine, theirs in pairs)
        yield Measurement(f"{kind}_runs", len(pairs), "runs", more_is_better=True)
        yield Measurement(f"{kind}_equal_runs", equal, "runs", more_is_better=True)
        yield Measurement(f"{kind}_largest_difference", 100 * worst, "%")
