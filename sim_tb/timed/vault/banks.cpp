#include "banks.h"

#include <algorithm>

namespace vip::timed {

Banks::Banks(const VaultSizes& sizes)
    : m_sizes(sizes),
      m_all((uint64_t{2} << (sizes.banks - 1)) - 1),
      m_queues(sizes.banks),
      m_places(sizes.banks * sizes.command_queue) {
    const uint64_t longest =
        std::max({sizes.tras, sizes.trcd, sizes.trp, sizes.trfc, sizes.trtp, sizes.tccd,
                  sizes.write_to_precharge, sizes.write_to_read});
    m_horizon = std::bit_ceil(longest + 1) - 1;
    m_calendar.resize(m_horizon + 1);
    for (uint64_t& done : m_done) done = m_all;
    for (size_t place = 0; place < m_places.size(); ++place)
        m_places[place].next = static_cast<uint16_t>(place + 1);
}

// The bank's next command waits as long, at least.
void Banks::wait(Timer timer, int bank, uint64_t clocks) {
    const uint64_t until = m_now + clocks;
    if (clocks < 2 || m_queues[bank].until[timer] > until) [[unlikely]] return;
    m_queues[bank].until[timer] = until;
    m_done[timer] &= ~(uint64_t{1} << bank);
    calendar(until) |= uint64_t{1} << bank;
}

void Banks::owe(int bank, int refreshes) {
    const uint64_t bit = uint64_t{1} << bank;
    const uint16_t debt = m_queues[bank].debt += static_cast<uint16_t>(refreshes);
    set(m_owing, bit, debt);
    set(m_forced, bit, debt >= kForcedDebt);
}

void Banks::perform(int bank, DramKind kind) {
    const uint64_t bit = uint64_t{1} << bank;
    Queue& queue = m_queues[bank];
    switch (kind) {
        case kAct:
            m_open |= bit, m_opened |= bit, m_same_row |= bit;
            queue.row = queue.head.row;
            wait(kOfRows, bank, m_sizes.tras);
            wait(kOfColumns, bank, m_sizes.trcd);
            break;
        case kPre:
            m_open &= ~bit;
            set(m_displaced, bit, m_displacing & bit);
            wait(kOfRows, bank, m_sizes.trp);
            break;
        case kRefresh:
            m_refreshing |= bit;
            owe(bank, -1);
            wait(kOfRows, bank, m_sizes.trfc);
            break;
        case kRead:
            m_opened &= ~bit;
            wait(kOfRows, bank, m_sizes.trtp);
            wait(kOfColumns, bank, m_sizes.tccd);
            break;
        case kWrite:
            m_opened &= ~bit;
            wait(kOfRows, bank, m_sizes.write_to_precharge);
            wait(kOfColumns, bank, m_sizes.tccd);
            wait(kOfReads, bank, m_sizes.write_to_read);
            break;
    }
}

// The head leaves, or there is none: the next one takes its place.
void Banks::fetch(int bank) {
    const uint64_t bit = uint64_t{1} << bank;
    Queue& queue = m_queues[bank];
    m_fetching &= ~bit;
    set(m_valid, bit, queue.stored);
    if (!queue.stored) return;
    const uint16_t number = queue.oldest;
    Place& place = m_places[number];
    queue.head = place.request;
    queue.oldest = place.next;
    place.next = m_free;
    m_free = number;
    --queue.stored;
    set(m_writes, bit, queue.head.write);
    set(m_same_row, bit, queue.head.row == queue.row);
}

void Banks::push(const Request& request) {
    const uint64_t bit = uint64_t{1} << request.bank;
    Queue& queue = m_queues[request.bank];
    const uint16_t number = m_free;
    Place& place = m_places[number];
    m_free = place.next;
    place.request = request;
    if (queue.stored) {
        m_places[queue.newest].next = number;
    } else {
        queue.oldest = number;
    }
    queue.newest = number;
    ++queue.stored;
    if (!(m_valid & bit)) m_fetching |= bit;
    m_holding |= bit;
}

uint64_t Banks::rest() const {
    if (m_holding | m_owing | (m_refreshing & m_done[kOfRows])) return 0;
    if (m_sizes.page_policy != kOpen && m_open) return 0;
    // A timer that is done is seen in the cycle after.
    const uint64_t done = m_done[kOfRows] & m_done[kOfColumns] & m_done[kOfReads];
    for (uint64_t cycles = 0; done != m_all && cycles < m_horizon; ++cycles) {
        if (m_calendar[(m_now + cycles + 1) & m_horizon]) return cycles;
    }
    return kEver;
}

void Banks::edge(int issued, DramKind kind, uint64_t due, const Request* input) {
    const uint64_t fetching = m_fetching, granted = issued < 0 ? 0 : uint64_t{1} << issued;
    m_refreshing &= ~m_done[kOfRows];
    for (; due; due &= due - 1) owe(std::countr_zero(due), 1);
    if (granted) perform(issued, kind);
    for (uint64_t left = fetching | (granted & column); left; left &= left - 1)
        fetch(std::countr_zero(left));
    if (input) push(*input);
    for (uint64_t left = (granted & column) | (input ? uint64_t{1} << input->bank : 0); left;
         left &= left - 1) {
        const int bank = std::countr_zero(left);
        const uint64_t bit = uint64_t{1} << bank;
        const uint64_t level = m_queues[bank].stored + (m_valid >> bank & 1);
        set(m_holding, bit, level);
        set(m_full, bit, level == m_sizes.command_queue);
    }
    // What was done in this cycle counts from the next one on.
    ++m_now;
    uint64_t& today = calendar(m_now);
    for (uint64_t left = today; left; left &= left - 1) {
        const int bank = std::countr_zero(left);
        // It may have been put off, and then another timer of the bank is done, or none.
        for (int timer = 0; timer < kTimers; ++timer)
            m_done[timer] |= uint64_t{m_queues[bank].until[timer] == m_now} << bank;
    }
    today = 0;
}

}  // namespace vip::timed
