// Timing model of a tile of a chip (soc/chip/tile.py): engines, node, router, crossbar, controller.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../engine/pe_model.h"
#include "../vault/controller.h"
#include "../vault/crossbar.h"
#include "node.h"
#include "router.h"

namespace vip::timed {

// The ends of a tile's links, of this cycle and of the next one.
using LinkEnds = LinkEnd[2][kPorts];

constexpr uint32_t kMostEngines = 16;

class ChipTile {
  public:
    ChipTile(const NetworkSizes& sizes, const VaultSizes& vault, uint32_t number, uint32_t engines);

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
    Controller controller;
    LinkEnds ends = {};
    bool failed = false;  // a rule of the DRAM is broken

  private:
    const NetworkSizes& m_sizes;
    const uint32_t m_number;
    Router m_router;
    Crossbar m_crossbar;
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

    void network(ChipTile* const* tiles, uint8_t* const busy[2], uint32_t now);
};

}  // namespace vip::timed
