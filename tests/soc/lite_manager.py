"""An AXI4-Lite manager with random pauses on every channel."""

from collections import deque


class LiteManager:
    """Drives ``port`` (:class:`hdl.axi.Axi4Lite`, seen from the subordinate).

    Attributes:
        cycle: cycles driven so far.
    """

    def __init__(self, port, rng, *, pause=0.0) -> None:
        self.port = port
        self.rng = rng
        self.pause = pause
        self.cycle = 0

    async def access(self, ctx, *, writes=(), reads=(), limit=5000, each=None):
        """Offer all at once; returns the responses to ``writes`` (address, data, strobe) and
        (response, data) of ``reads`` (addresses), each in order. ``each`` is called every cycle."""
        port = self.port
        queues = {
            "aw": deque({"awaddr": address} for address, _, _ in writes),
            "w": deque({"wdata": data, "wstrb": strobe} for _, data, strobe in writes),
            "ar": deque({"araddr": address} for address in reads),
        }
        offers = dict.fromkeys(queues)
        written, read = [], []
        kept = {}
        start = self.cycle
        while len(written) < len(writes) or len(read) < len(reads):
            for name, queue in queues.items():
                if offers[name] is None and queue and self.rng.random() >= self.pause:
                    offers[name] = queue.popleft()
                ctx.set(getattr(port, f"{name}valid"), offers[name] is not None)
                for key, value in (offers[name] or {}).items():
                    ctx.set(getattr(port, key), value)
            ready = {name: self.rng.random() >= self.pause for name in ("b", "r")}
            for name, value in ready.items():
                ctx.set(getattr(port, f"{name}ready"), value)
            if each is not None:
                await each(ctx)
            seen = await ctx.tick().sample(
                *(port.awready, port.wready, port.arready),
                *(port.bvalid, port.bresp, port.rvalid, port.rresp, port.rdata),
            )
            *taken, bvalid, bresp, rvalid, rresp, rdata = seen[2:]
            for name, accepted in zip(queues, taken, strict=True):
                if accepted:
                    offers[name] = None
            answers = {
                "b": bresp.value if bvalid else None,
                "r": (rresp.value, rdata) if rvalid else None,
            }
            for name, found in (("b", written), ("r", read)):
                answer = answers[name]
                assert kept.get(name) in (None, answer), f"{name} changed before it was taken"
                kept[name] = None if ready[name] else answer
                if answer is not None and ready[name]:
                    found.append(answer)
            self.cycle += 1
            assert self.cycle - start < limit, f"{len(written)} and {len(read)} answers, then none"
        for name in queues:
            ctx.set(getattr(port, f"{name}valid"), 0)
        for name in ("b", "r"):
            ctx.set(getattr(port, f"{name}ready"), 0)
        return written, read
