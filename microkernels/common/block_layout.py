"""What the layouts of layers of maps share: the parameter block, which comes first."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from isa.declared import Declared, Span

from .errors import CHECK, KernelError
from .feature_map import COLUMN_BYTES, round_up
from .parameter_block import block_size

__all__ = ["BlockLayout"]


@dataclass(frozen=True, kw_only=True)
class BlockLayout(ABC):
    """Addresses of a layer's data beside its maps: a parameter block, then what a layer adds.

    Attributes:
        base: first address of these data; a multiple of 32.
        sharers: engines that share the layer, at least 1.

    Raises:
        KernelError: a field of another type, or outside its range.
    """

    base: int
    sharers: int = 1

    def __post_init__(self) -> None:
        CHECK.fields(self)
        if self.base < 0 or self.base % COLUMN_BYTES:
            raise KernelError(f"base must be a multiple of {COLUMN_BYTES}, not {self.base}")
        CHECK.at_least("sharers", self.sharers, 1)

    @property
    @abstractmethod
    def _parts(self) -> Sequence[int]:
        """Words of each engine's part of the parameter block."""

    @property
    def parameters(self) -> int:
        """Address of the parameter block."""
        return self.base

    @property
    def declared(self) -> Declared:
        """The memory that is fixed with the layer: the parameter block."""
        block = Span(self.parameters, block_size(self._parts))
        return Declared(constants=(block,), slots=self.sharers)

    @property
    def _block_end(self) -> int:
        """Address after the parameter block; a multiple of 32."""
        return round_up(self.base + block_size(self._parts), COLUMN_BYTES)
