// The links from a tile to its neighbours, in the model's time: each tile has a cycle of its own.
//
// What leaves a tile in a cycle reaches its neighbour in the next one, and most tiles have nothing on
// the way. So a tile promises for each link up to which cycle it is known, and goes on as far as its
// neighbours' promises reach. One tile writes a link, and one reads it; they may be on two threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "../vault/fifo.h"
#include "router.h"

namespace vip::timed {

// A tile promises at most so many cycles from its own; so many entries has a link, or more.
constexpr uint64_t kMostPromised = 14;

// What a link carries, in the cycles in which it carries something.
struct Carried {
    uint64_t cycle;
    LinkEnd end;
};

class LinkQueue {
  public:
    Carried& operator[](uint32_t number) { return m_entries[number % kEntries]; }

  private:
    // The reader is at most kMostPromised cycles behind: what it has not read is not overwritten.
    static constexpr uint32_t kEntries = 16;
    Carried m_entries[kEntries];
};

// What a tile reports to others. It has a line of the cache of its own.
struct alignas(64) Reported {
    // Of each port: the first cycle of which the neighbour does not know what the link carries, and
    // how many entries the link has had, modulo 256.
    std::atomic<uint64_t> known[kPorts] = {1, 1, 1, 1, 1};
    std::atomic<uint8_t> entries[kPorts] = {};
    // The cycle that the tile does next.
    std::atomic<uint64_t> time{0};
};

// A tile's side of a link from a neighbour.
class Incoming {
  public:
    void connect(const Reported& reported, LinkQueue& queue, uint32_t port) {
        m_reported = &reported, m_queue = &queue, m_port = port;
    }
    // What the neighbour has reported meanwhile; returns the first cycle that is not known.
    uint64_t look() {
        const uint64_t known = m_reported->known[m_port].load(std::memory_order_acquire);
        m_known = m_reported->entries[m_port].load(std::memory_order_acquire);
        find();
        return known;
    }
    // The cycle in which something arrives, of those known; kEver: in none of them.
    uint64_t next() const { return m_next; }
    const LinkEnd* arrived(uint64_t cycle) const {
        return m_next == cycle ? &(*m_queue)[m_taken].end : nullptr;
    }
    // It has been read.
    void take() {
        ++m_taken;
        find();
    }

  private:
    const Reported* m_reported = nullptr;
    LinkQueue* m_queue = nullptr;
    uint32_t m_port = 0;
    uint8_t m_taken = 0, m_known = 0;
    uint64_t m_next = kEver;

    void find() { m_next = m_taken == m_known ? kEver : (*m_queue)[m_taken].cycle; }
};

}  // namespace vip::timed
