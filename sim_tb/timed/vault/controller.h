// Timing model of a vault's memory controller (memory/controller/).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "banks.h"
#include "../../../memory/model/dram.h"
#include "fifo.h"
#include "learner.h"
#include "../engine/load_store.h"

namespace vip::timed {

// Requests that wait for a place in their bank's queue (queue.py).
class TransactionQueue {
  public:
    explicit TransactionQueue(const VaultSizes& sizes);

    bool ready() const { return m_occupied != m_all; }
    // Entries that may leave, given the banks whose queues are full.
    uint64_t eligible(uint64_t full) const;
    uint64_t oldest_of(uint64_t candidates) const;
    uint64_t oldest() const { return m_oldest; }  // or 0
    uint64_t of_bank(uint32_t bank) const { return m_banks[bank].entries; }
    uint64_t occupied() const { return m_occupied; }
    uint32_t level() const { return m_level; }
    uint32_t room() const { return static_cast<uint32_t>(m_entries.size()) - m_level; }
    uint64_t row_hits() const { return m_row_hit; }
    uint64_t turnarounds() const { return m_turnaround; }
    const Request& entry(uint64_t one) const { return m_entries[std::countr_zero(one)].request; }
    // Since when it has been the oldest.
    uint64_t oldest_since() const { return m_oldest_since; }
    // Where to put a new request.
    Request& next() { return m_entries[std::countr_zero(~m_occupied)].request; }
    // Advances to the cycle after `now`: the entry that leaves, or 0; whether a request enters, for
    // which there is room.
    void edge(uint64_t now, uint64_t pick, bool comes);

  private:
    struct Entry {
        Request request;
        uint32_t order;    // of arrival
        uint8_t previous;  // entry that it is chained to
    };
    // A bank's entries, and row and direction of the last request that went to it.
    struct OfBank {
        uint64_t entries = 0;
        uint32_t row = 0;
        bool write = false;
    };

    uint64_t m_all, m_occupied = 0, m_chained = 0, m_newest = 0, m_row_hit = 0, m_turnaround = 0;
    uint64_t m_oldest = 0, m_oldest_since = 0;
    uint32_t m_level = 0, m_order = 0;
    std::vector<Entry> m_entries;
    std::vector<OfBank> m_banks;

    void leave(uint64_t pick);
    void enter(uint64_t target);
};

// The DRAM's port in one cycle.
struct DramSignals {
    bool valid;
    uint32_t kind, bank, row, column;
    uint64_t write_data;
    uint32_t write_strobe;
};

class Controller {
  public:
    // `sizes` must outlive it. With a DRAM it takes whole columns from it, instead of `read_data`.
    explicit Controller(const VaultSizes& sizes, Dram* dram = nullptr);

    // Does a cycle: the beat offered, or null, and its source; whether the response is accepted; what
    // the DRAM drives.
    void cycle(const RequestBeat* beat, uint32_t source, bool response_taken, uint64_t read_data);
    // What the DRAM sees in the next cycle, valid before `cycle`.
    const DramSignals& dram() const { return m_dram; }

    // The response offered in this cycle, valid before `cycle`.
    bool response_valid() const { return m_response_valid; }
    // Remains valid during the cycle in which it is accepted.
    const ResponseBeat& response() const { return *m_response; }
    // After `cycle`, with a DRAM: a remaining beat of a response that has begun; 0 is the one offered
    // in the next cycle.
    const ResponseBeat& following(uint32_t number) const {
        return number ? m_beats.at(number - 1) : *m_response;
    }
    // The first `count` of them were taken ahead of their cycles. No other response is offered in
    // these cycles.
    void skip(uint32_t count);
    // Whether the beat was accepted in the last `cycle`.
    bool accepted = false;

    uint64_t counters[kVaultCounters] = {};

    // See Banks; for a new controller.
    void keep_heads(const Controller& before) { m_banks.keep_heads(before.m_banks); }

    // With a DRAM, between cycles: writes everything that has been on the bus to its memory.
    void settle();

