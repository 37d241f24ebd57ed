// Which thread does which tiles of a chip, and in which order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "tile.h"

namespace vip::timed {

class Sharing {
  public:
    Sharing(const NetworkSizes& network, uint64_t threads)
        : m_count(static_cast<uint32_t>(network.vaults)), m_threads(static_cast<uint32_t>(threads)) {
        const auto columns = static_cast<uint32_t>(network.columns);
        const uint32_t rows = m_count / columns;
        // Columns of tiles, or rows where these are longer: then few tiles of a thread are beside
        // tiles of another one.
        for (uint32_t turn = 0; turn < m_count; ++turn)
            m_order.push_back(columns < rows ? turn : turn % rows * columns + turn / rows);
        // Of these, one colour of a chessboard first: when a tile has its turn, all its neighbours have
        // gone on.
        for (uint32_t thread = 0; thread < m_threads; ++thread)
            std::stable_partition(m_order.begin() + first(thread), m_order.begin() + first(thread + 1),
                                  [&](uint32_t vault) {
                                      return (vault / columns + vault % columns) % 2 == 0;
                                  });
    }

    // A thread's turns are those from its first one up to the next thread's.
    uint32_t first(uint32_t thread) const { return thread * m_count / m_threads; }
    uint32_t vault(uint32_t turn) const { return m_order[turn]; }

    // When all tiles are there and joined, by number.
    void look_at(const std::vector<std::unique_ptr<ChipTile>>& tiles) {
        m_foreign.assign(m_count, {});
        for (uint32_t thread = 0; thread < m_threads; ++thread)
            for (uint32_t turn = first(thread); turn < first(thread + 1); ++turn)
                for (uint32_t number = 0; number < kPorts; ++number) {
                    const Reported* const found = tiles[m_order[turn]]->neighbour(number);
                    if (found && !is_own(tiles, thread, found)) m_foreign[turn].push_back(found);
                }
    }
    // Requests what tiles of other threads report to the tile after that of a turn.
    void prefetch(uint32_t thread, uint32_t turn) const {
        const uint32_t next = turn + 1 < first(thread + 1) ? turn + 1 : first(thread);
        for (const Reported* const reported : m_foreign[next]) __builtin_prefetch(reported);
    }

  private:
    const uint32_t m_count, m_threads;
    std::vector<uint32_t> m_order;  // numbers of tiles
    std::vector<std::vector<const Reported*>> m_foreign;

    bool is_own(const std::vector<std::unique_ptr<ChipTile>>& tiles, uint32_t thread,
                const Reported* reported) const {
        return std::any_of(m_order.begin() + first(thread), m_order.begin() + first(thread + 1),
                           [&](uint32_t vault) { return tiles[vault]->reported() == reported; });
    }
};

}  // namespace vip::timed
