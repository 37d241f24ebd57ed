// The schedulers of a controller (memory/controller/): which request goes to its bank's queue, and which
// bank's command is issued.
#include <algorithm>
#include <bit>

#include "controller.h"

namespace vip::timed {

// The number of a request's requester, as the scheduler sees it.
uint32_t Controller::requester(const Request& request) const {
    const uint64_t tag = uint64_t{request.source} << m_sizes.port_tag_bits | request.tag;
    return static_cast<uint32_t>(tag >> (m_sizes.tag_bits - m_sizes.requester_bits));
}

// The requester with the fewest entries in the batch, the first one of several.
uint32_t Controller::fewest() const {
    if (!m_sizes.requester_bits) return 0;
    uint32_t counts[16] = {}, found = 0;
    for (uint64_t left = m_batch; left; left &= left - 1)
        ++counts[requester(m_queue.entry(left))];
    // One without entries is the last.
    const auto rank = [&](uint32_t number) { return counts[number] - 1; };
    for (uint32_t number = 1; number < 1U << m_sizes.requester_bits; ++number)
        if (rank(number) < rank(found)) found = number;
    return found;
}

// Of `candidates` those that par_bs.py prefers.
uint64_t Controller::in_batches(uint64_t candidates) {
    uint64_t favourite = candidates;
    if (m_sizes.requester_bits)
        for (uint64_t left = candidates; left; left &= left - 1)
            if (requester(m_queue.entry(left)) != m_fewest)
                favourite &= ~(left & -left);
    const uint64_t hits = m_queue.row_hits();
    uint64_t found = 0;
    for (const uint64_t entries : {candidates & m_batch, candidates})
        for (const uint64_t choice :
             {entries & hits & favourite, entries & hits, entries & favourite, entries})
            if (!found) found = choice;
    return found;
}

// The batch after this cycle, in which `picked` leaves the queue.
void Controller::form_batch(uint64_t picked) {
    m_fewest = fewest();
    const uint64_t rest = m_queue.occupied() & ~picked;
    m_batch = m_batch & rest ? m_batch & rest : rest;
}

// Cycles for which the oldest request has been that, at most as many as matter.
uint64_t Controller::patience() const {
    if (!m_queue.occupied()) return 0;
    return std::min<uint64_t>(m_now - m_queue.oldest_since(), kPatienceCycles);
}

// The entry that goes to its bank's queue, or 0.
uint64_t Controller::pick() {
    uint64_t candidates = m_queue.eligible(m_banks.full());
    if (!candidates) return 0;
    const uint64_t oldest = m_queue.oldest();
    if (m_sizes.scheduler == kInOrder) return oldest & candidates;
    if (patience() == kPatienceCycles)
        candidates &= oldest | ~m_queue.of_bank(m_queue.entry(oldest).bank);
    if (m_sizes.scheduler == kParBs) [[unlikely]]
        return m_queue.oldest_of(in_batches(candidates));
    const uint64_t hits = candidates & m_queue.row_hits();
    const uint64_t straight = hits & ~m_queue.turnarounds();
    return m_queue.oldest_of(straight ? straight : hits ? hits : candidates);
}

// Of `candidates`, one at least, the bank with the first stamp. As scheduler.py compares, in pairs
// of halves: stamps of banks that hold no request are old.
int Controller::first_stamp(uint64_t candidates) const {
    const uint64_t others = candidates & (candidates - 1);
    int a = std::countr_zero(candidates);
    if (!others) return a;
    int b = 63 - std::countl_zero(candidates);
    if (others & (others - 1)) [[unlikely]] {
        // The first bank of the upper half, of the smallest part of the tree that holds them all.
        const int middle = b & ~0 << (31 - std::countl_zero(static_cast<uint32_t>(a ^ b)));
        const uint64_t below = (uint64_t{1} << middle) - 1;
        a = first_stamp(candidates & below), b = first_stamp(candidates & ~below);
    }
    const uint32_t top = uint32_t{1} << (m_sizes.stamp_bits - 1);
    return (m_banks.head(b).stamp - m_banks.head(a).stamp) & top ? b : a;
}

// The bank whose command is issued, or -1, if any has one.
int Controller::issue() {
    const uint64_t column = m_banks.column, row = m_banks.row, urgent = m_banks.urgent;
    if (m_sizes.scheduler == kInOrder) [[unlikely]] {
        if (m_banks.waiting) {
            const int first = first_stamp(m_banks.waiting);
            if (column >> first & 1) return first;
        }
        const uint64_t rows = row & urgent ? row & urgent : row;
        return rows ? first_stamp(rows) : -1;
    }
    const uint64_t same = m_writing ? m_banks.writes() : ~m_banks.writes();
    uint64_t candidates = row & urgent;
    if (m_learner) [[unlikely]] {
        candidates = m_learner->candidates(m_banks, same);
    } else {
        const uint64_t others = m_sizes.scheduler == kFirstReady ? m_banks.hit : m_banks.ready();
        const bool change = m_count == kGroupBursts && others & ~same;
        const uint64_t classes[] = {change ? 0 : column & same, column & ~same, row};
        for (const uint64_t members : classes)
            if (!candidates) candidates = members & m_marked ? members & m_marked : members;
    }
    if (!candidates) return -1;
    const int found = first_stamp(candidates);
    if (column >> found & 1) {
        if (same >> found & 1) {
            if (m_count != kGroupBursts) ++m_count;
        } else {
            m_writing = !m_writing;
            m_count = 1;
        }
    }
    return found;
}

// To issue, with what the agent learns of it.
int Controller::issue_learned() {
    const Learner::View view = {.same = m_writing ? m_banks.writes() : ~m_banks.writes(),
                                .bursts = m_count,
                                .patience = static_cast<uint32_t>(patience()),
                                .queue = m_queue.level(),
                                .writing = m_writing};
    const int issued = m_banks.column | m_banks.row ? issue() : -1;
    m_learner->edge(m_banks, view, issued);
    return issued;
}

// What is left of the snapshot, or the next one.
void Controller::mark(int issued) {
    const uint64_t served = issued < 0 ? 0 : m_banks.column & (uint64_t{1} << issued);
    m_marked = m_marked ? m_marked & ~served : m_banks.waiting;
}

}  // namespace vip::timed
