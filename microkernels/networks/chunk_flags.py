"""Flags beside the chunks of inputs that a chip's vaults exchange, which say what is there."""

import numpy as np

from microkernels.common.feature_map import round_up
from microkernels.nn.lstm_shape import LstmPlan
from microkernels.runtime.barrier import ALWAYS_FULL, FLAG_BYTES, FLAG_GROUP


class ChunkFlags:
    """Flags of the chunks of a phase's inputs, at the same offsets in each vault; those in the
    chunk's vault are used. For each chunk and engine of a part there is one for each part that
    computes a piece of the chunk.

    Parameters:
        plan: of a part. share: elements that a part computes. chunks: number of chunks.
        base: offset of the first flag; a multiple of 32. initial: what flags contain at first.

    Attributes:
        count: flags to read for a chunk. marks: flags that an engine marks after a phase.
    """

    def __init__(self, plan: LstmPlan, share: int, chunks: int, *, base: int, initial: int) -> None:
        self.share, self.base, self._initial = share, base, initial
        self._sharers = plan.sharers
        parts = range(plan.vaults)
        self._parts = [
            [part for part in parts if part * share < end and (part + 1) * share > end - plan.chunk]
            for end in range(plan.chunk, (chunks + 1) * plan.chunk, plan.chunk)
        ]
        self.count = max(map(len, self._parts), default=0)
        self._places = self.count if self.count <= FLAG_GROUP else round_up(self.count, FLAG_GROUP)
        self.marks = max(len(self._chunks(part)) for part in parts)

    def _chunks(self, part: int) -> list[int]:
        return [chunk for chunk, parts in enumerate(self._parts) if part in parts]

    def offset(self, chunk: int, member: int) -> int:
        """Offset of the first flag of an engine's vectors in a chunk."""
        return self.base + (chunk * self._sharers + member) * self._places * FLAG_BYTES

    def of_part(self, part: int, member: int) -> list[tuple[int, int]]:
        """Chunk and offset of each flag that an engine of a part marks; the last one again if
        others mark more."""
        flags = [
            (chunk, self.offset(chunk, member) + self._parts[chunk].index(part) * FLAG_BYTES)
            for chunk in self._chunks(part)
        ]
        return flags + flags[-1:] * (self.marks - len(flags))

    @property
    def full(self) -> int:
        """Offset of flags that are always full, as many as for a chunk."""
        return self.offset(len(self._parts), 0)

    @property
    def end(self) -> int:
        """First offset after all flags."""
        return self.offset(len(self._parts), 1)

    def contents(self) -> bytes:
        """Initial flags of a vault. Those that no part marks are always full."""
        words = np.zeros(
            (len(self._parts) + 1, self._sharers, self._places, FLAG_BYTES // 8), "<i8"
        )
        words[..., 0] = ALWAYS_FULL
        for chunk, parts in enumerate(self._parts):
            words[chunk, :, : len(parts), 0] = self._initial
        return words.tobytes()[: self.end - self.base]
