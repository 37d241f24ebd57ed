"""What a plan must know of a chip."""

from dataclasses import dataclass, field

from microkernels.common.builder import DEFAULT_SCRATCHPAD, INSTRUCTION_WORDS
from microkernels.common.errors import CHECK
from microkernels.runtime.ring import VaultRing

__all__ = ["ChipEngines"]


@dataclass(frozen=True, kw_only=True)
class ChipEngines:
    """The engines of a chip.

    Attributes:
        ring: of the vaults; the default is one vault.
        pes: engines of a vault, at least 1.
        scratchpad_bytes, instruction_words: of an engine's scratchpad and instruction buffer.

    Raises:
        KernelError: a value outside its range.
    """

    ring: VaultRing = field(default_factory=VaultRing)
    pes: int = 4
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD
    instruction_words: int = INSTRUCTION_WORDS

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.at_least("pes", self.pes, 1)
