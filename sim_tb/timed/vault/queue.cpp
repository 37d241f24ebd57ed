#include <bit>

#include "controller.h"

namespace vip::timed {

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
