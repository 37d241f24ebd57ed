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
#include "../vault/line_buffer.h"
#include "host_link.h"
#include "node.h"
#include "router.h"

namespace vip::timed {

// The ends of a tile's links, of this cycle and of the next one.
using LinkEnds = LinkEnd[2][kPorts];

// What the model must know of a chip; see chip_sizes.py.
struct ChipSizes {
    uint64_t engines;  // of a vault
    uint64_t instruction_words, threads;
    uint64_t requesters;   // of a vault's memory: the engines, the host, and perhaps other vaults
    uint64_t joined;       // whether there are other vaults that engines reach
    uint64_t window_bits;  // of the addresses of an engine in its window; 64: it has none
};

constexpr uint32_t kMostEngines = 16;

class ChipTile {
  public:
    // Of `vault` and `axi` one is null: the memory has the other back end.
    ChipTile(const ChipSizes& chip, const NetworkSizes& sizes, const VaultSizes* vault,
             const AxiSizes* axi, const LineSizes& lines, uint32_t number);

    // A cycle, of which `now` is the parity. It reads ends of `now` of `tiles` and writes its own
    // of the next cycle, so tiles can go in any order, or at once. `busy`: of each tile, whether its
    // ends carry anything; those that don't are not looked at.
    void cycle(ChipTile* const* tiles, uint8_t* const busy[2], uint32_t now);

    // Begins with its launch, in place of the one before.
    void launch(uint32_t slot, std::unique_ptr<PeModel> engine);
    uint32_t running() const { return m_running; }
    void stop(uint32_t slot);
    EngineResult result(uint32_t slot);

    std::vector<std::unique_ptr<PeModel>> engines;  // null: never launched
    uint32_t launches = 0;
    Node node;
    // Of the vault's memory, and of its node.
    const uint64_t* counters() {
        wake();
        return m_axi ? m_axi->counters : m_controller->counters;
    }
    const uint64_t* network_counters() {
        wake();
        return node.counters;
    }
    // Its DRAM has seen all cycles.
    void wake();
    LinkEnds ends = {};
    HostLink* host = nullptr;  // or null: no access of the host comes here
    bool failed = false;  // a rule of the DRAM is broken

  private:
    const NetworkSizes& m_sizes;
    const uint32_t m_number;
    const bool m_joined;
    const uint64_t m_window_bits;
    Router m_router;
    Crossbar m_crossbar;
    std::optional<Controller> m_controller;
    std::optional<AxiBackend> m_axi;
    std::optional<LineBuffer> m_lines;
    std::vector<Demux> m_demuxes;
    Device& m_dram;
    uint64_t m_read_data = 0;
    uint64_t m_cycle = 0;
    uint32_t m_running = 0, m_requesting = 0;  // engines
    // Of an engine: the cycle up to which it has come, and that in which it has to go on without a
    // response.
    struct Turn {
        uint64_t since, wake;
    };
    std::vector<Turn> m_turns;

    // The engine has done the cycles before this one.
    PeModel& caught_up(uint32_t slot);

    // Cycles that it has left out as nothing happens in them, and how many more it may.
    uint64_t m_slept = 0, m_sleep = 0;

    bool arrivals(const uint8_t* busy) const;
    void fall_asleep(const uint8_t* const busy[2]);
    void dram(const DramSignals& signals);
    // A cycle of the memory.
    Passage memory();
    void network(ChipTile* const* tiles, uint8_t* const busy[2], uint32_t now);
};

}  // namespace vip::timed
