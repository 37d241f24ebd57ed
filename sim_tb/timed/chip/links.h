// The links from a tile to its neighbours in simulated time: each tile is in a cycle of its own.
//
// What leaves a tile in a cycle reaches its neighbour in the next one, and most links carry nothing.
// So a tile promises, for each link, up to which cycle its contents are known, and advances as far as
// its neighbours' promises allow. One tile writes a link and one reads it, perhaps on two threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "../vault/fifo.h"
#include "router.h"

namespace vip::timed {

// A tile promises at most this many cycles beyond its own; a link has at least as many entries.
constexpr uint64_t kMostPromised = 14;

// What a link carries in a cycle; there is no entry for a cycle in which it carries nothing.
struct Carried {
    uint64_t cycle;
    LinkEnd end;
};

class LinkQueue {
  public:
    Carried& operator[](uint32_t number) { return m_entries[number % kEntries]; }

  private:
    // The reader is at most kMostPromised cycles behind, so unread entries are not overwritten.
    static constexpr uint32_t kEntries = 16;
    Carried m_entries[kEntries];
};

// What a tile reports to others, in a cache line of its own.
struct alignas(64) Reported {
    // The tile's next cycle, and up to which cycle its links are known.
    std::atomic<uint64_t> promise{kAllHeld << kHeldPlace};
    // How many entries each link has had, modulo 256: one byte per port.
    std::atomic<uint64_t> entries{0};

    // A promise that links are known in the `cycles` after the last one, and those of `held` only in
    // the next one.
    static uint64_t promised(uint64_t now, uint32_t held, uint64_t cycles) {
        return now << kTimePlace | uint64_t{held} << kHeldPlace | cycles;
    }
    // The cycle of a promise, and the first one unknown to the neighbour at a port.
    static uint64_t time(uint64_t promise) { return promise >> kTimePlace; }
    static uint64_t known(uint64_t promise, uint32_t port) {
        const bool held = promise >> (kHeldPlace + port) & 1;
        return time(promise) + (held ? 1 : promise & kMostCycles);
    }
    static constexpr uint64_t kAllHeld = (1U << kPorts) - 1;

  private:
    static constexpr uint32_t kTimePlace = 16, kHeldPlace = 8;
    static constexpr uint64_t kMostCycles = 0xff;
};

// A tile's side of a link from a neighbour.
class Incoming {
  public:
    void connect(const Reported& reported, LinkQueue& queue, uint32_t port) {
        m_reported = &reported, m_queue = &queue, m_port = port;
    }
    // Reads what the neighbour has reported; returns the first unknown cycle.
    uint64_t look() {
        const uint64_t promise = m_reported->promise.load(std::memory_order_acquire);
        const uint64_t entries = m_reported->entries.load(std::memory_order_acquire);
        m_known = static_cast<uint8_t>(entries >> 8 * m_port);
        find();
        return Reported::known(promise, m_port);
    }
    const Reported* reported() const { return m_reported; }
    // The next known cycle in which something arrives; kEver if there is none.
    uint64_t next() const { return m_next; }
    // Takes what arrives in that cycle.
    const LinkEnd& take() {
        const LinkEnd& end = (*m_queue)[m_taken++].end;
        find();
        return end;
    }

  private:
    const Reported* m_reported = nullptr;
    LinkQueue* m_queue = nullptr;
    uint32_t m_port = 0;  // of the neighbour
    uint8_t m_taken = 0, m_known = 0;
    uint64_t m_next = kEver;

    void find() { m_next = m_taken == m_known ? kEver : (*m_queue)[m_taken].cycle; }
};

}  // namespace vip::timed
