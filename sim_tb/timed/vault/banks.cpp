#include "banks.h"

#include <algorithm>

namespace vip::timed {

Banks::Banks(const VaultSizes& sizes)
    : m_sizes(sizes),
      m_all((uint64_t{2} << (sizes.banks - 1)) - 1),
      m_stays(sizes.page_policy == kClosed ? 0 : m_all),
      m_closes(sizes.page_policy == kOpen ? 0 : m_all),
      m_queues(sizes.banks),
      m_places(sizes.banks * sizes.command_queue) {
    const uint64_t longest =
        std::max({sizes.tras, sizes.trcd, sizes.trp, sizes.trfc, sizes.trtp, sizes.tccd,
                  sizes.write_to_precharge, sizes.write_to_read});
    m_horizon = std::bit_ceil(longest + 1) - 1;
    m_calendar.resize(m_horizon + 1);
    for (uint64_t& done : m_done.of) done = m_all;
    for (size_t place = 0; place < m_places.size(); ++place)
        m_places[place].next = static_cast<uint16_t>(place + 1);
}

// The bank's next command waits as long, at least.
void Banks::wait(Timer timer, int bank, uint64_t clocks) {
    uint64_t &until = m_queues[bank].until[timer], done = m_now + clocks;
    if (clocks < 2 || until > done) [[unlikely]] return;
    const uint64_t bit = uint64_t{1} << bank;
    // The timer has no other place in the calendar.
    calendar(until).of[timer] &= ~bit;
    calendar(done).of[timer] |= bit;
    m_done.of[timer] &= ~bit;
    until = done;
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
            m_open |= bit, m_opened |= bit, m_same_row |= bit, m_refreshing &= ~bit;
            queue.row = queue.head.row;
            wait(kOfRows, bank, m_sizes.tras);
            wait(kOfColumns, bank, m_sizes.trcd);
            break;
        case kPre:
            set(m_displaced, bit, waiting & (m_opened | m_stays) & ~urgent & bit);
            m_open &= ~bit;
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

// The next request is the head.
void Banks::fetch(int bank) {
    const uint64_t bit = uint64_t{1} << bank;
    Queue& queue = m_queues[bank];
    const uint16_t number = queue.oldest;
    Place& place = m_places[number];
    queue.head = place.request;
    queue.oldest = place.next;
    place.next = m_free;
    m_free = number;
    m_valid |= bit;
    set(m_writes, bit, queue.head.write);
    set(m_same_row, bit, queue.head.row == queue.row);
}

// The head leaves.
void Banks::leave(int bank) {
    const uint64_t bit = uint64_t{1} << bank;
    m_full &= ~bit;
    if (--m_queues[bank].level) {
        fetch(bank);
    } else {
        m_valid &= ~bit, m_holding &= ~bit;
    }
}

void Banks::push(const Request& request) {
    const uint64_t bit = uint64_t{1} << request.bank;
    Queue& queue = m_queues[request.bank];
    const uint16_t number = m_free;
    Place& place = m_places[number];
    m_free = place.next;
    place.request = request;
    // The head has no place.
    if (queue.level > (m_valid >> request.bank & 1)) {
        m_places[queue.newest].next = number;
    } else {
        queue.oldest = number;
    }
    queue.newest = number;
    ++queue.level;
    if (!(m_valid & bit)) m_fetching |= bit;
    m_holding |= bit;
    if (queue.level == m_sizes.command_queue) m_full |= bit;
}

uint64_t Banks::rest() const {
    if (m_holding | m_owing) return 0;
    if (m_closes & m_open) return 0;
    // A timer that is done is seen in the cycle after.
    const uint64_t done = m_done.of[kOfRows] & m_done.of[kOfColumns] & m_done.of[kOfReads];
    for (uint64_t cycles = 0; done != m_all && cycles < m_horizon; ++cycles) {
        const Timers& timers = m_calendar[(m_now + cycles + 1) & m_horizon];
        if (timers.of[kOfRows] | timers.of[kOfColumns] | timers.of[kOfReads]) return cycles;
    }
    return kEver;
}

void Banks::edge(int issued, DramKind kind, uint64_t due, const Request* input) {
    const uint64_t fetching = m_fetching;
    for (; due; due &= due - 1) owe(std::countr_zero(due), 1);
    if (issued >= 0) {
        perform(issued, kind);
        if (kind == kRead || kind == kWrite) leave(issued);
    }
    m_fetching = 0;
    if (fetching) fetch(std::countr_zero(fetching));
    if (input) push(*input);
    // What was done in this cycle counts from the next one on.
    Timers& today = calendar(++m_now);
    for (int timer = 0; timer < kTimers; ++timer) m_done.of[timer] |= today.of[timer];
    today = {};
}

}  // namespace vip::timed
