"""Testbenches that play requesters and memories on memory ports in Amaranth's simulator."""


def fields(payload):
    return {name: getattr(payload, name) for name, _ in payload.shape()}


def play_requester(requester, port):
    """A testbench that plays ``requester`` on ``port``."""

    async def testbench(ctx):
        while not requester.done:
            beat, ready = requester.plan()
            ctx.set(port.request.valid, beat is not None)
            if beat is not None:
                ctx.set(port.request.payload, beat)
            ctx.set(port.response.ready, ready)
            seen = await ctx.tick().sample(
                port.request.ready, port.response.valid, port.response.payload
            )
            _, _, taken, valid, payload = seen
            requester.step(taken, fields(payload) if valid else None)
            assert requester.cycle < 50_000
        ctx.set(port.request.valid, 0)

    return testbench


def play_memory(memory, port, requesters):
    """A testbench that plays ``memory`` on ``port`` until all ``requesters`` are done."""

    async def testbench(ctx):
        while not all(requester.done for requester in requesters):
            ready, beat = memory.plan()
            ctx.set(port.request.ready, ready)
            ctx.set(port.response.valid, beat is not None)
            if beat is not None:
                ctx.set(port.response.payload, beat)
            seen = await ctx.tick().sample(
                port.request.valid, port.request.payload, port.response.ready
            )
            _, _, valid, payload, taken = seen
            memory.step(fields(payload) if valid else None, taken)
        assert memory.open is None
        assert not memory.tags

    return testbench
