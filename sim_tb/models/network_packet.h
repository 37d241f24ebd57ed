// Packets of the network's traffic, and their random numbers: see network_traffic.cpp.
#pragma once

#include <cstdint>

namespace vip {

inline uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

struct Random {
    uint64_t state = 0;

    uint64_t next() { return mix(state += 0x9e3779b97f4a7c15ULL); }
    bool chance(uint32_t of_65536) { return (next() & 0xffff) < of_65536; }
    uint32_t below(uint32_t limit) { return static_cast<uint32_t>((next() >> 32) % limit); }
};

struct Packet {
    uint32_t from = 0;
    uint32_t to = 0;
    uint32_t kind = 0;
    uint32_t sequence = 0;  // within source, destination and class
    uint32_t length = 0;
    bool error = false;
    uint64_t made = 0;
    uint64_t entered = 0;  // 0: waits at its source
};

struct Flit {
    uint64_t data = 0;
    bool last = false;
    bool error = false;
};

}  // namespace vip
