"""Places in the scratchpad that a program uses."""

from collections.abc import Mapping

from .feature_map import round_up

_ALIGN = 16


class ScratchpadPlan:
    """Named places from address 0 on, followed by a ring of equal slots.

    ``places["sums"]`` is the address of a place.

    Parameters:
        sizes: of the first places in bytes, by name.
        align: places and slots start at a multiple of this, so that an access to one doesn't wait
            for a transfer to its neighbour.

    Attributes:
        used: bytes of all places and the ring.
        ring, slot, slots: address of the ring, bytes per slot, number of slots.
        vector: bytes from one vector of a slot to the next.
    """

    def __init__(self, sizes: Mapping[str, int] | None = None, *, align: int = _ALIGN) -> None:
        self._align = align
        self._places: dict[str, tuple[int, int]] = {}
        self.used = 0
        self.ring = self.slot = self.slots = self.vector = 0
        for name, size in (sizes or {}).items():
            self.take(name, size)

    def __getitem__(self, name: str) -> int:
        return self._places[name][0]

    @property
    def listing(self) -> list[str]:
        """Lines for the top of a program: address, name and bytes of each place."""
        places = [f"  {at:>4} {name}, {size} bytes" for name, (at, size) in self._places.items()]
        ring = f"  {self.ring:>4} ring of {self.slots} slots of {self.slot} bytes"
        return [f"Scratchpad ({self.used} bytes)", *places, *[ring] * (self.slots > 0)]

    def take(self, name: str, size: int) -> int:
        """Allocate ``size`` bytes, 0 or more; returns the address."""
        start = self.used
        self._places[name] = (start, size)
        self.used = round_up(start + size, self._align)
        return start

    def take_each(self, stem: str, count: int, size: int) -> None:
        """Allocate ``size`` bytes each for ``stem0``, ``stem1`` and so on."""
        for number in range(count):
            self.take(f"{stem}{number}", size)

    def take_ring(
        self, vectors: int, vector: int, *, most: int, room: int | None = None, step: int = 1
    ) -> int:
        """Allocate the ring with as many slots as fit. Returns their number, which may be too
        small.

        Parameters:
            vectors: per slot. vector: bytes from one to the next.
            most: maximum number of slots. step: their number is a multiple of this.
            room: bytes in the scratchpad; None: unlimited.
        """
        slot = round_up(vectors * vector, self._align)
        fitting = most if room is None else max(0, room - self.used) // slot
        self.set_ring(self.used, slot, min(most, fitting) // step * step, vector)
        return self.slots

    def set_ring(self, ring: int, slot: int, slots: int, vector: int) -> None:
        """Place the ring at address ``ring``, after all places."""
        self.ring, self.slot, self.slots, self.vector = ring, slot, slots, vector
        self.used = ring + slot * slots
