"""The serial host port between damaged bytes, and a ring and a memory that log what they do."""

from dataclasses import replace

import pytest

from hdl.axi import AxiResponse
from isa.assembly.assembler import assemble
from memory.on_chip import OnChipConfig
from noc.config import NetworkConfig
from soc.board.frame import MAX_WORDS, REQUEST, Request, Space, decode_response
from soc.board.serial_host import SerialHost
from soc.board.serial_transport import SerialTransport
from soc.chip.chip import Chip
from soc.chip.config import ChipConfig
from soc.chip.control_bus import ControlSpace
from soc.host.driver import Host
from soc.host.register_map import CHIP
from soc.host.transport import Blocking, BusError, HostError, run
from soc.tile.config import VaultTileConfig
from tests.soc.board.line import Line
from tests.soc.host_dut import small

GAP = 64
DIGEST = 0x0123456789ABCDEF
PROGRAM = CHIP.address("PROGRAM")
CONFIG = small(columns=1, pes=1, vault_address_bits=14)


class Surroundings:
    """A ring that answers each message, and a memory that performs each request, at random times.
    The memory's last KiB fails."""

    def __init__(self, rng) -> None:
        self.rng = rng
        self.memory = bytearray(1 << 14)
        self.written = []
        self._message = self._response = None

    def clock(self, dut):
        async def clock(ctx):
            ring, memory = dut.first.message, dut.port.request
            ctx.set(ring.ready, self._message is None and self.rng.random() < 0.5)
            ctx.set(memory.ready, self._response is None and self.rng.random() < 0.5)
            ctx.set(dut.last.message.valid, self._message is not None and self.rng.random() < 0.5)
            ctx.set(dut.port.response.valid, self._response is not None and self.rng.random() < 0.5)
            moves = [
                ctx.get(one.valid) and ctx.get(one.ready)
                for one in (ring, memory, dut.last.message, dut.port.response)
            ]
            message, request = ctx.get(ring.payload), ctx.get(memory.payload)
            await ctx.tick()
            if moves[2]:
                self._message = None
            if moves[3]:
                self._response = None
            if moves[0]:
                self._answer(ctx, dut, message)
            if moves[1]:
                self._serve(ctx, dut, request)

        return clock

    def _answer(self, ctx, dut, message):
        if message.write and message.space == ControlSpace.COMMAND:
            self.written.append((message.index, message.data))
        self._message = {
            "write": message.write,
            "space": message.space,
            "index": message.index,
            "register": message.register,
            "data": message.data,
            "addressed": 1,
            "response": message.response,
        }
        ctx.set(dut.last.message.payload, self._message)

    def _serve(self, ctx, dut, request):
        start = request.address
        fails = start >= 15 << 10
        if request.write and not fails:
            for place in range(8):
                if request.strobe >> place & 1:
                    self.memory[start + place] = request.data >> 8 * place & 0xFF
        self._response = {
            "tag": request.tag,
            "data": int.from_bytes(self.memory[start : start + 8], "little"),
            "last": 1,
            "error": fails,
        }
        ctx.set(dut.port.response.payload, self._response)


def play(simulate, rng, host, damage=0.0):
    """Run ``host(transport, surroundings)`` on a port alone."""
    dut = SerialHost(CONFIG, digest=DIGEST, gap=GAP)
    around = Surroundings(rng)
    line = Line(rng, damage)
    transport = SerialTransport(line, patience=0.3)
    simulate(dut, line.bench(dut, lambda: host(transport, around), around.clock(dut)))
    return transport, line


@pytest.mark.parametrize("damage", [0.0, 0.015])
def test_no_access_is_lost_doubled_or_wrong(simulate, rng, damage):
    """Blocks of registers and memory of any size and alignment, on a line that damages bytes."""

    def host(transport, around):
        expected, memory = [], bytearray(around.memory)
        for _ in range(8):
            words = [rng.getrandbits(32) for _ in range(rng.choice((1, 3, 12)))]
            transport.write_block(PROGRAM, words)
            expected += enumerate(words)
            start = rng.randrange(1 << 13)
            content = rng.randbytes(rng.choice((1, 2, 5, 8, 47)))
            transport.write_memory(start, content)
            memory[start : start + len(content)] = content
            begin = rng.randrange(1 << 13)
            size = rng.choice((1, 7, 50))
            assert transport.read_memory(begin, size) == memory[begin : begin + size]
        assert around.written == expected
        assert around.memory == memory
        dropped.append(transport.dropped())

    dropped = []
    transport, line = play(simulate, rng, host, damage)
    assert (transport.resent > 0) == (line.damage.number > 0) == (damage > 0)
    assert (dropped[0] > 0) == (damage > 0)


def test_an_interrupted_host_and_a_new_one(simulate, rng):
    """Half of a frame comes; the next host's first write has the number of the last one."""

    def host(transport, around):
        transport.write_block(PROGRAM, [1])
        other = SerialTransport(transport._line, patience=0.3)
        frame = Request(Space.REGISTER, PROGRAM, words=(7, 8)).encode(9)
        transport._line.send(frame[:-5])
        other.write_block(PROGRAM, [2])
        assert around.written == [(0, 1), (0, 2)]
        assert other.resent == 1

    play(simulate, rng, host)


