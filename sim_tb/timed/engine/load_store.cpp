#include "load_store.h"

#include <bit>

namespace vip::timed {
namespace {

uint64_t replicated(uint64_t value, unsigned width) {
    for (unsigned bits = 8U << width; bits < 64; bits *= 2) {
        value &= (uint64_t{1} << bits) - 1;
        value |= value << bits;
    }
    return value;
}

uint64_t extended(uint64_t word, uint32_t first, unsigned width) {
    const unsigned unused = 64 - (8U << width);
    const uint64_t shifted = word >> (8 * (first & ~((1U << width) - 1)));
    return static_cast<uint64_t>(static_cast<int64_t>(shifted << unused) >> unused);
}

}  // namespace

uint64_t LoadStore::word_at(uint32_t address) const {
    uint64_t word = 0;
    address &= m_mask;
    if (address + kWordBytes <= m_mask + 1) {
        std::memcpy(&word, m_scratchpad + address, kWordBytes);
        return word;
    }
    for (uint32_t byte = 0; byte < kWordBytes; ++byte)
        word |= uint64_t{m_scratchpad[(address + byte) & m_mask]} << (8 * byte);
    return word;
}

uint32_t LoadStore::load_asks() const {
    if (!m_response_valid || m_target.is_register || m_target.store) return 0;
    if (!m_following) return m_target.rows;
    return SharedPorts::parities(m_behind, m_response.last ? m_target.last + 1 : kWordBytes);
}

uint32_t LoadStore::store_asks(bool request_ready) const {
    const bool space = !m_formed_valid | !m_request_valid | request_ready;
    const bool asks = m_working & m_now.store & !m_now.is_register & space & (m_opened | m_tag_ready);
    return asks ? SharedPorts::parities(m_now.scratchpad, kWordBytes) : 0;
}

void LoadStore::look(MemoryPort& port, bool writes_first) {
    m_still = !port.response && steady();
    if (m_still) {
        loaded = arrived = released = error = grown = m_loads = m_loads_register = m_freed = false;
        m_go = m_taken = m_done = false;
        port.response_ready = m_response_go = m_move = m_space = true;
        return;
    }
    // Response side.
    loaded = error = arrived = m_loads = m_loads_register = m_freed = false;
    m_response_go = port.response_ready = true;
    if (m_response_valid | m_result_valid) {
        m_loads_register = m_response_valid && m_target.is_register && !m_target.store;
        m_loads = m_response_valid && !m_target.is_register && !m_target.store;
        loaded = m_result_valid && !writes_first;
        loaded_index = m_result_index;
        loaded_value = m_result;
        m_response_go = m_loads ? load_ready : !m_loads_register || !m_result_valid || loaded;
        port.response_ready = !m_response_valid || m_response_go;
        m_freed = m_response_valid && m_response_go && m_response.last;
        error = m_response_valid && m_response.last && m_response.error;
        arrived = m_loads && m_response_go && m_response.last;
        arrived_entry = m_target.entry;
    }

    look_at_requests(port.request_ready);
    if (m_special) [[unlikely]] look_at_workspace(port);
}

void LoadStore::look_at_requests(bool request_ready) {
    m_move = !m_request_valid | request_ready;
    m_space = !m_formed_valid | m_move;
    m_go = m_working & m_space & (m_opened | m_tag_ready) & store_ready;
    m_taken = m_done = released = grown = false;
    if (!m_go) return;
    const bool final = m_now.columns == 1;
    m_end = final ? m_now.last : kColumnBytes - 1;
    m_words = (m_end / kWordBytes - m_now.dram / kWordBytes) % kColumnWords;
    m_last = !m_now.store | (m_words == 0);
    m_taken = !m_opened;
    m_done = m_last & final;
    released = m_done & m_now.store & !m_now.is_register;
    released_entry = m_now.entry;
    grown = m_taken & m_now.lowered && !(m_now.final && m_done);
    grown_entry = m_now.entry;
}

void LoadStore::look_at_workspace(const MemoryPort& port) {
    const bool settled = !m_working && !m_waits;
    m_lowering.look(settled && !m_cuts);
    m_fills = m_lowering.fill && !m_loads;
    if (m_cuts) {
        m_history->look(settled, (m_working && m_now.store) || (m_waits && m_waiting.store) ||
                                     (m_formed_valid && m_beats[m_sent ^ 1].write));
        m_copies = m_history->fill && !m_loads;
        m_fills &= !m_history->fill;
        if (m_copies && m_history->final) {
            arrived = true;
            arrived_entry = m_history->entry();
        }
    }
    if (m_fills && m_lowering.final) {
        arrived = true;
        arrived_entry = m_lowering.entry();
    }
    // During a declaration, responses belong to the descriptor.
    if (m_declaration.waits() && port.response && port.response->last && port.response->error)
        error = true;
}

void LoadStore::write_zeros() {
    for (uint32_t byte = 0; byte < m_lowering.part; ++byte)
        m_scratchpad[(m_lowering.scratchpad() + byte) & m_mask] = 0;
}

// Advances the history to the next cycle with a new transfer, or null. Returns what continues to the
// request side, or null; `piece` is storage for it.
const Command* LoadStore::follow_history(const Command* transfer, Command& piece) {
    History& history = *m_history;
    const bool copies = m_copies, taken = m_cuts && history.piece && !m_waits;
    m_copies = false;
    if (transfer && transfer->store) history.stores();
    if (copies)
        for (uint32_t byte = 0; byte < history.size(); ++byte)
            m_scratchpad[(history.target() + byte) & m_mask] =
                static_cast<uint8_t>(history.word >> (8 * byte));
    const bool reads = history.reads(copies);
    const uint32_t source = history.source();
    const Command* load = transfer && transfer->recorded ? transfer : nullptr;
    Command begun;
    if (load) {
        begun = *load;
        begun.scratchpad += static_cast<uint32_t>(begun.dram % kWordBytes);
        transfer = nullptr;
    }
    if (taken) {
        piece = history.command();
        transfer = &piece;
    }
    history.edge(load ? &begun : nullptr, taken, copies);
    if (reads) history.word = word_at(source);
    m_cuts = !history.rest();
    return transfer;
}

void LoadStore::write_loaded(const Target& target, const ResponseBeat& response) {
    const uint32_t address = m_following ? m_behind : target.scratchpad;
    const uint32_t first = m_following ? 0 : target.first;
    const uint32_t last = response.last ? target.last : kWordBytes - 1;
    const uint32_t place = address & m_mask;
    if (first == 0 && last == kWordBytes - 1 && place + kWordBytes <= m_mask + 1) {
        std::memcpy(m_scratchpad + place, &response.data, kWordBytes);
    } else {
        for (uint32_t byte = first; byte <= last; ++byte)
            m_scratchpad[(address + byte) & m_mask] =
                static_cast<uint8_t>(response.data >> (8 * byte));
    }
    m_behind = address + kWordBytes;
}

void LoadStore::latch(const ResponseBeat* response) {
    m_response_valid = response;
    m_unlike = false;
    if (!response) return;
    m_response = *response;
    m_target = m_targets[response->tag];
    m_unlike = (m_target.is_register && !m_target.store) || response->error;
}

// Chooses the next tag, one cycle ahead, among those that were free in this cycle.
void LoadStore::choose_tag(uint64_t free) {
    if (!free || m_tag_ready) return;
    m_tag_ready = true;
    m_tag = static_cast<uint32_t>(std::countr_zero(free));
    m_free &= ~(uint64_t{1} << m_tag);
}

// Completes a response word that is neither for a register nor an error.
void LoadStore::end_word(const Target& target, const ResponseBeat& response) {
    const bool loads = !target.store, last = response.last;
    if (loads) write_loaded(target, response);
    m_following = !last;
    arrived = loads & last;
    arrived_entry = target.entry;
    m_free |= uint64_t{last} << response.tag;
    m_outstanding -= last;
}

// Takes such a word from the response register.
void LoadStore::take_response() {
    loaded = error = arrived = false;
    if (m_response_valid) end_word(m_target, m_response);
}

void LoadStore::respond(const ResponseBeat* response) {
    const uint64_t free = m_free;
    released = grown = false;
    take_response();
    latch(response);
    choose_tag(free);
}

bool LoadStore::absorb(const ResponseBeat& response) {
    const Target& target = m_targets[response.tag];
    if (!target.store & target.is_register) return false;
    // If something waits for a tag, or for the end of all accesses, it must see this in its cycle.
    if (response.last && (response.error | !m_tag_ready | (m_outstanding == 1))) return false;
    end_word(target, response);
    return true;
}

bool LoadStore::absorb_early(const ResponseBeat& response) {
    const Target& target = m_targets[response.tag];
    if (m_response_valid | m_special | m_remembers | response.last | target.store |
        target.is_register)
        return false;
    write_loaded(target, response);
    m_following = true;
    return true;
}

void LoadStore::form() {
    const uint32_t place = m_now.dram % kWordBytes;
    const uint32_t last_place = m_last ? m_end % kWordBytes : kWordBytes - 1;
    RequestBeat& formed = m_beats[m_sent ^ 1];
    formed.address = m_now.dram - place;
    formed.tag = m_opened ? m_kept_tag : m_tag;
    formed.write = m_now.store;
    formed.words = m_words;
    formed.last = m_last;
    formed.strobe = m_now.store ? (0xffU << place) & (0xffU >> (kWordBytes - 1 - last_place)) : 0xff;
    formed.data = m_now.store && !m_now.is_register ? word_at(m_now.scratchpad) : 0;
    m_from_register = m_now.is_register;
    if (m_taken) {
        Target& target = m_targets[m_tag];
        target.store = m_now.store;
        target.is_register = m_now.is_register;
        target.width = m_now.width;
        target.first = static_cast<uint8_t>(place);
        target.last = m_end % kWordBytes;
        target.scratchpad = m_now.scratchpad;
        target.entry = static_cast<uint8_t>(m_now.entry);
        target.rows = static_cast<uint8_t>(SharedPorts::parities(
            m_now.scratchpad + place, (m_words ? kWordBytes - 1 : target.last) - place + 1));
        target.recorded = m_now.recorded;
        if (m_now.recorded) [[unlikely]] m_history->asks(m_tag, m_now, m_end);
        target.index = static_cast<uint8_t>(m_now.index);
    }
}

void LoadStore::advance() {
    m_opened = !m_last;
    m_kept_tag = m_beats[m_sent ^ 1].tag;
    if (m_done) return;
    const uint64_t step = m_now.store ? kWordBytes : kColumnBytes;
    const uint64_t next = (m_now.dram / step + 1) * step;
    m_now.scratchpad += static_cast<uint32_t>(next - m_now.dram / kWordBytes * kWordBytes);
    m_now.dram = next;
    if (m_last) --m_now.columns;
}

// Advances the request port, then forms the next beat for it.
void LoadStore::send() {
    if (m_move) {
        m_request_valid = m_formed_valid;
        m_sent ^= m_formed_valid;
        if (m_formed_valid & m_from_register && m_beats[m_sent].write) [[unlikely]]
            m_beats[m_sent].data = m_value, m_value_held = false;
    }
    if (m_space) m_formed_valid = m_go;
    if (m_go) {
        form();
        advance();
        m_outstanding += m_taken;
        m_tag_ready &= !m_taken;
    }
}

void LoadStore::proceed(MemoryPort& port) {
    const uint64_t free = m_free;
    port.response_ready = true;
    take_response();
    latch(port.response);
    look_at_requests(port.request_ready);
    send();
    choose_tag(free);
    if (m_done) {
        m_working = m_waits;
        if (m_waits) m_now = m_waiting;
        m_waits = false;
    }
    m_active = has_request();
}

void LoadStore::take(const Command& transfer, uint64_t value) {
    if (transfer.lowered) [[unlikely]] {
        m_lowering.edge(&transfer, false);
        m_special = true;
    } else if (m_working) {
        m_waiting = transfer;
        m_waits = true;
    } else {
        m_now = transfer;
        m_working = true;
    }
    if (transfer.store & transfer.is_register) [[unlikely]] {
        m_value_held = true;
        m_value = replicated(value, transfer.width);
    }
    m_active = true;
}

void LoadStore::edge(const MemoryPort& port, const Command* transfer, uint64_t value) {
    if (m_still && !transfer) return;
    // Response side; its tag becomes free.
    const bool declaring = m_special && !m_declaration.rest();
    const uint64_t free = m_free;
    if (m_response_valid | m_result_valid) {
        if (m_response_valid && m_response_go) {
            if (m_loads) {
                write_loaded(m_target, m_response);
                if (m_target.recorded && m_response.last && !m_response.error)
                    m_history->arrives(m_response.tag);
            }
            m_following = !m_response.last;
        }
        if (loaded) m_result_valid = false;
        if (m_loads_register && m_response_go) {
            m_result_valid = true;
            m_result_index = m_target.index;
            m_result = extended(m_response.data, m_target.first, m_target.width);
        }
        if (m_freed) {
            m_free |= uint64_t{1} << m_response.tag;
            --m_outstanding;
        }
    }
    if (port.response_ready) latch(declaring ? nullptr : port.response);

    send();
    choose_tag(free);

    // Loads from the window, and the workspace.
    const Command* load = transfer && transfer->lowered ? transfer : nullptr;
    Command piece;
    if (load) transfer = nullptr;
    if (m_special && !m_lowering.rest()) [[unlikely]] {
        const bool given = m_lowering.piece && !(m_history ? m_cuts : m_waits);
        if (given) {
            piece = m_lowering.command();
            transfer = &piece;
        }
        if (m_fills) write_zeros();
        m_lowering.edge(nullptr, given || m_fills);
        m_fills = false;
    } else if (load) [[unlikely]] {
        m_lowering.edge(load, false);
    }
    if (m_history) [[unlikely]]
        transfer = follow_history(transfer, piece);
    if (declaring) [[unlikely]] {
        if (m_declaration.done()) m_lowering.declare(m_declaration.workspace);
        const bool answered = m_declaration.waits() && port.response;
        m_declaration.edge(port.request_ready, answered ? &port.response->data : nullptr,
                           answered && port.response->last, answered && port.response->error);
    }

    if (m_special | (load != nullptr) | m_cuts) [[unlikely]]
        m_special = !m_lowering.rest() || !m_declaration.rest() || m_cuts;

    // Commands.
    if (!m_working || m_done) {
        m_working = m_waits || transfer;
        if (m_waits) {
            m_now = m_waiting;
        } else if (transfer) {
            m_now = *transfer;
        }
        m_waits = false;
    } else if (transfer) {
        m_waiting = *transfer;
        m_waits = true;
    }
    if (transfer && transfer->store && transfer->is_register) {
        m_value_held = true;
        m_value = replicated(value, transfer->width);
    }
    m_active = has_request();
}

}  // namespace vip::timed
