"""The steps of layers that work on rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isa.program import Program
from microkernels.nn.line import line_program
from microkernels.nn.product import ProductLayout, ProductShape
from microkernels.nn.rows import RowsLayout
from microkernels.nn.rows_shape import NormalizeShape

from .engines import ChipEngines
from .network import Normalize, Product
from .plan import LayerPlan
from .steps import BareStep
from .stored import InputMaps, OutputMaps

__all__ = ["row_step"]


@dataclass(frozen=True, kw_only=True)
class _RowsStep(BareStep):
    """Softmax or a normalisation.

    Attributes:
        source: maps that it reads.
        shape: of a tile.
    """

    source: InputMaps | OutputMaps
    shape: NormalizeShape

    def layout(self, vault: int, round_: int, offset: int) -> RowsLayout:
        return RowsLayout(
            shape=self.shape,
            source=self.source.map(vault, round_),
            target=self.target.map(vault, round_),
            base=self.ring.address(vault, offset),
            sharers=self.pes,
            scratchpad_bytes=self.engines.scratchpad_bytes,
        )

    def _program(self, offset: int) -> Program:
        return line_program(self.layout(0, 0, offset), vault_bits=self.ring.address_bits)


@dataclass(frozen=True, kw_only=True)
class _ProductStep(BareStep):
    """A product of two maps.

    Attributes:
        sources: maps that it reads.
        shape: of a tile.
    """

    sources: Sequence[InputMaps | OutputMaps]
    shape: ProductShape

    def layout(self, vault: int, round_: int, offset: int) -> ProductLayout:
        source, other = (maps.map(vault, round_) for maps in self.sources)
        return ProductLayout(
            shape=self.shape,
            source=source,
            other=other,
            target=self.target.map(vault, round_),
            base=self.ring.address(vault, offset),
            sharers=self.pes,
            scratchpad_bytes=self.engines.scratchpad_bytes,
        )

    def _program(self, offset: int) -> Program:
        return line_program(self.layout(0, 0, offset), vault_bits=self.ring.address_bits)


def row_step(
    plan: LayerPlan,
    engines: ChipEngines,
    sources: Sequence[InputMaps | OutputMaps],
    target: OutputMaps,
) -> BareStep:
    """The step of a layer that works on rows.

    Parameters:
        plan: of the layer. sources, target: its maps.
    """
    layer, tile = plan.layer, target.whole_tile
    if isinstance(layer, Normalize):
        (source,) = sources
        return _RowsStep(
            layer_name=layer.name,
            engines=engines,
            source=source,
            target=target,
            shape=layer.shape(tile),
        )
    assert isinstance(layer, Product)
    assert plan.second is not None
    whole = layer.shape(plan.input, plan.second)
    return _ProductStep(
        layer_name=layer.name,
        engines=engines,
        sources=sources,
        target=target,
        shape=replace(whole, groups=tile.width, rows=tile.height),
    )