    // Lower bound of the first cycle in which a response may be offered if no request comes.
    uint64_t responds() const;
    // Lower bound of the number of requests that it accepts whatever happens.
    uint32_t room() const {
        return m_slot_valid ? std::min(m_queue.room(), m_slots_left + 1) : 0;
    }

    // For how many cycles from now nothing happens without a request; `pass` skips `count` of them.
    uint64_t rest() const { return m_rest_until - m_now; }
    void pass(uint64_t count) {
        counters[kVaultCycles] += count;
        m_banks.pass(count);
        m_now += count;
    }

  private:
    // A column in flight.
    struct Words {
        uint64_t start;  // cycle of its first word
        uint32_t tag, source, slot, first, last;
    };
    // Columns in flight in one direction.
    class Columns {
      public:
        explicit Columns(uint64_t depth) : m_words(depth) {}

        // Whether a word of the first one passes now.
        bool pass(uint64_t now) const { return m_next <= now; }
        const Words& front() const { return m_words.front(); }
        uint64_t next() const { return m_next; }
        void enter(uint64_t now, const Words& words) {
            if (!m_words.holds()) m_next = words.start;
            m_words.enter(now) = words;
        }
        void leave(uint64_t now) {
            m_words.leave(now);
            m_next = m_words.holds() ? m_words.front().start : kEver;
        }

      private:
        uint64_t m_next = kEver;
        SramQueue<Words> m_words;
    };
    struct Stored {
        uint64_t data;
        uint32_t strobe;
    };

    const VaultSizes& m_sizes;
    uint64_t m_now = 0;
    uint64_t m_rest_until = 0;  // until then, cycles without a request change nothing
    uint64_t m_busy_until = 0;  // with commands and their data

    // Rules of the bus: cycles from which commands are allowed, and cycle in which the burst ends.
    uint64_t m_reads = 0, m_writes = 0, m_activates = 0, m_burst = 0, m_windows[4] = {};
    bool m_bus_writes = false;
    uint32_t m_oldest_act = 0;

    // Request decoder.
    bool m_in_write = false, m_slot_valid = false;
    uint32_t m_write_first = 0, m_slot = 0, m_stamp = 0;

    // Scheduler.
    bool m_writing = false;
    uint32_t m_count = 0, m_occupancy = 0, m_reserved = 0;
    std::unique_ptr<Learner> m_learner;

    // Banks that a refresh blocks, and their number.
    uint64_t m_blocked = 0, m_count_blocked = 0;

    DramSignals m_dram = {};
    Dram* const m_device;
    Banks m_banks;
    TransactionQueue m_queue;
    Columns m_pending_reads, m_pending_writes;
    SramQueue<ResponseBeat> m_beats, m_acknowledgements;
    // Whether a response is offered, and whether more beats of it follow; the last beat offered.
    bool m_response_valid = false, m_in_response = false;
    const ResponseBeat* m_response = &m_beats.last();
    // Until then, beats have been taken early; whether a response ends then.
    uint64_t m_responds_from = 0;
    bool m_ends_before = false;
    std::vector<Stored> m_store;
    std::vector<uint64_t> m_free_slots;
    uint32_t m_slots_left;  // number of free slots
    uint32_t m_unwritten = 0;  // write requests that have not gone to the DRAM

    // Refreshes: the cycle of the next one, the first cycle of the interval, and each bank's cycle in
    // an interval.
    uint64_t m_due_at = 0, m_interval = 0;
    size_t m_next_due = 0;
    std::vector<uint32_t> m_due;

    uint64_t pick();
    uint64_t patience() const;
    int first_stamp(uint64_t candidates) const;
    int issue();
    [[gnu::cold]] int issue_learned();
    void command(int bank, DramKind kind);
    void transfer(const Request& head, bool write);
    void respond();
    void end_response();
    [[gnu::cold]] uint64_t refreshes_due();
    bool decode(const RequestBeat& beat, uint32_t source, bool refuses);
    void reserve_slot();
    void leave_slot(uint32_t slot);
    void read_word(uint64_t data);
    void read_column();
    void write_word();
    void write_column();
    void find_words(const Words& sent, Dram::Word (&words)[kColumnWords]) const;
    uint64_t rest_of_all() const;
};

}  // namespace vip::timed
