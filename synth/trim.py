"""Trimming: the smaller processing engine that runs a program with the same answer and cycles.

Trimming turns one configuration into another and never touches Verilog. It takes away what a
program provably can't use: instructions, registers, words of the instruction buffer. None of these
changes when anything happens in the rest; only the launch, which clears a register a cycle before
the program begins, gets shorter. What depends on data or decides about cycles (scratchpad,
array range check, load-store queue, address bits, counters) stays. A word that was trimmed away
faults as an illegal instruction. Source: SCRATCH, section 3; design decision 6.
"""

from dataclasses import dataclass, replace

from hdl.config import PeConfig
from isa.program import Program
from isa.table import BY_KEY, INSTRUCTIONS, Unit

from .area import AreaReport, AreaRow, synthesise
from .errors import TrimError
from .mapping import Progress
from .needs import Needs, needed

__all__ = ["AreaComparison", "TrimReport", "compare_area", "report", "trim"]

_MIN_REGISTERS = 8
_MIN_WORDS = 16


def trim(program: Program, config: PeConfig) -> PeConfig:
    """The smallest configuration within ``config`` that runs ``program`` as ``config`` does.

    Its instructions are those that the program can reach and ``halt``, by which the host's stop
    ends a program too; registers and instruction buffer are the next allowed size.

    Raises:
        TrimError: the program does not run on ``config``, or holds words that are no instructions.
    """
    return _trimmed(needed(program), config)


def _trimmed(needs: Needs, config: PeConfig) -> PeConfig:
    for key, addresses in needs.uses.items():
        if key not in config.instructions:
            raise TrimError(f"word {addresses[0]}: the configuration has no {key}")
    if needs.highest_register >= config.registers:
        raise TrimError(
            f"the program uses r{needs.highest_register}, the configuration ends at "
            f"r{config.registers - 1}"
        )
    if needs.words > config.instruction_words:
        raise TrimError(
            f"the program has {needs.words} words, the instruction buffer "
            f"{config.instruction_words}"
        )
    return replace(
        config,
        instructions=needs.instructions | {"halt"},
        registers=_power_of_two(needs.highest_register + 1, _MIN_REGISTERS),
        instruction_words=_power_of_two(needs.words, _MIN_WORDS),
    )


def _power_of_two(value: int, least: int) -> int:
    return max(least, 1 << (value - 1).bit_length())


@dataclass(frozen=True)
class TrimReport:
    """What trimming took away, and why the rest is still there.

    Attributes:
        needs: of the program. full, trimmed: configurations before and after.
    """

    needs: Needs
    full: PeConfig
    trimmed: PeConfig

    @property
    def removed(self) -> dict[Unit, tuple[str, ...]]:
        """Instructions that are gone, by functional unit, in the table's order."""
        return self._by_unit(self.full.instructions - self.trimmed.instructions)

    @property
    def kept(self) -> dict[Unit, tuple[str, ...]]:
        """Instructions that are still there, by functional unit, in the table's order."""
        return self._by_unit(self.trimmed.instructions)

    @staticmethod
    def _by_unit(keys: frozenset[str]) -> dict[Unit, tuple[str, ...]]:
        return {
            unit: tuple(row.key for row in INSTRUCTIONS if row.unit is unit and row.key in keys)
            for unit in Unit
        }

    def why(self, key: str) -> str:
        """Why instruction ``key`` is in the trimmed engine, or that it is not; one sentence.

        Raises:
            TrimError: the instruction table has no ``key``.
        """
        if key not in BY_KEY:
            raise TrimError(f"there is no instruction {key!r}")
        addresses = self.needs.uses.get(key)
        if addresses:
            return f"{key} is needed by {len(addresses)} words, the first at {addresses[0]}"
        if key in self.trimmed.instructions:
            return f"{key} is in every engine: without it no program could end"
        return f"{key} is gone: no word that can be reached needs it"

    def to_json(self) -> dict[str, object]:
        """The report as plain JSON data."""
        return {
            "needs": self.needs.to_json(),
            "removed": {unit.value: list(keys) for unit, keys in self.removed.items()},
            "kept": {unit.value: list(keys) for unit, keys in self.kept.items()},
            "registers": [self.full.registers, self.trimmed.registers],
            "instruction_words": [self.full.instruction_words, self.trimmed.instruction_words],
        }


def report(program: Program, config: PeConfig) -> TrimReport:
    """:func:`trim` with its reasons."""
    needs = needed(program)
    return TrimReport(needs=needs, full=config, trimmed=_trimmed(needs, config))


@dataclass(frozen=True)
class AreaComparison:
    """Area before and after trimming, for one target."""

    full: AreaReport
    trimmed: AreaReport

    def saved(self, measure: str, unit: str | None = None) -> float:
        """Fraction of ``measure`` (see :data:`synth.area.MEASURES`) that trimming saves, in total
        or in ``unit``; 0 where there was nothing, and negative where it grew."""
        before, after = self._rows(unit)
        was = before.values.get(measure, 0) if before else 0
        now = after.values.get(measure, 0) if after else 0
        return round(1 - now / was, 4) if was else 0.0

    def _rows(self, unit: str | None) -> tuple[AreaRow | None, AreaRow | None]:
        if unit is None:
            return self.full.total, self.trimmed.total
        return self.full.row(unit), self.trimmed.row(unit)

    def to_json(self) -> dict[str, object]:
        """The comparison as plain JSON data: ``lut_saved``, ``ff_saved``, ``ge_saved`` where the
        target has them, both reports, and the savings by unit."""
        keys = {"lut_saved": "luts", "ff_saved": "ffs", "ge_saved": "logic_ge"}
        present = {key: name for key, name in keys.items() if name in self.full.total.values}
        rows = [row.unit for row in self.full.rows]
        return {
            "target": self.full.target,
            **{key: self.saved(name) for key, name in present.items()},
            "full": self.full.to_json(),
            "trimmed": self.trimmed.to_json(),
            "saved_by_unit": {
                unit: {key: self.saved(name, unit) for key, name in present.items()}
                for unit in rows
            },
        }


def compare_area(
    full: PeConfig,
    trimmed: PeConfig,
    target: str,
    progress: Progress | None = None,
) -> AreaComparison:
    """Area of two configurations for ``target``.

    Parameters:
        full, trimmed: before and after. target: see :data:`synth.targets.TARGETS`.
        progress: called after each unit of either, with both's number of units.

    Raises:
        SynthesisError: an unknown target, or a design that Yosys refuses.
    """

    def half(which: int) -> Progress | None:
        if progress is None:
            return None
        return lambda unit, done, of: progress(unit, done + which * of, 2 * of)

    return AreaComparison(
        synthesise(full, target, progress=half(0)), synthesise(trimmed, target, progress=half(1))
    )
