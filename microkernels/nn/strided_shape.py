"""Sizes of layers whose window slides over a padded map."""

from abc import abstractmethod
from dataclasses import dataclass

from microkernels.common.errors import CHECK, KernelError

__all__ = ["StridedShape"]


@dataclass(frozen=True, kw_only=True)
class StridedShape:
    """Sizes of a layer whose window slides over a map.

    Attributes:
        width, height, channels: of the map, at least 1 each.
        stride: pixels from one output's window to the next, at least 1.
        stride_down: pixels down, if different from across; otherwise None.
        padding: pixels around the map, fewer than a window's width.

    Raises:
        KernelError: a value out of range.
    """

    width: int
    height: int
    channels: int
    stride: int = 1
    stride_down: int | None = None
    padding: int = 0

    def __post_init__(self) -> None:
        CHECK.fields(self)
        for name in ("width", "height", "channels", "stride"):
            CHECK.at_least(name, getattr(self, name), 1)
        CHECK.at_least("stride_down", self.step_down, 1)

    @property
    @abstractmethod
    def across(self) -> int:
        """Width of a window in pixels."""

    @property
    @abstractmethod
    def down(self) -> int:
        """Height of a window in pixels."""

    @property
    def step_down(self) -> int:
        """Pixels from one output's window to that of the output below."""
        return self.stride_down or self.stride

    @property
    def out_width(self) -> int:
        """Width of the output in pixels."""
        return (self.width + 2 * self.padding - self.across) // self.stride + 1

    @property
    def out_height(self) -> int:
        """Height of the output in pixels."""
        return (self.height + 2 * self.padding - self.down) // self.step_down + 1

    def check_window(self, window: str, image: str) -> None:
        """Check the padding, and that the window fits.

        Parameters:
            window, image: the layer's names for them, with an article.

        Raises:
            KernelError: one is out of range.
        """
        if not 0 <= self.padding < self.across:
            raise KernelError(f"padding must be from 0 to {self.across - 1}, not {self.padding}")
        around = 2 * self.padding
        if self.across > self.width + around or self.down > self.height + around:
            size = self.across if self.across == self.down else f"{self.across} x {self.down}"
            raise KernelError(
                f"{window} of {size} does not fit {image} of {self.width} x {self.height} "
                f"pixels with {self.padding} pixels around it"
            )