def test_a_frame_within_a_frame(simulate, rng):
    """The port finds a request in the words of one whose beginning is lost, as long as that one,
    and would find it again in each repetition that follows without a pause."""

    def host(transport, around):
        line = transport._line
        line.spaced = True
        impatient = SerialTransport(line, patience=0.02)
        impatient.dropped()
        words = [int.from_bytes(bytes([REQUEST, 1, 0, 2]), "little"), 7, 8]
        line.send(Request(Space.REGISTER, PROGRAM, words=tuple(words)).encode(77)[8:])
        impatient.write_block(PROGRAM, words)
        assert around.written == [*enumerate(words)]
        assert impatient.resent > 2

    play(simulate, rng, host)


def test_a_repeated_write_is_answered_but_not_performed(simulate, rng):
    def host(transport, around):
        line = transport._line
        answers = []
        for _ in range(3):
            line.send(Request(Space.REGISTER, PROGRAM, words=(5,) * 2).encode(77))
            content = b""
            while arrived := line.receive(0.3):
                content += arrived
            answers.append(decode_response(content)[0])
        assert around.written == [(0, 5), (1, 5)]
        assert answers[0] == answers[1] == answers[2]
        assert answers[0].last == 1

    play(simulate, rng, host)


def test_errors_name_the_access(simulate, rng):
    def host(transport, around):
        with pytest.raises(BusError, match=r"^read of memory 0x3c00 was answered with SLVERR$"):
            transport.read_memory(0x3BF0, 64)
        with pytest.raises(BusError, match=r"^write to memory 0x4000 was answered with DECERR$"):
            transport.write_memory(0x4000, bytes(4))
        with pytest.raises(BusError, match=r"^write to register 0x0 was answered with SLVERR$"):
            transport.write32(0, 1)
        with pytest.raises(BusError, match=r"0x100000 was answered with DECERR$"):
            transport.read32(1 << 20)
        with pytest.raises(BusError, match=r"SLVERR$"):
            transport._perform(Request(Space.LINK, 0, words=(1,)), "write to port")

    play(simulate, rng, host)


def test_a_wrong_bit_file_is_refused_by_name(simulate, rng):
    def host(transport, around):
        transport.check(DIGEST, "bp")
        with pytest.raises(
            HostError,
            match=r"^the board has another bit file: configuration 0123456789abcdef, not "
            r"0000000000000001 of bp; load that one$",
        ):
            transport.check(1, "bp")

    play(simulate, rng, host)


def test_nobody_answers():
    class Dead:
        def send(self, content):
            pass

        def receive(self, seconds):
            return b""

    with pytest.raises(HostError, match=r"^no answer to 40 requests: is the board on"):
        SerialTransport(Dead()).read32(0)


def test_a_response_within_noise():
    frame = Request(Space.MEMORY, 0, 2).encode(3)
    assert decode_response(frame) == (None, len(frame))
    assert Request(Space.MEMORY, 0, MAX_WORDS).encode(0)[3] == MAX_WORDS - 1


def chip(sram="behavioural", pe=CONFIG.pe):
    vault = OnChipConfig(bytes=3 << 14, tag_bits=pe.tag_bits + 1, sram=sram)
    pe = replace(pe, address_bits=vault.address_bits, sram=sram)
    network = NetworkConfig(
        columns=1, rows=1, address_bits=vault.address_bits, tag_bits=pe.tag_bits, sram=sram
    )
    tile = VaultTileConfig(pe=pe, vault=vault, pes=1, extra_ports=1)
    return ChipConfig(tile=tile, network=network, remote=False, host_data="serial")


def test_the_driver_runs_a_program_on_a_chip(simulate):
    """All three banks of an on-chip memory, and what is beyond."""
    config = chip()
    dut = Chip(config)
    line = Line()
    transport = SerialTransport(line, patience=4.0)
    text = """
        mov r1, #45056
        mov r2, #9
        st.reg[64-bit] r1, r2
        memfence
        halt
    """
    host = Host(Blocking(transport))

    def drive():
        assert run(host.identify()).pe_count == 1
        run(host.write(0, bytes(range(100))))
        run(host.write(40000, bytes(range(100))))
        run(host.load(assemble(text)))
        run(host.launch())
        run(host.wait(timeout=1.0, poll=1e-6))
        assert run(host.faults()) == ()
        assert run(host.read(0, 100)) == bytes(range(100))
        assert run(host.read(39998, 104))[2:102] == bytes(range(100))
        assert run(host.read(45056, 8)) == (9).to_bytes(8, "little")
        with pytest.raises(BusError, match=AxiResponse.SLVERR.name):
            transport.read_memory(3 << 14, 4)

    async def clock(ctx):
        await ctx.tick()

    simulate(dut, line.bench(dut, drive, clock))
