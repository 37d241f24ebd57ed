"""A line between a host in a thread and a simulated serial port, whose bytes are damaged."""

import queue
import random
import threading
from collections.abc import Callable

from sim_tb.cosim.board import Damage

#: Cycles of a second of the host.
CYCLES = 1000


class Line:
    """A :class:`soc.board.serial_transport.ByteStream`; :meth:`bench` is the port's side.

    A share ``damage`` of the bytes of both directions is changed, lost or doubled.
    """

    def __init__(self, rng: random.Random | None = None, damage: float = 0.0) -> None:
        self.damage = Damage(rng or random.Random(0), damage)
        #: Whether a cycle passes between two bytes.
        self.spaced = False
        self._asked: queue.Queue = queue.Queue()
        self._told: queue.Queue = queue.Queue()

    def send(self, content: bytes) -> None:
        self._ask("send", content)

    def receive(self, seconds: float) -> bytes:
        return self._ask("receive", seconds)

    def _ask(self, *what):
        self._asked.put(what)
        return self._told.get()

    def bench(self, dut, host: Callable[[], None], clock):
        """A testbench that runs ``host`` in a thread; ``clock(ctx)`` lets a cycle pass, and is for
        everything around the port."""
        failed: list[BaseException] = []

        def work() -> None:
            try:
                host()
            except BaseException as error:
                failed.append(error)
            self._asked.put(("end",))

        async def bench(ctx):
            arrived = bytearray()

            async def cycle():
                ctx.set(dut.sent.ready, 1)
                if ctx.get(dut.sent.valid):
                    arrived.append(ctx.get(dut.sent.payload))
                await clock(ctx)

            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            while True:
                kind, *rest = self._asked.get()
                if kind == "end":
                    break
                if kind == "send":
                    for byte in self.damage(rest[0]):
                        ctx.set(dut.received.valid, 1)
                        ctx.set(dut.received.payload, byte)
                        await cycle()
                        if self.spaced:
                            ctx.set(dut.received.valid, 0)
                            await cycle()
                    ctx.set(dut.received.valid, 0)
                    self._told.put(None)
                    continue
                for _ in range(round(rest[0] * CYCLES)):
                    if arrived:
                        break
                    await cycle()
                self._told.put(self.damage(bytes(arrived)))
                arrived.clear()
            thread.join()
            if failed:
                raise failed[0]

        return bench
