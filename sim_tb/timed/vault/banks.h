// Timing model of the banks of a vault: their queues, open rows and next commands
// (memory/controller/bank_machine.py).
//
// A mask has a bit a bank, so that all banks choose their commands at once. A timer is the cycle in
// which it is done; a calendar says which timers are done in a cycle.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "agent.h"
#include "fifo.h"
#include "vault.inc"

namespace vip::timed {

// A request without its data.
struct Request {
    uint32_t row, tag, stamp;
    uint16_t column, slot, arrival;
    uint8_t bank, source;
    uint8_t first, last;  // word
    bool write;

    bool same_place(const Request& other) const {
        return bank == other.bank && row == other.row && column == other.column;
    }
};

class Banks {
  public:
    explicit Banks(const VaultSizes& sizes);

    // The heads come from an SRAM, so a reset leaves them: `before` is what was before it.
    void keep_heads(const Banks& before) {
        for (size_t bank = 0; bank < m_queues.size(); ++bank) {
            m_queues[bank].head = before.m_queues[bank].head;
            if (m_queues[bank].head.write) m_writes |= uint64_t{1} << bank;
        }
    }

    // What happens in this cycle: the rules of the bus allow these commands.
    void look(bool read_allowed, bool write_allowed, bool activate_allowed) {
        const auto if_allowed = [](bool allowed, uint64_t banks) { return allowed ? banks : 0; };
        waiting = m_valid;
        const uint64_t row_hit = m_valid & m_open & m_same_row & (m_opened | m_stays);
        urgent = m_forced | (m_owing & ~row_hit);
        hit = row_hit & ~urgent;
        const uint64_t closes = urgent | ((m_valid | m_closes) & ~row_hit);
        const uint64_t opens = urgent | if_allowed(activate_allowed, m_valid);
        const uint64_t reads = if_allowed(read_allowed, ~m_writes & m_done.of[kOfReads]);
        const uint64_t writes = if_allowed(write_allowed, m_writes);
        column = hit & m_done.of[kOfColumns] & (reads | writes);
        row = m_done.of[kOfRows] & ((m_open & closes) | (~m_open & opens));
    }

    // Of this cycle, after `look`.
    uint64_t column = 0, row = 0, urgent = 0, waiting = 0, hit = 0;
    uint64_t writes() const { return m_writes; }  // of the heads
    // Of `hit`, those whose own timers allow the command.
    uint64_t ready() const { return hit & m_done.of[kOfColumns] & (m_writes | m_done.of[kOfReads]); }
    uint64_t refresh_blocked() const {
        return waiting & (urgent | (m_refreshing & ~m_done.of[kOfRows]));
    }
    DramKind kind(int bank) const {
        if (hit >> bank & 1) return m_writes >> bank & 1 ? kWrite : kRead;
        return m_open >> bank & 1 ? kPre : urgent >> bank & 1 ? kRefresh : kAct;
    }
    // Also of a bank without a request: the last one.
    const Request& head(int bank) const { return m_queues[bank].head; }
    uint64_t full() const { return m_full; }
    uint64_t holds() const { return m_holding; }
    // Events of a bank whose command, a READ or WRITE, is issued.
    uint32_t event(int bank) const {
        const uint64_t bit = uint64_t{1} << bank;
        if (!(m_opened & bit)) return kVaultRowHits;
        return m_displaced & bit ? kVaultRowConflicts : kVaultRowMisses;
    }

    // To the next cycle: the bank whose command is issued, or -1, and which one; those whose refresh
    // is due; the request that comes, or null: its bank has room.
    void edge(int issued, DramKind kind, uint64_t due, const Request* input);
    // How many cycles without a request or a due refresh change nothing.
    uint64_t rest() const;
    // Cycles in which they do.
    void pass(uint64_t count) { m_now += count; }

  private:
    enum Timer { kOfRows, kOfColumns, kOfReads, kTimers };
    struct Timers {
        uint64_t of[kTimers] = {};
    };
    // Places of requests, from the oldest to the newest. What enters the empty queue is its head
    // two cycles later. One is a line of the cache.
    struct alignas(64) Queue {
        uint64_t until[kTimers] = {};
        Request head = {};
        uint32_t row = 0;  // that was opened last
        uint16_t oldest = 0, newest = 0;
        uint16_t level = 0, debt = 0;
    };
    // A request in a queue, and the place of the next one, of the queue or of those that are free.
    struct Place {
        Request request;
        uint16_t next;
    };

    const VaultSizes& m_sizes;
    const uint64_t m_all;
    // All banks or none: those whose rows stay open after an access, or close without a request.
    const uint64_t m_stays, m_closes;
    uint64_t m_now = 0;
    Timers m_done;
    uint64_t m_valid = 0, m_holding = 0, m_full = 0, m_fetching = 0;  // of queues
    uint64_t m_writes = 0, m_same_row = 0;                            // of heads
    uint64_t m_open = 0, m_opened = 0, m_displaced = 0;
    uint64_t m_refreshing = 0;  // also those whose refresh is over
    uint64_t m_owing = 0, m_forced = 0;
    uint64_t m_horizon;              // of the calendar, less one
    std::vector<Timers> m_calendar;  // of each cycle: the timers that are done in it
    std::vector<Queue> m_queues;
    std::vector<Place> m_places;
    uint16_t m_free = 0;  // the first place that is

    Timers& calendar(uint64_t cycle) { return m_calendar[cycle & m_horizon]; }
    void wait(Timer timer, int bank, uint64_t clocks);
    void perform(int bank, DramKind kind);
    void owe(int bank, int refreshes);
    void fetch(int bank);
    void leave(int bank);
    void push(const Request& request);
};

inline void set(uint64_t& mask, uint64_t bit, bool value) {
    mask = value ? mask | bit : mask & ~bit;
}

}  // namespace vip::timed
