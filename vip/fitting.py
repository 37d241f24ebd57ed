"""What the area that trimming frees is worth: chips that fill a device, and work done on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.table import Table

from hdl.config import PeConfig
from sim_tb.applications import Application
from sim_tb.chip_copies import Copies, run_copies
from sim_tb.trim_check import Workload
from soc.chip_config import ChipConfig
from soc.presets import preset
from synth.budget import Budget
from synth.fit import ChipFit, Step, chip_of, fit
from synth.trim import trim

from .trimming import Observed, observe

__all__ = [
    "CHIP_FILE",
    "Fitting",
    "demand",
    "fit_application",
    "fit_both",
    "fit_json",
    "show_fit",
]

#: Name of the file with the chip of trimmed engines.
CHIP_FILE = "chip.json"


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """Full and trimmed engines on one device.

    Attributes:
        demand: bytes a cycle that an engine moves when it does not wait for memory.
        full, trimmed: the chips. copies_full, copies_trimmed: the work as they did it.
    """

    demand: float
    full: ChipFit
    trimmed: ChipFit
    copies_full: Copies
    copies_trimmed: Copies

    @property
    def gain(self) -> float:
        """How much more work the trimmed chip does in a cycle; both clocks are taken as equal."""
        return self.copies_trimmed.throughput / self.copies_full.throughput

    @property
    def match(self) -> bool:
        """Whether every engine of both chips left what it should."""
        return not self.copies_full.differing and not self.copies_trimmed.differing


def demand(runs: Sequence[Observed]) -> float:
    """Bytes a cycle that an engine moved in ``runs`` on hardware; 0 if there were none."""
    counted = [run.measured.result.counters for run in runs if run.measured is not None]
    moved = sum(counters["BYTES_LOADED"] + counters["BYTES_STORED"] for counters in counted)
    cycles = sum(counters["CYCLES"] for counters in counted)
    return moved / cycles if cycles else 0.0


def fit_both(
    full: PeConfig,
    trimmed: PeConfig,
    budget: Budget,
    works: Sequence[Workload],
    demand: float,
    step: Step,
) -> Fitting:
    """Fill ``budget`` with engines of either kind, and run ``works`` on every engine of both chips.

    The chip of full engines is simulated without its network: in it, an access to the own vault
    passes the node in the same cycle (:class:`noc.node.Node`), and there are no others.

    Parameters:
        works: launches of one engine, in order.
        demand: see :class:`Fitting`.
        step: called with what is done next.

    Raises:
        synth.errors.SynthesisError: not even one engine fits.
        sim_tb.cosim.CosimError: a program faults, or does not end.
    """

    def simulated(name: str, config: ChipConfig) -> Copies:
        step(f"simulation of {name} engines")
        return run_copies(
            config, works, lambda cycles: step(f"simulation of {name} engines: {cycles:,} cycles")
        )

    step("full engines")
    large = fit(full, budget, trimmed=False, demand=demand, step=step)
    step("trimmed engines")
    small = fit(trimmed, budget, trimmed=True, demand=demand, step=step)
    windowed = replace(full, address_bits=trimmed.address_bits, counters=False)
    copies_full = simulated("full", chip_of(windowed, large.grid, budget, trimmed=True))
    copies_trimmed = simulated("trimmed", small.config)
    return Fitting(
        demand=demand,
        full=large,
        trimmed=small,
        copies_full=copies_full,
        copies_trimmed=copies_trimmed,
    )


def fit_json(found: Fitting) -> dict[str, object]:
    """The fitting as plain JSON data."""

    def one(chip: ChipFit, copies: Copies) -> dict[str, object]:
        return {
            **chip.to_json(),
            "cycles": copies.cycles,
            "differing_engines": list(copies.differing),
        }

    return {
        "device": found.full.budget.name,
        "bytes_per_cycle": round(found.demand, 3),
        "full": one(found.full, found.copies_full),
        "trimmed": one(found.trimmed, found.copies_trimmed),
        "throughput_gain": round(found.gain, 3),
        "match": found.match,
    }


def show_fit(found: Fitting) -> Table:
    """A table of both chips."""
    table = Table(title=f"{found.full.budget.name}, filled")
    for heading in ("", "full", "trimmed"):
        table.add_column(heading, justify="right" if heading else "left")
    chips = (found.full, found.trimmed)
    table.add_row("engines", *(str(chip.config.pes) for chip in chips))
    table.add_row("vaults", *(f"{chip.config.vaults}" for chip in chips))
    for name in found.full.budget.capacity:
        used = [chip.area.total.values.get(name, 0) for chip in chips]
        part = found.full.budget.capacity[name]
        table.add_row(f"{name} of {part:,.0f}", *(f"{value / part:.0%}" for value in used))
    copies = (found.copies_full, found.copies_trimmed)
    table.add_row("cycles", *(f"{one.cycles:,}" for one in copies))
    table.add_row("throughput", "1.00", f"{found.gain:.2f}")
    return table


def fit_application(application: Application, budget: Budget, step: Step) -> Fitting:
    """Fill ``budget`` with full engines, and with ones trimmed to ``application`` as far as that
    goes: a single program is baked in, and sizes are those of its runs.

    Raises:
        VipError: an engine that can't be built, simulated or synthesised, or does not fit.
    """
    full = preset(application.preset)
    step(f"{application.name} on the full engine")
    runs = [observe(work, full) for work in application.workloads]
    trimmed = trim(
        application.programs,
        full,
        [run.profile for run in runs],
        rom=len(application.programs) == 1,
        tight=True,
        allow_uncovered=True,
    )
    works = [run.work for run in runs]
    return fit_both(full, trimmed, budget, works, demand(runs), step)
