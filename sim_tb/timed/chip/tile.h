// Timing model of a tile of a chip (soc/chip/tile.py): engines, node, router, crossbar, controller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "../engine/pe_model.h"
#include "../vault/axi_backend.h"
#include "../vault/controller.h"
#include "../vault/crossbar.h"
#include "../vault/dram.h"
#include "../vault/line_buffer.h"
#include "host_link.h"
#include "links.h"
#include "memory.h"
#include "node.h"
#include "router.h"
#include "summaries.h"

namespace vip::timed {

constexpr uint32_t kMostEngines = 16;

class ChipTile {
  public:
    // Of `vault` and `axi` one is null: the memory has the other back end.
    ChipTile(const ChipSizes& chip, const NetworkSizes& sizes, const VaultSizes* vault,
             const AxiSizes* axi, const LineSizes& lines, Summaries& summaries, uint32_t number);
    // Once, when all tiles are there, by number.
    void connect(const std::vector<std::unique_ptr<ChipTile>>& tiles);

    // What it reports, and what its neighbour with a number does; null: there are not so many.
    const Reported* reported() const { return &m_reported; }
    const Reported* neighbour(uint32_t number) const {
        return number < m_neighbours ? m_incoming[number].reported() : nullptr;
    }
    // The cycle that it does next.
    uint64_t time() const { return m_cycle; }
    // Does all cycles before `limit` in which it knows what arrives: at least one if its neighbours
    // have come as far as it has. Returns whether it did any.
    bool advance(uint64_t limit);
    // Takes its promises back. Engines that are launched and the host's accesses break them, but no
    // tile goes on by a promise meanwhile.
    void forget();

    // Begins with its launch, instead of the one before.
    void launch(uint32_t slot, std::unique_ptr<PeModel> engine);
    uint32_t running() const { return m_running; }
    void stop(uint32_t slot);
    EngineResult result(uint32_t slot);

    std::vector<std::unique_ptr<PeModel>> engines;  // null: never launched
    Node node;
    // Of the vault's memory, and of its node.
    const uint64_t* counters() {
        wake();
        return m_axi ? m_axi->counters : m_memory->counters();
    }
    const uint64_t* network_counters() {
        node_rests();
        return node.counters;
    }
    // Its memory has done all cycles.
    void wake();
    // The DRAM's memory has what has been on its bus, too.
    void settle();
    // The scratchpads have what has been done, and words of responses that were given to them before
    // their cycles.
    void finish();
    HostLink* host = nullptr;  // or null: no access of the host comes here
    // Whether a rule of the DRAM is broken.
    bool failed() const { return m_dram.failed(); }

  private:
    const NetworkSizes& m_sizes;
    const uint32_t m_number;
    const bool m_joined;
    const uint64_t m_window_bits;
    Summaries& m_summaries;
    bool m_was_running = false;
    uint32_t m_was_faulted = 0;  // engines
    Router m_router;
    // The ends of its links in this cycle and the next one, by parity, and whether they carry
    // anything.
    LinkEnd m_ends[2][kPorts] = {};
    bool m_carries[2] = {};
    // What comes from its neighbours, and at which port.
    Incoming m_incoming[kPorts - 1];
    uint32_t m_from[kPorts - 1];
    uint32_t m_neighbours = 0;
    uint64_t m_arrival = kEver;  // the next cycle in which something arrives, of those before
    uint64_t m_known = kEver;    // this one
    Reported m_reported;
    LinkQueue m_links[kPorts];
    Crossbar m_crossbar;
    std::optional<Memory> m_memory;
    std::optional<AxiBackend> m_axi;
    uint64_t m_axi_cycle = 0;  // that it does next
    std::optional<LineBuffer> m_lines;
    Demux m_demuxes[kMostEngines + 1];
    Dram& m_dram;
    uint64_t m_cycle = 0;
    uint32_t m_running = 0;  // engines
    // Engines that offer a request, by where it goes.
    uint32_t m_own = 0, m_remote = 0, m_lost = 0;
    // Of an engine: the cycle up to which it has come, and that in which it has to go on without a
    // response.
    struct Turn {
        uint64_t since = 0, wake = 0;
    };
    Turn m_turns[kMostEngines];
    uint32_t m_awake = 0;     // engines that go on in each cycle
    uint64_t m_wake = kEver;  // the cycle in which the next one of the others does
    uint32_t m_refusing = 0;  // those whose demux answers a request to no vault
    // Whether the node has nothing to do until something comes; cycles that it does not know of.
    bool m_node_idle = true;
    uint64_t m_node_rests = 0;

    // Where the request of an engine goes, if it offers one.
    void offer(uint32_t slot);
    Demux::Source target(uint64_t address) const {
        return m_joined ? Demux::target(m_sizes, m_number, address) : Demux::kOwn;
    }
    // Gives an engine that rests a word in a cycle, if it goes on resting then.
    bool absorb(const ResponseBeat& word, uint64_t cycle);
    void absorb_rest(uint32_t slot);
    bool absorb_early(const ResponseBeat& word, uint64_t took);
    // The engine has done the cycles before this one.
    PeModel& caught_up(uint32_t slot);
    // Engines whose cycle has come are awake.
    void find_awake();
    void turn(uint32_t slot, uint64_t since, uint64_t rest);
    void node_rests();

    void cycle();
    // The first cycle in which something can happen here, of those before an arrival.
    uint64_t m_next = 0;
    uint64_t next() const;
    // What it knows of its neighbours, and reports to them.
    void look();
    void promise();
    void find_arrival();
    // The first cycle in which what it has or makes itself can leave it, if its router is empty.
    uint64_t leaves() const;
    void report_states();
    // A cycle of the memory, if it may have a response or a beat that it may refuse.
    Passage memory();
    Passage memory_in_step();
    void network();
};

}  // namespace vip::timed
