#include "control.h"

#include <algorithm>

namespace vip::timed {
namespace {

// The register of `block` at byte `offset` of a page, or null.
const RegisterRow* row_at(const RegisterMap& map, uint32_t block, uint32_t offset) {
    for (uint64_t number = 0; number < map.count; ++number) {
        const RegisterRow& row = map.registers[number];
        if (row.block == block && (offset & ~row.index_mask) == row.offset) return &row;
    }
    return nullptr;
}

uint32_t index_of(const RegisterRow& row, uint32_t offset) {
    return (offset & row.index_mask) >> row.index_low;
}

void replace(uint64_t& value, uint32_t half, uint32_t data) {
    const uint32_t shift = 32 * half;
    value = (value & ~(uint64_t{0xffffffff} << shift)) | uint64_t{data} << shift;
}

}  // namespace

void HostPort::drive(VipChipIn& in) const {
    in.control_awready = m_aw.ready();
    in.control_wready = m_w.ready();
    in.control_arready = m_ar.ready();
    in.control_bvalid = m_b.valid();
    in.control_bresp = m_b.front();
    in.control_rvalid = m_r.valid();
    in.control_rdata = m_r.front().data;
    in.control_rresp = m_r.front().response;
    in.host_interrupt = m_pending & m_enabled;
}

bool HostPort::idle() const {
    return !m_aw.valid() && !m_w.valid() && !m_ar.valid() && !m_outgoing.valid() && !m_b.valid() &&
           !m_r.valid() && !m_decode_valid && !m_reads && !m_writes;
}

// soc/host/decode.py
Message HostPort::message(const Summary& last) {
    Message made = {};
    made.write = m_write;
    made.response = kResponseDecerr;
    const RegisterRow* row = nullptr;
    uint32_t page = 0, offset = 0;
    m_address &= kMapMask;
    for (uint32_t block = 0; block < kBlocks && !row; ++block) {
        const BlockRow& rows = m_map.blocks[block];
        if (m_address / rows.block_bytes != rows.base / rows.block_bytes) continue;
        page = m_address % rows.block_bytes / rows.page_bytes;
        offset = m_address % rows.page_bytes & ~3U;
        if (page < rows.pages) row = row_at(m_map, block, offset);
    }
    const uint32_t index = row ? index_of(*row, offset) : 0;
    if (row && index < row->count) {
        const uint32_t most = index == row->count - 1 ? row->last_most : row->most;
        const bool legal = index < row->room && m_data >= row->least && m_data <= most;
        const bool allowed = m_write ? row->writable && m_all_bytes && legal : row->readable;
        made.response = allowed ? kResponseOkay : kResponseSlverr;
    }
    made.space = kSpaceChip;
    if (made.response == kResponseOkay) {
        made.data = m_write ? m_data : 0;
        made.index = index;
        made.reg = row->value;
        switch (row->action) {
            case kActionPe:
            case kActionVault:
                made.space = row->action == kActionPe ? kSpacePe : kSpaceVault;
                made.index = page;
                made.reg = offset / kRegisterBytes;
                break;
            case kActionCommand:
                made.space = kSpaceCommand;
                break;
            case kActionBitmap:
                made.space = kSpaceGroup;
                break;
            case kActionState:
                made.data = uint32_t{last.running} << kStateRunning |
                                     uint32_t{last.faulted} << kStateFaulted;
                break;
            case kActionStatus:
                made.data = m_pending;
                if (m_write) m_clear = m_data;
                break;
            case kActionEnable:
                made.data = m_enabled;
                if (m_write) m_enabled = m_data & ((1U << kInterrupts) - 1);
                break;
            default:
                made.data = row->value;
        }
    }
    made.addressed = made.space == kSpaceChip;
    return made;
}

void HostPort::edge(const VipChipOut& out, bool taken, const Message* arrived,
                    const Summary& last) {
    const uint32_t requests = uint32_t{m_aw.valid() && m_w.valid() && m_writes != kWritesInFlight} |
                              uint32_t{m_ar.valid() && m_reads != kReadsInFlight} << 1;
    const bool pop = m_decode_valid && m_outgoing.ready();
    const bool push = requests && (!m_decode_valid || pop);
    const uint32_t grant = push ? granted(requests, m_above) : 0;
    const bool write = grant & 1, read = grant & 2;
    if (push) m_above = above(grant);
    Message leaves = {};
    if (pop) leaves = message(last);
    m_outgoing.edge(pop ? &leaves : nullptr, taken);
    const uint32_t address = write ? m_aw.front() : m_ar.front();
    const Word word = m_w.front();
    const auto awaddr = static_cast<uint32_t>(out.control_awaddr);
    const auto araddr = static_cast<uint32_t>(out.control_araddr);
    const Word given = {static_cast<uint32_t>(out.control_wdata),
                        static_cast<uint32_t>(out.control_wstrb)};
    m_aw.edge(out.control_awvalid ? &awaddr : nullptr, write);
    m_w.edge(out.control_wvalid ? &given : nullptr, write);
    m_ar.edge(out.control_arvalid ? &araddr : nullptr, read);
    if (push) {
        m_decode_valid = true;
        m_write = write;
        m_address = address;
        m_data = word.data;
        m_all_bytes = word.strobe == 0xf;
    } else if (pop) {
        m_decode_valid = false;
    }
    m_writes += write;
    m_writes -= m_b.valid() && out.control_bready;
    m_reads += read;
    m_reads -= m_r.valid() && out.control_rready;
    const bool lost = arrived && !arrived->addressed && arrived->response == kResponseOkay;
    const uint32_t response = lost ? kResponseSlverr : arrived ? arrived->response : 0;
    const Answer answer = {arrived ? arrived->data : 0, response};
    m_b.edge(arrived && arrived->write ? &response : nullptr, out.control_bready);
    m_r.edge(arrived && !arrived->write ? &answer : nullptr, out.control_rready);
}

void HostPort::interrupts(const Summary& last) {
    const bool done = m_was_running && !last.running;
    m_pending = (m_pending & ~m_clear) | uint32_t{done} << kInterruptDone |
                uint32_t{last.fault} << kInterruptFault;
    m_clear = 0;
    m_was_running = last.running;
}

TileControl::TileControl(const RegisterMap& map, ChipTile& tile, uint32_t vault, uint32_t first_pe,
                         uint32_t instruction_words)
    : programs(tile.engines.size(), std::vector<uint32_t>(instruction_words)),
      parameters(tile.engines.size()),
      m_map(map),
      m_tile(tile),
      m_vault(vault),
      m_first_pe(first_pe) {}

uint32_t TileControl::state(uint32_t slot) const {
    const auto& engine = m_tile.engines[slot];
    if (!engine) return kEngineIdle;
    if (engine->running()) return kEngineRunning;
    return engine->cause() == kNone ? kEngineHalted : kEngineFaulted;
}

uint32_t TileControl::in_state(uint32_t wanted) const {
    uint32_t bits = 0;
    for (uint32_t slot = 0; slot < slots(); ++slot) bits |= uint32_t{state(slot) == wanted} << slot;
    return bits;
}

// The slots that `message` addresses; all if it addresses the vault.
uint32_t TileControl::addressed(const Message& message) const {
    const uint32_t all = (1U << slots()) - 1;
    uint32_t bits = 0;
    switch (message.space) {
        case kSpaceCommand:
            return message.reg == kCommandSelectAll ? all : m_selected & all;
        case kSpaceVault:
            return message.index == m_vault ? all : 0;
        case kSpacePe:
        case kSpaceGroup:
            for (uint32_t slot = 0; slot < slots(); ++slot) {
                const uint32_t number = m_first_pe + slot;
                const bool group = message.space == kSpaceGroup;
                bits |= uint32_t{message.index == (group ? number / kGroupPes : number)} << slot;
            }
            return bits;
        default:
            return 0;
    }
}

// Performs a write; returns whether an engine refuses it.
bool TileControl::perform(const Message& message, std::vector<Order>& orders) {
    const uint32_t chosen = addressed(message);
    bool refused = false;
    if (message.space == kSpaceCommand && message.reg == kCommandSelectAll)
        m_selected = message.data & 1 ? ~uint32_t{0} : 0;
    const RegisterRow* row =
        message.space == kSpacePe ? row_at(m_map, kBlockPe, message.reg * kRegisterBytes) : nullptr;
    for (uint32_t slot = 0; slot < slots(); ++slot) {
        if (!(chosen >> slot & 1)) continue;
        const uint32_t number = m_first_pe + slot;
        if (message.space == kSpaceGroup) {
            const bool selects = message.data >> number % kGroupPes & 1;
            m_selected = (m_selected & ~(1U << slot)) | uint32_t{selects} << slot;
        }
        if (row && row->value == kPageParametersLow) replace(parameters[slot], 0, message.data);
        if (row && row->value == kPageParametersHigh) replace(parameters[slot], 1, message.data);
        if (message.space != kSpaceCommand) continue;
        const bool free = state(slot) != kEngineRunning;
        switch (message.reg) {
            case kCommandParametersLow:
                replace(parameters[slot], 0, message.data);
                break;
            case kCommandParametersHigh:
                replace(parameters[slot], 1, message.data);
                break;
            case kCommandLoad:
                if (free) programs[slot][message.index] = message.data;
                refused = refused || !free;
                break;
            case kCommandStart:
                if (free) orders.push_back({number, false, message.data});
                refused = refused || !free;
                break;
            case kCommandStop:
                if (!free) orders.push_back({number, true, 0});
                break;
        }
    }
    return refused;
}

uint32_t TileControl::bitmap() const {
    uint32_t bits = 0;
    switch (m_captured.reg) {
        case kBitmapSelect: bits = m_selected; break;
        case kBitmapRunning: bits = in_state(kEngineRunning); break;
        case kBitmapHalted: bits = in_state(kEngineHalted); break;
        case kBitmapFaulted: bits = in_state(kEngineFaulted); break;
    }
    bits &= addressed(m_captured);
    uint32_t shown = 0;
    for (uint32_t slot = 0; slot < slots(); ++slot)
        shown |= (bits >> slot & 1) << (m_first_pe + slot) % kGroupPes;
    return shown;
}

uint32_t TileControl::low(uint64_t value) {
    m_high = static_cast<uint32_t>(value >> 32);
    return static_cast<uint32_t>(value);
}

// Reads a register.
uint32_t TileControl::read() {
    if (m_captured.space == kSpaceGroup) return bitmap();
    const bool vault = m_captured.space == kSpaceVault;
    const uint32_t offset = m_captured.reg * kRegisterBytes;
    const RegisterRow* row = row_at(m_map, vault ? kBlockVault : kBlockPe, offset);
    const uint32_t index = index_of(*row, offset);
    if (vault) {
        if (row->value == kPageCounterLow)
            return low(m_map.vault_counters && index < kVaultCounters
                           ? m_tile.counters()[index]
                           : 0);
        if (row->value == kPageNetworkLow)
            return low(index < kNetworkCounters ? m_tile.network_counters()[index] : 0);
        return m_high;
    }
    const uint32_t slot = m_captured.index - m_first_pe;
    const EngineResult result = m_tile.result(slot);
    switch (row->value) {
        case kPageParametersLow:
            return static_cast<uint32_t>(parameters[slot]);
        case kPageParametersHigh:
            return static_cast<uint32_t>(parameters[slot] >> 32);
        case kPageStatus:
            return state(slot) << kStatusState | uint32_t{result.memory_error} << kStatusMemoryError |
                   result.cause << kStatusCause | static_cast<uint32_t>(result.pc) << kStatusPc;
        case kPageCounterLow:
            return low(index < kCounters ? result.counters[index] : 0);
        default:
            return m_high;
    }
}

void TileControl::edge(const Message* taken, bool sent, std::vector<Order>& orders) {
    Message forwarded = {};
    bool pushes = false;
    if (m_busy) {
        const bool done = m_step == kReadCycles;
        if (m_step == kReadCycles - 1) m_read_data = read();
        forwarded = m_captured;
        forwarded.data |= m_read_data;
        forwarded.addressed = true;
        pushes = done;
        if (done && m_buffer.ready()) {
            m_busy = false;
        } else if (!done) {
            ++m_step;
        }
    } else if (taken) {
        const bool here = addressed(*taken);
        forwarded = *taken;
        forwarded.addressed = taken->addressed || here;
        if (taken->write) {
            if (perform(*taken, orders)) forwarded.response = kResponseSlverr;
        }
        if (here && !taken->write) {
            m_captured = *taken;
            m_busy = true;
            m_step = 0;
        } else {
            pushes = true;
        }
    }
    m_buffer.edge(pushes ? &forwarded : nullptr, sent);
}

}  // namespace vip::timed
