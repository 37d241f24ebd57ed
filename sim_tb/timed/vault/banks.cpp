// The banks of a vault's DRAM, and the requests that wait for them.
#include <algorithm>
#include <bit>

#include "banks.h"
#include "controller.h"

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

// Makes the bank's next command wait at least this long.
void Banks::wait(Timer timer, int bank, uint64_t clocks) {
    uint64_t &until = m_queues[bank].until[timer], done = m_now + clocks;
    if (clocks < 2 || until > done) [[unlikely]] return;
    const uint64_t bit = uint64_t{1} << bank;
    // Remove the timer's previous entry in the calendar.
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

// Makes the next request the head.
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

// Removes the head.
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
    // The head does not occupy a place.
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
    // The end of a timer is seen one cycle later.
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
    // Timers done in this cycle count from the next one on.
    Timers& today = calendar(++m_now);
    for (int timer = 0; timer < kTimers; ++timer) m_done.of[timer] |= today.of[timer];
    today = {};
}

TransactionQueue::TransactionQueue(const VaultSizes& sizes)
    : m_all(~uint64_t{0} >> (64 - sizes.transaction_queue)),
      m_entries(sizes.transaction_queue),
      m_banks(sizes.banks) {}

uint64_t TransactionQueue::eligible(uint64_t full) const {
    uint64_t found = m_occupied & ~m_chained;
    for (; full; full &= full - 1) found &= ~m_banks[std::countr_zero(full)].entries;
    return found;
}

uint64_t TransactionQueue::oldest_of(uint64_t candidates) const {
    if (!(candidates & (candidates - 1))) return candidates;
    int oldest = std::countr_zero(candidates);
    for (uint64_t left = candidates & (candidates - 1); left; left &= left - 1) {
        const int number = std::countr_zero(left);
        const uint32_t later = m_entries[number].order - m_entries[oldest].order;
        if (static_cast<int32_t>(later) < 0) oldest = number;
    }
    return uint64_t{1} << oldest;
}

void TransactionQueue::leave(uint64_t pick) {
    const auto picked = static_cast<uint32_t>(std::countr_zero(pick));
    const Request& gone = m_entries[picked].request;
    for (uint64_t left = m_chained; left; left &= left - 1) {
        const int number = std::countr_zero(left);
        if (m_entries[number].previous == picked) m_chained &= ~(uint64_t{1} << number);
    }
    OfBank& bank = m_banks[gone.bank];
    bank.row = gone.row;
    bank.write = gone.write;
    bank.entries &= ~pick;
    for (uint64_t left = bank.entries; left; left &= left - 1) {
        const int number = std::countr_zero(left);
        const uint64_t bit = uint64_t{1} << number;
        set(m_row_hit, bit, m_entries[number].request.row == gone.row);
        set(m_turnaround, bit, m_entries[number].request.write != gone.write);
    }
}

void TransactionQueue::enter(uint64_t target) {
    Entry& fresh = m_entries[std::countr_zero(target)];
    const Request& input = fresh.request;
    OfBank& bank = m_banks[input.bank];
    uint64_t predecessor = 0;
    for (uint64_t left = m_newest & bank.entries; left; left &= left - 1)
        if (entry(left).same_place(input)) predecessor |= left & -left;
    fresh.order = m_order++;
    bank.entries |= target;
    fresh.previous = static_cast<uint8_t>(predecessor ? std::countr_zero(predecessor) : 0);
    set(m_chained, target, predecessor);
    m_newest = (m_newest & ~predecessor) | target;
    set(m_row_hit, target, bank.row == input.row);
    set(m_turnaround, target, bank.write != input.write);
}

void TransactionQueue::edge(uint64_t now, uint64_t pick, bool comes) {
    const uint64_t target = comes ? ~m_occupied & (m_occupied + 1) : 0;
    if (!(target | pick)) return;
    if (pick) leave(pick);
    if (target) enter(target);
    m_occupied = (m_occupied & ~pick) | target;
    m_level += (target != 0) - (pick != 0);
    if (pick != m_oldest) return;
    m_oldest = oldest_of(m_occupied);
    m_oldest_since = now + 1;
}

}  // namespace vip::timed
