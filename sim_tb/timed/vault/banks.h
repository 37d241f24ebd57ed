// Timing model of the banks of a vault: their queues, open rows and next commands
// (memory/controller/bank_machine.py).
//
// A mask has one bit per bank, so that all banks choose their commands at once. A calendar says which
// timers are done in each cycle.
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

    // Keeps the heads of `before`, the banks before a reset: heads come from an SRAM, without reset.
    void keep_heads(const Banks& before) {
        for (size_t bank = 0; bank < m_queues.size(); ++bank) {
            m_queues[bank].head = before.m_queues[bank].head;
            if (m_queues[bank].head.write) m_writes |= uint64_t{1} << bank;
        }
    }

    // Works out what happens in this cycle, given the commands that the rules of the bus allow.
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

    // Banks by what they want in this cycle, valid after `look`.
    uint64_t column = 0, row = 0, urgent = 0, waiting = 0, hit = 0;
    uint64_t writes() const { return m_writes; }  // of the heads
    // Banks in `hit` whose own timers allow the command.
    uint64_t ready() const { return hit & m_done.of[kOfColumns] & (m_writes | m_done.of[kOfReads]); }
    uint64_t refresh_blocked() const {
        return waiting & (urgent | (m_refreshing & ~m_done.of[kOfRows]));
    }
    DramKind kind(int bank) const {
        if (hit >> bank & 1) return m_writes >> bank & 1 ? kWrite : kRead;
        return m_open >> bank & 1 ? kPre : urgent >> bank & 1 ? kRefresh : kAct;
    }
    // For a bank without a request: the last one.
    const Request& head(int bank) const { return m_queues[bank].head; }
    uint64_t full() const { return m_full; }
    uint64_t holds() const { return m_holding; }
    // Events of a bank whose READ or WRITE is issued.
    uint32_t event(int bank) const {
        const uint64_t bit = uint64_t{1} << bank;
        if (!(m_opened & bit)) return kVaultRowHits;
        return m_displaced & bit ? kVaultRowConflicts : kVaultRowMisses;
    }

    // Advances to the next cycle: the bank whose command is issued, or -1, and the command; the banks
    // with a refresh due; the request that enters, or null. Its bank has room.
    void edge(int issued, DramKind kind, uint64_t due, const Request* input);
    // How many cycles without a request or a due refresh change nothing.
    uint64_t rest() const;
    // Skips such cycles.
    void pass(uint64_t count) { m_now += count; }

  private:
    enum Timer { kOfRows, kOfColumns, kOfReads, kTimers };
    struct Timers {
        uint64_t of[kTimers] = {};
    };
    // A linked list of requests, from the oldest to the newest. A request that enters an empty queue
    // becomes its head two cycles later. A queue fits a cache line.
    struct alignas(64) Queue {
        uint64_t until[kTimers] = {};
        Request head = {};
        uint32_t row = 0;  // last one opened
        uint16_t oldest = 0, newest = 0;
        uint16_t level = 0, debt = 0;
    };
    // A request in a queue, and the next place in the queue or in the free list.
    struct Place {
        Request request;
        uint16_t next;
    };

    const VaultSizes& m_sizes;
    const uint64_t m_all;
    // All banks or none: whether rows stay open after an access, or close without a request.
    const uint64_t m_stays, m_closes;
    uint64_t m_now = 0;
    Timers m_done;
    uint64_t m_valid = 0, m_holding = 0, m_full = 0, m_fetching = 0;  // of queues
    uint64_t m_writes = 0, m_same_row = 0;                            // of heads
    uint64_t m_open = 0, m_opened = 0, m_displaced = 0;
    uint64_t m_refreshing = 0;  // also after the end of the refresh
    uint64_t m_owing = 0, m_forced = 0;
    uint64_t m_horizon;              // of the calendar, minus one
    std::vector<Timers> m_calendar;  // by cycle: the timers that are done in it
    std::vector<Queue> m_queues;
    std::vector<Place> m_places;
    uint16_t m_free = 0;  // first place of the free list

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
