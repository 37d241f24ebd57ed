"""Kernels on the timing model, with the cycles of the Verilog beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .kernel_rows import KernelRow

__all__ = ["ComparedRow", "beside"]


@dataclass(frozen=True, kw_only=True)
class ComparedRow:
    """A line of the report of kernels.

    Attributes:
        row: measured on the timing model.
        verilog: cycles of the Verilog for the same run; 0: the line is a sum of others.
    """

    row: KernelRow
    verilog: int

    @property
    def percent(self) -> float:
        """By how much the model's cycles are more, in percent; negative if they are fewer."""
        return 100 * (self.row.cycles - self.verilog) / self.verilog if self.verilog else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **self.row.to_dict(),
            "verilog_cycles": self.verilog,
            "difference_percent": self.percent,
        }


def beside(model: Sequence[KernelRow], verilog: Sequence[KernelRow]) -> list[ComparedRow]:
    """The lines of both machines for the same kernels, in the same order."""
    return [
        ComparedRow(row=mine, verilog=theirs.cycles)
        for mine, theirs in zip(model, verilog, strict=True)
    ]
