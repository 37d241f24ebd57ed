// Timing model of the load history (pe/lsu/history.py, history_table.py): loads of columns that are
// still in the scratchpad become copies within it.
#pragma once

#include <cstdint>
#include <vector>

#include "arc.h"
#include "lowering.h"

namespace vip::timed {

// Bytes `first` to `last` of a memory column; `place` is where byte 0 goes, whether included or not.
struct ColumnBytes {
    uint64_t number;
    uint32_t place, first, last;
};

class HistoryTable {
  public:
    // `turn`: way to be replaced next; launches don't reset it.
    HistoryTable(uint32_t sets, uint32_t ways, uint32_t scratchpad_bytes, uint32_t turn)
        : m_sets(sets), m_ways(ways), m_mask(scratchpad_bytes - 1), m_turn(turn), m_entries(sets * ways) {}

    uint32_t turn() const { return m_turn; }

    uint32_t set_of(uint64_t column) const;
    // Finds the way of the set that has all of these bytes, and their place; false if none has.
    bool find(const ColumnBytes& wanted, uint32_t& way, uint32_t& place) const;
    // Records in entry `way` of the set or, if null, in a free entry, or else round robin.
    void record(const ColumnBytes& bytes, const uint32_t* way);
    void overwrite(const Range& range);
    void empty();

  private:
    struct Entry {
        bool valid = false;
        ColumnBytes bytes = {};
        uint32_t first_unit = 0, last_unit = 0;  // modulo the scratchpad; not wrapped
    };
    const uint32_t m_sets, m_ways, m_mask;
    uint32_t m_turn;
    std::vector<Entry> m_entries;  // by set

    Entry* set(uint64_t column) { return &m_entries[set_of(column) * m_ways]; }
};

class History {
  public:
    History(uint32_t sets, uint32_t ways, uint32_t scratchpad_bytes, uint32_t turn)
        : m_table(sets, ways, scratchpad_bytes, turn), m_mask(scratchpad_bytes - 1) {}

    bool rest() const { return m_state == State::kRest; }
    uint32_t turn() const { return m_table.turn(); }

    // Works out what it offers in this cycle: the load of a column, or a word for the scratchpad.
    // `settled`: everything before has been requested. `unread`: a store has yet to read its words.
    void look(bool settled, bool unread) {
        m_unread = unread;
        piece = m_state == State::kLoad;
        final = !m_left && (!m_now.lowered || (m_now.final && m_now.columns == 1));
        fill = m_state == State::kCopy && m_held && (!final || !m_now.lowered || settled);
    }
    bool piece = false, fill = false, final = false;
    uint32_t entry() const { return m_now.entry; }
    Command command() const;
    // The bytes of `fill`, and where they go.
    uint64_t word = 0;
    uint32_t target() const { return m_target; }
    uint32_t size() const { return m_size; }
    // Whether a word is read at the clock edge, depending on whether `fill` is taken.
    bool reads(bool filled) const {
        return m_state == State::kCopy && m_stores_done && m_left && (!m_held || filled);
    }
    uint32_t source() const { return m_source; }

    // A request with this tag leaves for the column of `load`, up to byte `end`; its response arrives.
    void asks(uint32_t tag, const Command& load, uint32_t end);
    void arrives(uint32_t tag) { m_arrived = &m_asked[tag]; }
    // A store is passed on.
    void stores() { m_stores_done = false; }
    void empty() { m_table.empty(); }
    // A dispatched instruction will write `range`. `overwrite` applies this in a cycle without `edge`.
    void overwrites(const Range& range) { m_overwritten = range; }
    void overwrite() {
        m_table.overwrite(m_overwritten);
        m_overwritten = {};
    }

    // Advances to the next cycle. `load`: a new load, or null. `taken`, `filled`: whether its piece or
    // word was accepted.
    void edge(const Command* load, bool taken, bool filled);

    uint64_t probes = 0, hits = 0, columns = 0;

  private:
    enum class State { kRest, kLook, kFound, kLoad, kCopy };

    HistoryTable m_table;
    const uint32_t m_mask;
    State m_state = State::kRest;
    Command m_now = {};
    bool m_stores_done = false, m_unread = false, m_changed = false;
    // State of a copy: what is left to read, and the word in the register.
    bool m_held = false;
    uint32_t m_source = 0, m_target = 0, m_left = 0, m_size = 0, m_way = 0;
    Range m_overwritten = {};
    ColumnBytes m_asked[64] = {};
    const ColumnBytes* m_arrived = nullptr;  // in this cycle, or null

    ColumnBytes wanted() const {
        return {.number = m_now.dram / kColumnBytes,
                .place = 0,
                .first = static_cast<uint32_t>(m_now.dram % kColumnBytes),
                .last = m_now.columns == 1 ? m_now.last : kColumnBytes - 1};
    }
    void advance();
    void found();
    bool copy(bool filled);
};

}  // namespace vip::timed
