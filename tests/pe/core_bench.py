"""A bench for the whole engine, with a memory that the bench plays."""

import warnings

from hdl.ports import COLUMN_BYTES, COLUMN_WORDS
from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from pe.config import PeConfig
from pe.core import Pe
from pe.interface import PeCounter, PeState
from tests.executed_lines import design_of, simulator_of
from tests.steady_streams import with_checks

CONFIG = PeConfig(
    instructions=frozenset(
        {"add", "add.imm", "mov", "mov.imm", "bne", "jmp", "halt", "memfence", "v.drain"}
        | {"ld.sram[16]", "st.sram[16]", "ld.reg[64]", "st.reg[64]", "set.vl", "v.v.add[16]"}
    ),
    instruction_words=32,
    registers=16,
    scratchpad_bytes=256,
    arc_entries=2,
    load_store_queue=4,
    address_bits=12,
)
IDENTITY = {"pe_index": 11, "vault": 22, "slot": 33, "pe_count": 44}
PARAMETERS = 0x100
#: More cycles than any program here takes.
LIMIT = 2000


class Bench:
    """An engine in a simulation, with a memory that answers in order.

    Attributes:
        memory: bytes. latency: cycles from the last beat of a request to its answer.
        errors: columns that fail. error_beats: of the answer to a read that fails, at most.
        writes: (address, bytes) in the order in which they came.
        cycle: now. outstanding: requests without a complete answer.
    """

    def __init__(self, latency=5):
        self.dut = design_of(Pe, CONFIG)
        self.memory = bytearray(1 << CONFIG.address_bits)
        self.latency = latency
        self.errors = set()
        self.error_beats = COLUMN_WORDS
        self.writes = []
        self.pending = []
        self.beats = []
        self.cycle = 0
        self.outstanding = 0

    def run(self, work):
        async def bench(ctx):
            self.ctx = ctx
            ctx.set(self.dut.memory.request.ready, 1)
            for name, value in IDENTITY.items():
                ctx.set(getattr(self.dut.identity, name), value)
            await work(self)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with simulator_of(self.dut, with_checks) as simulator:
                simulator.add_clock(1e-9)
                simulator.add_testbench(bench)
                simulator.run()

    async def tick(self):
        ctx, port = self.ctx, self.dut.memory
        ctx.set(port.response.valid, bool(self.beats))
        if self.beats:
            for name, value in self.beats[0].items():
                ctx.set(getattr(port.response.payload, name), value)
        taken = self.beats and ctx.get(port.response.ready)
        request = None
        if ctx.get(port.request.valid):
            payload = port.request.payload
            names = ("address", "tag", "write", "words", "data", "strobe", "last")
            request = {name: ctx.get(getattr(payload, name)) for name in names}
        await ctx.tick()
        self.cycle += 1
        if taken and self.beats.pop(0)["last"]:
            self.outstanding -= 1
        if request is not None:
            self._accept(request)
        while not self.beats and self.pending and self.pending[0][0] <= self.cycle:
            self.beats = self.pending.pop(0)[1]

    def _accept(self, request):
        address, error = request["address"], request["address"] // COLUMN_BYTES in self.errors
        if request["write"]:
            data = request["data"].to_bytes(8, "little")
            for byte in range(8):
                if request["strobe"] >> byte & 1 and not error:
                    self.memory[address + byte] = data[byte]
            self.writes.append((address, data))
            values = [0]
        else:
            places = range(address, address + 8 * (request["words"] + 1), 8)
            values = [int.from_bytes(self.memory[p : p + 8], "little") for p in places]
        if error:
            values = values[: self.error_beats]
        if not request["last"]:
            return
        self.outstanding += 1
        beats = [
            {
                "tag": request["tag"],
                "data": value,
                "last": number == len(values) - 1,
                "error": error and number == len(values) - 1,
            }
            for number, value in enumerate(values)
        ]
        self.pending.append((self.cycle + self.latency, beats))

    def word(self, address):
        return int.from_bytes(self.memory[address : address + 8], "little")

    @property
    def status(self):
        status = self.dut.control.status
        get = self.ctx.get
        return PeState(get(status.state)), FaultCause(get(status.cause)), get(status.pc)

    @property
    def state(self):
        return self.status[0]

    async def load(self, text):
        """Load a program; its length."""
        words = assemble(text).words
        stream = self.dut.control.load
        for address, word in enumerate(words):
            self.ctx.set(stream.payload, {"address": address, "word": word})
            self.ctx.set(stream.valid, 1)
            assert self.ctx.get(stream.ready)
            await self.tick()
        self.ctx.set(stream.valid, 0)
        return len(words)

    async def launch(self, text, parameters=PARAMETERS):
        words = await self.load(text)
        stream = self.dut.control.launch
        self.ctx.set(stream.payload, {"words": words, "parameters": parameters})
        self.ctx.set(stream.valid, 1)
        assert self.ctx.get(stream.ready)
        await self.tick()
        self.ctx.set(stream.valid, 0)
        assert self.state is PeState.RUNNING

    async def end(self):
        """Run to the end; status, and cycles that it took from the launch."""
        start = self.cycle
        while self.state is PeState.RUNNING:
            await self.tick()
            assert self.cycle - start < LIMIT
        return (*self.status, self.cycle - start)

    async def do(self, text, parameters=PARAMETERS):
        await self.launch(text, parameters)
        return await self.end()

    async def counters(self):
        """All counters, each read in the cycle after its index."""
        found = {}
        for counter in PeCounter:
            self.ctx.set(self.dut.control.counter_index, counter.value)
            await self.tick()
            found[counter] = self.ctx.get(self.dut.control.counter_value)
        return found
