// Timing model of a vault's memory controller (memory/controller/).
#pragma once

#include <cstdint>
#include <vector>

#include "fifo.h"
#include "../engine/load_store.h"
#include "vault.inc"

namespace vip::timed {

// What the model must know of a vault's configuration; see vault_model.py.
struct VaultSizes {
    uint64_t banks, row_bits, column_bits, bank_bits, address_bits;
    uint64_t row_low, bank_low, column_low;  // of the fields of an address
    uint64_t page_policy, scheduler;
    uint64_t transaction_queue, command_queue, write_slots, stamp_bits, read_columns, write_depth;
    uint64_t tccd, tcl, tcwl, trcd, trp, tras, trtp, trfc, trefi, trrd, tfaw;
    uint64_t write_to_read, write_to_precharge;          // of a bank
    uint64_t turnaround_to_read, turnaround_to_write;    // of the data bus
};

// A request without its data.
struct Request {
    uint32_t bank, row, column;
    bool write;
    uint32_t tag, source;
    uint32_t first, last;  // word
    uint32_t slot, stamp, arrival;

    bool same_place(const Request& other) const {
        return bank == other.bank && row == other.row && column == other.column;
    }
};

struct ResponseBeat {
    uint64_t data;
    uint32_t tag, source;
    bool last, error;
};

// One bank: its queue, its open row and its next command (bank_machine.py).
class Bank {
  public:
    Bank(const VaultSizes& sizes) : m_sizes(sizes), m_queue(sizes.command_queue) {}

    bool ready() const { return m_queue.ready(); }
    const Request& head() const { return m_queue.front(); }
    void look(bool read_allowed, bool write_allowed, bool activate_allowed);
    // To the next cycle; `input`: a request for the queue, or null.
    void edge(bool grant, bool refresh_due, const Request* input);

    // Of this cycle, after `look`.
    bool column = false, row = false, urgent = false, waiting = false, hit = false;
    DramKind kind = kAct;
    // Events of this cycle, given a grant.
    bool event_hit(bool grant) const { return grant && column && !m_opened; }
    bool event_miss(bool grant) const { return grant && column && m_opened && !m_displaced; }
    bool event_conflict(bool grant) const { return grant && column && m_opened && m_displaced; }
    bool refresh_blocked() const {
        return waiting && (urgent || (m_refreshing && !m_row_timer.done()));
    }
    // After `edge`: whether, without a request or a due refresh, cycles change nothing and no
    // command is wanted. `look` and `edge` may be left out then.
    bool rests();

  private:
    const VaultSizes& m_sizes;
    Fifo<Request> m_queue;
    bool m_open = false, m_opened = false, m_displaced = false, m_refreshing = false;
    bool m_usable = false;
    uint32_t m_row = 0, m_debt = 0;
    CountDown m_row_timer, m_column_timer, m_read_timer;
};

// Requests that wait for a place in the queue of their bank (queue.py).
class TransactionQueue {
  public:
    explicit TransactionQueue(const VaultSizes& sizes);

    bool ready() const { return m_occupied != m_all; }
    // Entries that may go, given the banks with room.
    uint64_t eligible(uint64_t bank_ready) const;
    uint64_t oldest_of(uint64_t candidates) const;
    uint64_t of_bank(uint32_t bank) const;
    uint64_t occupied() const { return m_occupied; }
    uint64_t row_hits() const { return m_row_hit; }
    uint64_t turnarounds() const { return m_turnaround; }
    const Request& entry(uint64_t one) const;
    // To the next cycle: the entry that leaves, or 0, and the request that comes, or null.
    void edge(uint64_t pick, const Request* input);

  private:
    uint64_t m_all, m_occupied = 0, m_chained = 0, m_newest = 0, m_row_hit = 0, m_turnaround = 0;
    std::vector<Request> m_entries;
    std::vector<uint64_t> m_older;
    std::vector<uint32_t> m_previous;
    std::vector<uint32_t> m_rows;
    uint64_t m_writes = 0;
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
    explicit Controller(const VaultSizes& sizes);

    // A cycle: the beat that is offered, or null, with whose it is; whether a response is taken;
    // what the DRAM drives. `dram` gets what the controller drives.
    void cycle(const RequestBeat* beat, uint32_t source, bool response_taken, uint64_t read_data,
               DramSignals& dram);

    // Of this cycle, before `cycle`: the response that is offered.
    bool response_valid() const { return m_response_valid; }
    const ResponseBeat& response() const { return m_response; }
    // Of the cycle that `cycle` did: whether the beat was accepted.
    bool accepted = false;

    uint64_t counters[kVaultCounters] = {};

  private:
    struct Words {
        uint32_t tag, source, slot, first, last;
    };

    const VaultSizes m_sizes;
    uint64_t m_now = 0;

    // Request decoder.
    bool m_in_write = false, m_slot_valid = false;
    uint32_t m_write_first = 0, m_slot = 0, m_stamp = 0;
    std::vector<bool> m_free_slots;

    TransactionQueue m_queue;
    std::vector<Bank> m_banks;
    uint64_t m_active;  // banks that do not rest

    // Scheduler.
    uint32_t m_patience = 0, m_count = 0;
    bool m_writing = false;

    // Rules of the bus.
    CountDown m_reads, m_writes, m_burst, m_distance, m_windows[4];
    bool m_bus_writes = false;
    uint32_t m_oldest_act = 0, m_refresh_cycle = 0;
    std::vector<uint32_t> m_due;  // of each bank: cycle of its refresh in an interval
    size_t m_next_due = 0;

    // Read path: bit n, a READ was issued n + 1 cycles ago.
    Fifo<Words> m_pending_reads;
    Fifo<ResponseBeat> m_beats;
    uint64_t m_reads_in_flight = 0;
    uint32_t m_read_word = 0, m_reserved = 0;

    // Write path.
    Fifo<Words> m_pending_writes;
    struct Stored {
        uint64_t data;
        uint32_t strobe;
    };
    std::vector<Stored> m_store;
    uint64_t m_writes_in_flight = 0;
    uint32_t m_write_word = 0;
    bool m_wanted = false;
    Stored m_write_data = {};

    // Responses.
    Fifo<ResponseBeat> m_acknowledgements;
    bool m_response_valid = false, m_in_response = false;
    ResponseBeat m_response = {};

    DramSignals m_dram = {};
    uint32_t m_occupancy = 0;

    uint64_t pick();
    int first_stamp(uint64_t candidates) const;
    int issue();
    bool activate_allowed() const;
    void rules(int issued);
    void banks_edge(int issued, uint64_t picked);
    void count(int issued, const Request& head);
};

}  // namespace vip::timed
