"""How many threads do the work of a chip's model: no more than there are processors for.

Threads wait for each other every few cycles of the chip. Where other processes have the processors,
each of these waits takes as long as the others run, and several threads are many times slower than
one.
"""

__all__ = ["Workers"]

#: Fewer threads work for so many times as long as a wait took: at first, and, with twice as many
#: after each wait that comes soon after the last change, at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 8, 64


class Workers:
    """The number of threads that work at a time.

    It is about halved where a thread waits for one that has no processor, and doubled again after a
    while.

    Parameters:
        limit: threads that there are, at least 1.
    """

    def __init__(self, limit: int) -> None:
        self._counts = [*(1 << bit for bit in range((limit - 1).bit_length())), limit]
        self._level = len(self._counts) - 1
        # Times of the last change, and of the next one to more threads.
        self._changed = self._rises = 0.0
        self._pause = _FIRST_PAUSE

    def choose(self, time: float) -> int:
        """The threads that work from ``time`` on, a time in seconds."""
        if self._level + 1 < len(self._counts) and time >= self._rises:
            self._level += 1
            self._changed = time
        return self._counts[self._level]

    def waited(self, time: float, seconds: float) -> None:
        """A thread has waited for ``seconds`` up to ``time``."""
        # Much work since the last change pays for a short wait.
        worked = time - seconds - self._changed
        paid = worked > _FIRST_PAUSE * seconds
        self._pause = _FIRST_PAUSE if paid else min(2 * self._pause, _LONGEST_PAUSE)
        self._level = max(0, self._level - 1)
        self._changed = time
        self._rises = time + self._pause * seconds
