#include <bit>

#include "controller.h"

namespace vip::timed {

TransactionQueue::TransactionQueue(const VaultSizes& sizes)
    : m_all(~uint64_t{0} >> (64 - sizes.transaction_queue)),
      m_entries(sizes.transaction_queue),
      m_older(sizes.transaction_queue),
      m_previous(sizes.transaction_queue),
      m_rows(sizes.banks),
      m_of_bank(sizes.banks) {}

uint64_t TransactionQueue::eligible(uint64_t full) const {
    uint64_t found = m_occupied & ~m_chained;
    for (; full; full &= full - 1) found &= ~m_of_bank[std::countr_zero(full)];
    return found;
}

uint64_t TransactionQueue::oldest_of(uint64_t candidates) const {
    if (!(candidates & (candidates - 1))) return candidates;
    for (uint64_t left = candidates; left; left &= left - 1) {
        const int number = std::countr_zero(left);
        if (!(candidates & m_older[number])) return uint64_t{1} << number;
    }
    return 0;
}

const Request& TransactionQueue::entry(uint64_t one) const {
    return m_entries[std::countr_zero(one)];
}

void TransactionQueue::edge(uint64_t pick, const Request* input) {
    const bool push = input && ready();
    const uint64_t target = push ? ~m_occupied & (m_occupied + 1) : 0;
    const uint64_t remaining = m_occupied & ~pick;
    if (!push && !pick) return;
    const uint32_t picked = pick ? std::countr_zero(pick) : 0;
    if (pick) {
        const Request gone = m_entries[picked];
        for (uint64_t left = m_chained; left; left &= left - 1) {
            const int number = std::countr_zero(left);
            if (m_previous[number] == picked) m_chained &= ~(uint64_t{1} << number);
        }
        m_rows[gone.bank] = gone.row;
        m_writes = (m_writes & ~(uint64_t{1} << gone.bank)) | uint64_t{gone.write} << gone.bank;
        m_of_bank[gone.bank] &= ~pick;
        for (uint64_t left = m_of_bank[gone.bank]; left; left &= left - 1) {
            const int number = std::countr_zero(left);
            const Request& entry = m_entries[number];
            const uint64_t bit = uint64_t{1} << number;
            m_row_hit = entry.row == gone.row ? m_row_hit | bit : m_row_hit & ~bit;
            m_turnaround = entry.write != gone.write ? m_turnaround | bit : m_turnaround & ~bit;
        }
    }
    if (push) {
        uint64_t predecessor = 0;
        for (uint64_t left = m_occupied & m_newest & m_of_bank[input->bank]; left; left &= left - 1) {
            const int number = std::countr_zero(left);
            if (m_entries[number].same_place(*input)) predecessor |= uint64_t{1} << number;
        }
        const int number = std::countr_zero(target);
        for (uint64_t& older : m_older) older &= ~target;
        m_older[number] = remaining;
        m_entries[number] = *input;
        m_of_bank[input->bank] |= target;
        m_previous[number] = predecessor ? std::countr_zero(predecessor) : 0;
        m_chained &= ~target;
        if (predecessor & ~pick) m_chained |= target;
        m_newest = (m_newest & ~predecessor) | target;
        const bool hit = m_rows[input->bank] == input->row;
        const bool turns = (m_writes >> input->bank & 1) != input->write;
        m_row_hit = hit ? m_row_hit | target : m_row_hit & ~target;
        m_turnaround = turns ? m_turnaround | target : m_turnaround & ~target;
    }
    m_occupied = remaining | target;
}

}  // namespace vip::timed
