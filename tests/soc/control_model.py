"""A ring of tiles without engines, engines that only pretend, and what the host must see."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.axi import Axi4Lite
from hdl.component import Component
from hdl.emission import shared_instance
from isa.table import ISA_VERSION
from pe.interface import ControlPort, PeState
from soc.host.config import HostConfig
from soc.host.control import HostControl
from soc.host.register_map import BLOCKS, CHIP, IDENTITY, MAP_ADDRESS_BITS, MAP_VERSION, PE, VAULT
from soc.host.register_types import HostAccess
from soc.tile.control import TileControl

OKAY, SLVERR, DECERR = 0, 2, 3
RUNNING = PeState.RUNNING


class ControlRing(Component):
    """The host's control port and the ends of its bus in all tiles."""

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        super().__init__(
            {
                "axi": In(Axi4Lite(address_bits=MAP_ADDRESS_BITS)),
                "interrupt": Out(1),
                "engines": In(ControlPort(config.pe)).array(config.pe_count),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        host = HostControl(config)
        m.submodules.host = shared_instance(host, platform)
        connect(m, flipped(self.axi), host.axi)
        m.d.comb += self.interrupt.eq(host.host_interrupt)
        link = host.first
        for vault in range(config.vaults):
            tile = TileControl(pe=config.pe, pes=config.pes)
            m.submodules[f"tile_{vault}"] = shared_instance(tile, platform)
            connect(m, link, tile.input)
            link = tile.output
            first = vault * config.pes
            m.d.comb += [
                tile.vault.eq(vault),
                tile.first_pe.eq(first),
                tile.vault_counter_value.eq(tile.vault_counter_index + (vault << 40)),
                tile.network_counter_value.eq(tile.network_counter_index + (vault << 33)),
            ]
            for slot in range(config.pes):
                connect(m, tile.control[slot], flipped(self.engines[first + slot]))
        connect(m, link, host.last)
        return m


class Engine:
    """Takes programs and launches, and runs until the test ends it."""

    def __init__(self, port) -> None:
        self.port = port
        self.state = PeState.IDLE
        self.cause = 0
        self.pc = 0
        self.memory_error = 0
        self.program = {}
        self.launches = []
        self.shown = None
        self.index = 0
        self.cycle = 0

    def end(self, cause=0, pc=0, memory_error=0):
        """Stop running, after a fault if there is a cause."""
        self.state = PeState.FAULTED if cause else PeState.HALTED
        self.cause, self.pc, self.memory_error = cause, pc, memory_error

    def drive(self, ctx):
        """Drive the port for a cycle."""
        port = self.port
        free = self.state is not RUNNING
        if self.shown != (self.state, self.cause):
            self.shown = self.state, self.cause
            ctx.set(port.load.ready, free)
            ctx.set(port.launch.ready, free)
            names = ("state", "cause", "pc", "memory_error")
            ctx.set(port.status, {name: getattr(self, name) for name in names})
        # Both halves contain the time, which shows whether they belong together.
        ctx.set(port.counter_value, (self.cycle & 0xFFF) << 32 | self.cycle << 4 | self.index)

    def see(self, ctx):
        """See what the host wants in this cycle."""
        port = self.port
        self.index = ctx.get(port.counter_index)
        self.cycle += 1
        if ctx.get(port.load.valid):
            assert self.state is not RUNNING
            payload = ctx.get(port.load.payload)
            self.program[payload.address] = payload.word
        if ctx.get(port.stop) and self.state is RUNNING:
            self.end()
        if ctx.get(port.launch.valid):
            assert self.state is not RUNNING
            payload = ctx.get(port.launch.payload)
            self.launches.append((payload.words, payload.parameters))
            self.state = RUNNING
            self.cause = self.memory_error = 0


class Expected:
    """Answers of the registers, while engines end only when the test ends them."""

    def __init__(self, config: HostConfig) -> None:
        self.config = config
        count = config.pe_count
        self.selected = set(range(count))
        self.running = set()
        self.halted = set()
        self.parameters = [0] * count
        self.programs = [{} for _ in range(count)]
        self.launches = [[] for _ in range(count)]
        self.enable = 0
        self.bases = {"BASE_LOW": {}, "BASE_HIGH": {}}
        self.places = {}
        for block in BLOCKS:
            pages = {PE.name: count, VAULT.name: config.vaults}.get(block.name, 1)
            for register in block.registers:
                indices = register.count
                if block is CHIP and register.count == CHIP.register("SELECT").count:
                    indices = -(-count // 32)
                if register.name.startswith("NETWORK"):
                    indices = config.network_counters
                if register.name.startswith("BASE"):
                    indices = config.vaults if config.bases else 0
                for page in range(pages):
                    for index in range(indices):
                        address = block.address(register.name, index, page=page)
                        self.places[address] = block, register, index, page

    def _bitmap(self, numbers, index):
        return sum(1 << pe - 32 * index for pe in numbers if 0 <= pe - 32 * index < 32)

    def write(self, address, value, strobe):
        """The response to a write, which is done."""
        place = self.places.get(address & ~3)
        if place is None:
            return DECERR
        block, register, index, page = place
        if register.access is HostAccess.READ or strobe != 0xF:
            return SLVERR
        limit = 1 << self.config.address_bits
        if register.name in ("PARAMETERS_LOW", "PARAMETERS_HIGH"):
            low = register.name == "PARAMETERS_LOW"
            pes = self.selected if block is CHIP else {page}
            shift = 0 if low else 32
            if value << shift >= limit or not pes:
                return SLVERR
            for pe in pes:
                kept = self.parameters[pe] & ~(0xFFFFFFFF << shift)
                self.parameters[pe] = kept | value << shift
            return OKAY
        if register.name in self.bases:
            if register.name == "BASE_LOW" and value % 4096:
                return SLVERR
            self.bases[register.name][index] = value
            return OKAY
        return getattr(self, f"_{register.name.lower()}")(value, index)

    def _interrupt_status(self, value, index):
        return OKAY

    def _interrupt_enable(self, value, index):
        self.enable = value & 3
        return OKAY

    def _select_all(self, value, index):
        self.selected = set(range(self.config.pe_count)) if value & 1 else set()
        return OKAY

    def _select(self, value, index):
        group = set(range(32 * index, min(32 * index + 32, self.config.pe_count)))
        wanted = {32 * index + bit for bit in range(32) if value >> bit & 1}
        if wanted - group:
            return SLVERR
        self.selected = self.selected - group | wanted
        return OKAY

    def _stop(self, value, index):
        self.halted |= self.selected & self.running
        self.running -= self.selected
        return OKAY if self.selected else SLVERR

    def _start(self, value, index):
        if not 1 <= value <= self.config.pe.instruction_words or not self.selected:
            return SLVERR
        busy = self.selected & self.running
        for pe in self.selected - self.running:
            self.launches[pe].append((value, self.parameters[pe]))
        self.running |= self.selected
        self.halted -= self.selected
        return SLVERR if busy else OKAY

    def _program(self, value, index):
        if index >= self.config.pe.instruction_words or not self.selected:
            return SLVERR
        for pe in self.selected - self.running:
            self.programs[pe][index] = value
        return SLVERR if self.selected & self.running else OKAY

    def read(self, address):
        """Response and data of a read; None for data that depends on time."""
        place = self.places.get(address & ~3)
        if place is None:
            return DECERR, 0
        block, register, index, page = place
        if register.access is HostAccess.WRITE:
            return SLVERR, 0
        if block is CHIP:
            return OKAY, self._chip(register.name, index)
        if block is VAULT or register.name.startswith("COUNTER"):
            return OKAY, None
        state = PeState.IDLE
        if page in self.running:
            state = PeState.RUNNING
        elif page in self.halted:
            state = PeState.HALTED
        return OKAY, {
            "STATUS": state.value,
            "PARAMETERS_LOW": self.parameters[page] & 0xFFFFFFFF,
            "PARAMETERS_HIGH": self.parameters[page] >> 32,
        }[register.name]

    def _chip(self, name, index):
        config = self.config
        if name in self.bases:
            return self.bases[name].get(index, 0)
        return {
            "IDENTITY": IDENTITY,
            "VERSION": MAP_VERSION | ISA_VERSION << 16,
            "GRID": config.columns | config.rows << 16,
            "PES": config.pe_count | config.pes << 16,
            "INSTRUCTION_WORDS": config.pe.instruction_words,
            "SCRATCHPAD_BYTES": config.pe.scratchpad_bytes,
            "MEMORY": config.vault_address_bits | config.address_bits << 8,
            "COUNTERS": 3 | config.network_counters << 8,
            "STATE": int(bool(self.running)),
            "INTERRUPT_STATUS": None,
            "INTERRUPT_ENABLE": self.enable,
            "SELECT": self._bitmap(self.selected, index),
            "RUNNING": self._bitmap(self.running, index),
            "HALTED": self._bitmap(self.halted, index),
            "FAULTED": 0,
        }[name]
