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

class ChipTile {
  public:
    ChipTile(const NetworkSizes& sizes, const VaultSizes& vault, uint32_t number, uint32_t engines);

    // A cycle, of which `now` is the parity. It reads ends of `now` of `tiles` and writes its own
    // of the next cycle, so tiles can go in any order, or at once.
    void cycle(ChipTile* const* tiles, uint32_t now);

    std::vector<std::unique_ptr<PeModel>> engines;  // null: never launched
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
    uint64_t m_read_data = 0;

    void network(ChipTile* const* tiles, uint32_t now);
};

}  // namespace vip::timed
