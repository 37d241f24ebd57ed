// Timing model of a vault's AXI back end (memory/axi/). The memory on its bus is that of cosimulation
// (sim_tb/models/axi_memory.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "../engine/load_store.h"
#include "fifo.h"
#include "vault.inc"
#include "vip_axi_memory.h"

namespace vip::timed {

constexpr uint64_t kMostLanes = 4;

class AxiBackend {
  public:
    // `memory`: index of the memory on its bus.
    AxiBackend(const AxiSizes& sizes, int32_t memory);

    // Does a cycle: the beat offered, or null, and its source; whether the response is accepted.
    void cycle(const RequestBeat* beat, uint32_t source, bool response_taken);
    // For how many cycles from now nothing happens without a request; `pass` skips `count` of them.
    uint64_t rest() const { return m_rests ? kEver : 0; }
    void pass(uint64_t count) { counters[kVaultCycles] += count; }

    // The response offered in this cycle, valid before `cycle`.
    bool response_valid() const { return m_output.valid(); }
    const ResponseBeat& response() const { return m_output.front(); }
    // Whether the beat was accepted in the last `cycle`.
    bool accepted = false;

    uint64_t counters[kVaultCounters] = {};

  private:
    struct Address {
        uint32_t id, length;
        uint64_t address;
    };
    struct Data {
        uint64_t words[kMostLanes];
        uint32_t strobe;
        bool last;
    };
    // What a request's response needs.
    struct Transfer {
        uint32_t tag, source, words, lane;
        bool write;
    };

    const AxiSizes m_sizes;
    const int32_t m_memory;
    VipAxiMemoryOut m_in = {};  // what the memory drives

    // Request path: channels, and the words of an incomplete beat.
    StreamBuffer<Address, 2> m_write_addresses, m_read_addresses;
    StreamBuffer<Data, 2> m_write_data;
    Data m_gathered = {};
    bool m_in_burst = false;

    // Scoreboard, with a bit per identifier.
    uint64_t m_pending = 0, m_writes = 0, m_unused;
    std::vector<uint64_t> m_columns;
    bool m_id_ready = false;
    uint32_t m_id = 0;

    // Response path.
    uint64_t m_errors = 0, m_done = 0, m_above = 0;
    std::vector<Transfer> m_transfers;
    std::vector<Data> m_read_data;     // by identifier and beat
    std::vector<uint32_t> m_arrived;   // beats, by identifier
    bool m_active = false;             // a transfer is being answered
    uint32_t m_active_id = 0, m_word = 0;
    Transfer m_transfer = {};
    bool m_formed = false;             // a beat for the output
    ResponseBeat m_beat = {};
    StreamBuffer<ResponseBeat, 3> m_output;

    uint32_t m_in_flight = 0;
    bool m_rests = false;  // cycles without a request change nothing

    bool conflicts(uint64_t column, bool write) const;
    bool request(const RequestBeat& beat, uint32_t source, bool sent[3]);
    void identifiers(bool allocates, bool frees);
    bool respond(bool taken);
    void arrive(const VipAxiMemoryOut& in);
};

}  // namespace vip::timed
