#include "history.h"

#include <bit>

namespace vip::timed {

// Maximum units that a column's bytes touch, minus one.
constexpr uint32_t kMoreUnits = 2;

// Folds all bits of the column's number by exclusive or.
uint32_t HistoryTable::set_of(uint64_t column) const {
    if (m_sets == 1) return 0;
    uint32_t found = 0;
    for (; column; column >>= std::countr_zero(m_sets)) found ^= column & (m_sets - 1);
    return found;
}

bool HistoryTable::find(const ColumnBytes& wanted, uint32_t& way, uint32_t& place) const {
    const Entry* entries = &m_entries[set_of(wanted.number) * m_ways];
    for (way = 0; way < m_ways; ++way) {
        const ColumnBytes& held = entries[way].bytes;
        place = held.place;
        if (entries[way].valid && held.number == wanted.number && held.first <= wanted.first &&
            wanted.last <= held.last)
            return true;
    }
    return false;
}

void HistoryTable::record(const ColumnBytes& bytes, const uint32_t* way) {
    Entry* entries = set(bytes.number);
    uint32_t chosen = 0;
    if (way) {
        chosen = *way;
    } else {
        while (chosen < m_ways && entries[chosen].valid) ++chosen;
        if (chosen == m_ways) chosen = m_turn;
    }
    m_turn = (m_turn + 1) % m_ways;
    const uint32_t first = (bytes.place + bytes.first) & m_mask;
    const uint32_t unit = first / kRangeBytes;
    const uint32_t more = (first + bytes.last - bytes.first) / kRangeBytes - unit;
    entries[chosen] = {.valid = true, .bytes = bytes, .first_unit = unit, .last_unit = unit + more};
}

void HistoryTable::overwrite(const Range& range) {
    if (!range.used) return;
    for (Entry& entry : m_entries)
        entry.valid &= !(entry.first_unit < range.end && entry.last_unit >= range.start);
}

void HistoryTable::empty() {
    for (Entry& entry : m_entries) entry.valid = false;
}

Command History::command() const {
    Command found = m_now;
    const ColumnBytes column = wanted();
    found.columns = 1;
    found.last = column.last;
    found.final = m_now.final && m_now.columns == 1;
    found.scratchpad = m_now.scratchpad - column.first % kWordBytes;
    return found;
}

void History::asks(uint32_t tag, const Command& load, uint32_t end) {
    const uint32_t first = load.dram % kColumnBytes;
    m_asked[tag] = {.number = load.dram / kColumnBytes,
                    .place = (load.scratchpad - first / kWordBytes * kWordBytes) & m_mask,
                    .first = first,
                    .last = end};
}

void History::advance() {
    const uint64_t next = (m_now.dram / kColumnBytes + 1) * kColumnBytes;
    m_now.scratchpad += static_cast<uint32_t>(next - m_now.dram);
    m_now.dram = next;
    m_state = --m_now.columns ? State::kLook : State::kRest;
}

void History::found() {
    if (m_changed || m_overwritten.used) {
        m_state = State::kLook;
        return;
    }
    const ColumnBytes column = wanted();
    uint32_t place = 0;
    m_state = m_table.find(column, m_way, place) ? State::kCopy : State::kLoad;
    m_source = place + column.first;
    m_target = m_now.scratchpad;
    m_left = column.last - column.first + 1;
    m_held = false;
}

// Performs a cycle of the copy; returns whether its last word is written.
bool History::copy(bool filled) {
    const bool done = filled && !m_left, read = reads(filled);
    const uint32_t unit = (m_source & m_mask) / kRangeBytes;
    if (m_left && m_overwritten.used && unit < m_overwritten.end &&
        unit + kMoreUnits >= m_overwritten.start)
        m_state = State::kLoad;
    if (filled) {
        m_held = false;
        m_target += kWordBytes;
    }
    if (read) {
        m_held = true;
        m_size = std::min(m_left, kWordBytes);
        m_source += kWordBytes;
        m_left -= m_size;
    }
    return done;
}

void History::edge(const Command* load, bool taken, bool filled) {
    const ColumnBytes column = wanted();
    const bool changed = m_arrived && m_table.set_of(m_arrived->number) == m_table.set_of(column.number);
    bool renewed = false;
    ColumnBytes copied = column;
    copied.place = (m_now.scratchpad - column.first) & m_mask;
    const bool read = !rest() && !m_unread;
    switch (m_state) {
        case State::kRest:
            if (!load) break;
            m_now = *load;
            m_state = State::kLook;
            break;
        case State::kLook:
            ++probes;
            m_state = State::kFound;
            break;
        case State::kFound:
            found();
            break;
        case State::kLoad:
            if (!taken) break;
            ++columns;
            advance();
            break;
        case State::kCopy:
            renewed = copy(filled);
            if (renewed) {
                ++hits;
                advance();
            }
            break;
    }
    m_changed = changed || renewed;
    if (read) m_stores_done = true;
    // Entries recorded in this cycle don't overlap what is overwritten.
    if (renewed) m_table.record(copied, &m_way);
    if (m_arrived) m_table.record(*m_arrived, nullptr);
    overwrite();
    m_arrived = nullptr;
}

}  // namespace vip::timed
