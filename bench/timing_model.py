"""The certificate of the timing model: its cycles beside those of the Verilog."""

from collections.abc import Iterator
from dataclasses import replace

from pe.config import PeConfig
from sim_tb.cosim.applications import applications
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import job_key, launches_key
from sim_tb.dut.tile import tile_design
from sim_tb.measure.certificate import KINDS, CertifiedRun, certified_runs, run_certified
from sim_tb.measure.kernels import measure_kernels
from soc.chip.config import ChipConfig
from soc.generate.presets import preset, tile_preset
from soc.tile.config import VaultTileConfig

from . import fingerprints
from .applications import made_of_layers
from .functional import model_parts
from .measurement import Measurement
from .memories import made_of_vault, vault_figures
from .record import values

__all__ = ["buffered_kernels", "made_of_buffered_kernels", "made_of_timing_model", "timing_model"]

_LINES = 64


def timing_model() -> Iterator[Measurement]:
    """The timing model beside the Verilog. Bandwidths of a vault's memory in its variants, and
    cycles of the rows of the record of kernels that four engines of a vault have run, and of two
    with a load history, against their records; cycles of belief propagation on chips, of every
    application of the suite on one engine, and of a load history there, against the Verilog now.
    For each set: the number of equal cycles, and the largest difference as a share."""
    kernels, histories = values("kernels"), values("history")
    for kind in KINDS:
        found = []
        if kind == "memory":
            bandwidths = values("vault")
            for each in vault_figures("model"):
                found.append((each.value, bandwidths[each.name]))
                yield replace(each, name=f"memory_{each.name}")
        for run in certified_runs([kind] if kind != "memory" else []):
            mine, _ = run_certified(run, "model")
            name = f"{run.name.replace('-', '_')}_cycles"
            yield Measurement(name, mine, "cycles")
            recorded = histories if name in histories else kernels
            theirs = round(recorded[name]) if kind == "vault" else run_certified(run, "rtl")[0]
            found.append((mine, theirs))
        worst = max(abs(mine - theirs) / theirs for mine, theirs in found)
        equal = sum(mine == theirs for mine, theirs in found)
        yield Measurement(f"{kind}_runs", len(found), "runs", more_is_better=True)
        yield Measurement(f"{kind}_equal_runs", equal, "runs", more_is_better=True)
        yield Measurement(f"{kind}_largest_difference", 100 * worst, "%")


def made_of_timing_model() -> dict[str, str]:
    """The kernels and applications with their hardware, the chips, and the model."""
    found = made_of_layers() | made_of_vault()
    for run in (*certified_runs(["engine", "chip"]), *_histories()):
        key = launches_key if run.kind == "chip" else job_key
        if isinstance(run.config, ChipConfig):
            grid = run.config.network
            name = f"Verilog of {grid.columns} x {grid.rows} vaults"
            found |= {} if name in found else {name: fingerprints.hardware(run.config)}
        elif isinstance(run.config, VaultTileConfig):
            design = tile_design(run.config)
            found |= fingerprints.simulator(f"the vault of {run.name}", design)
        elif isinstance(run.config, PeConfig) and run.config.load_history:
            found |= fingerprints.engine(f"the engine of {run.name}", run.config)
        found[f"program and data of {run.name}"] = fingerprints.data(*map(key, run.jobs))
    for name, config in _presets().items():
        found |= fingerprints.engine(name, config)
    return found | model_parts()


def buffered_kernels() -> Iterator[Measurement]:
    """Kernels of the record of kernels on the vault with a line buffer of 64 lines, on the timing
    model: cycles, and by how many percent they are more than those without lines. Every output is
    compared with the golden model's. And the largest such increase and decrease."""
    plain = tile_preset("vault")
    runs = [measure_kernels(replace(plain, line_buffer=lines), on="model") for lines in (0, _LINES)]
    found = {}
    for before, after in zip(*runs, strict=True):
        if not (before.match and after.match):
            raise CosimError(f"{after.name}: outputs differ from the golden model's")
        # Sums of rows have no cycles of their own.
        if after.cycles:
            more = 100 * (after.cycles - before.cycles) / before.cycles
            found[f"{after.name}_batch_{after.batch}"] = after.cycles, more
    for name, (cycles, more) in found.items():
        yield Measurement(f"{name}_cycles", cycles, "cycles")
        yield Measurement(f"{name}_more", more, "%", tolerance=None)
    differences = [more for _, more in found.values()]
    yield Measurement("largest_increase", max(differences), "%", tolerance=None)
    yield Measurement("largest_decrease", -min(differences), "%", tolerance=None)


def made_of_buffered_kernels() -> dict[str, str]:
    """The kernels, the vault with its line buffer, and the model."""
    config = replace(tile_preset("vault"), line_buffer=_LINES)
    return {
        **made_of_layers(),
        **fingerprints.simulator(f"the vault with {_LINES} lines", tile_design(config)),
        **model_parts(),
    }


def _histories() -> Iterator[CertifiedRun]:
    """The runs on vaults whose engines have a load history."""
    for run in certified_runs(["vault"], layers=False):
        if isinstance(run.config, VaultTileConfig) and run.config.pe.load_history:
            yield run


def _presets() -> dict[str, PeConfig]:
    """Engines that applications need, by name."""
    names = {application.preset for application in applications()}
    return {name: preset(name) for name in sorted(names)}
