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
#include "../../../memory/model/dram.h"
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
    // One of `vault` and `axi` is null: the memory has the other back end.
    ChipTile(const ChipSizes& chip, const NetworkSizes& sizes, const VaultSizes* vault,
             const AxiSizes* axi, const LineSizes& lines, Summaries& summaries, uint32_t number);
    // Called once, when all tiles, by number, exist.
    void connect(const std::vector<std::unique_ptr<ChipTile>>& tiles);

    // What it reports, and what a neighbour does; null if there is no neighbour `number`.
    const Reported* reported() const { return &m_reported; }
    const Reported* neighbour(uint32_t number) const {
        return number < m_neighbours ? m_incoming[number].reported() : nullptr;
    }
    // Its next cycle.
    uint64_t time() const { return m_cycle; }
    // Does all cycles before `limit` in which it knows what arrives: at least one if no neighbour is
    // behind it. Returns whether it did any.
    bool advance(uint64_t limit);
    // Withdraws its promises, which launches and the host's accesses break. No tile relies on them
    // meanwhile.
    void forget();

    // Launches `engine`, which replaces the previous one.
    void launch(uint32_t slot, std::unique_ptr<PeModel> engine);
    uint32_t running() const { return m_running; }
    void stop(uint32_t slot);
    EngineResult result(uint32_t slot);

    std::vector<std::unique_ptr<PeModel>> engines;  // null: never launched
    Node node;
    // Counters of the vault's memory, and of its node.
    const uint64_t* counters() {
        wake();
        return m_axi ? m_axi->counters : m_memory->counters();
    }
    const uint64_t* network_counters() {
        node_rests();
        return node.counters;
    }
    // Lets the memory do all its cycles.
    void wake();
    // Also writes everything that has been on the DRAM's bus to its memory.
    void settle();
    // Also brings the scratchpads up to date, including words of responses taken early.
    void finish();
    HostLink* host = nullptr;  // null if the host does not access this tile
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
    // The ends of its links in this cycle and the next, by parity, and whether they carry anything.
    LinkEnd m_ends[2][kPorts] = {};
    bool m_carries[2] = {};
    // What comes from its neighbours, and at which port.
    Incoming m_incoming[kPorts - 1];
    uint32_t m_from[kPorts - 1];
    uint32_t m_neighbours = 0;
    uint64_t m_arrival = kEver;  // next known cycle in which something arrives
    uint64_t m_known = kEver;    // first cycle in which arrivals are unknown
    Reported m_reported;
    LinkQueue m_links[kPorts];
    Crossbar m_crossbar;
    std::optional<Memory> m_memory;
    std::optional<AxiBackend> m_axi;
    uint64_t m_axi_cycle = 0;  // its next one
    std::optional<LineBuffer> m_lines;
    Demux m_demuxes[kMostEngines + 1];
    Dram& m_dram;
    uint64_t m_cycle = 0;
    uint32_t m_running = 0;  // engines
    // Engines that offer a request, by its destination.
    uint32_t m_own = 0, m_remote = 0, m_lost = 0;
    // The cycle up to which an engine has advanced, and the one in which it must continue even without
    // a response.
    struct Turn {
        uint64_t since = 0, wake = 0;
    };
    Turn m_turns[kMostEngines];
    uint32_t m_awake = 0;     // engines that do every cycle
    uint64_t m_wake = kEver;  // the cycle in which the next of the others wakes
    uint32_t m_refusing = 0;  // engines whose demux answers a request to no vault
    // Whether the node has nothing to do until something arrives; cycles that it has yet to count.
    bool m_node_idle = true;
    uint64_t m_node_rests = 0;

    // Updates where the request of an engine goes, if it offers one.
    void offer(uint32_t slot);
    Demux::Source target(uint64_t address) const {
        return m_joined ? Demux::target(m_sizes, m_number, address) : Demux::kOwn;
    }
    // Passes a word to a resting engine in a cycle, if it then continues to rest.
    bool absorb(const ResponseBeat& word, uint64_t cycle);
    void absorb_rest(uint32_t slot);
    bool absorb_early(const ResponseBeat& word, uint64_t took);
    // The engine, after it has done the cycles before this one.
    PeModel& caught_up(uint32_t slot);
    // Wakes engines that are due.
    void find_awake();
    void turn(uint32_t slot, uint64_t since, uint64_t rest);
    void node_rests();

    void cycle();
    // The first cycle in which something can happen here if nothing arrives.
    uint64_t m_next = 0;
    uint64_t next() const;
    // Read what the neighbours report, and report to them.
    void look();
    void promise();
    void find_arrival();
    // The first cycle in which its own traffic can leave it, if its router is empty.
    uint64_t leaves() const;
    void report_states();
    // Does a cycle of the memory, if it may have a response or refuse a beat.
    Passage memory();
    Passage memory_in_step();
    void network();
};

}  // namespace vip::timed
