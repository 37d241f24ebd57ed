// Timing model of a router (noc/router/).
//
// A mask has one bit per virtual channel of an input: kChannels per port, with the ports in the order
// of their names. So all arbiters use the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "network.inc"

namespace vip::timed {

constexpr uint32_t kPorts = 5;     // of a router: four links and the vault's
constexpr uint32_t kChannels = 4;  // maximum of a link
constexpr uint32_t kClasses = 2;   // requests, responses
constexpr uint32_t kMostVcs = kChannels / kClasses;

// A flit: a header, or 64 bits of its packet (noc/packet.py).
struct Flit {
    uint64_t data;
    uint64_t word;  // in a header: number of the first word in the vault
    uint32_t tag;
    uint8_t to, from, requester;
    uint8_t words;  // minus one
    bool write, masked, last, error;
};

// What a link carries in a cycle, and the credits in the opposite direction (noc/ports.py).
struct LinkEnd {
    bool valid;
    uint8_t channel;
    uint8_t credit;  // by channel
    Flit flit;
};

// A link that carries nothing.
constexpr LinkEnd kNoLink = {};

class Router {
  public:
    Router(const NetworkSizes& sizes, uint32_t vault);

    // Does a cycle: `in` has what arrives at each port; `out` becomes what leaves in the next cycle.
    void cycle(const LinkEnd* const in[kPorts], LinkEnd out[kPorts]);
    // Ports at which something may leave in the next cycle if nothing arrives: outputs of waiting
    // flits, and their inputs, which return credits.
    uint32_t held() const;
    // Whether nothing waits or leaves, so that a cycle without arrivals changes nothing.
    bool idle() const { return !m_waiting && !m_left; }
    // Whether an input has a flit.
    bool waits() const { return m_waiting; }
    // Whether the last cycle left nothing in `out`.
    bool quiet() const { return !m_left; }

  private:
    // An output: a virtual channel of a class at a port.
    struct Output {
        uint32_t preferred = 0, credits;  // preferred: the packet arbiter's preferred input
        bool allocated = false;
    };
    struct Waiting {
        Flit flit;
        bool is_header;
        uint8_t output;
    };
    struct Input {
        uint32_t first = 0, level = 0;
        bool in_packet = false;
        uint8_t output = 0;
    };

    const NetworkSizes m_sizes;
    const uint8_t* const m_routes;
    std::vector<Waiting> m_buffers;  // by input
    Input m_inputs[kPorts * kChannels];
    Output m_outputs[kPorts * kChannels];
    uint32_t m_input_above[kPorts] = {}, m_output_above[kPorts] = {};
    uint32_t m_waiting = 0;  // inputs with a flit
    bool m_left = false;     // something is in `out`

    const Waiting& head(uint32_t input) const {
        return m_buffers[input * m_sizes.buffer_flits + m_inputs[input].first];
    }
    Waiting& place(uint32_t input, uint32_t number) {
        const uint64_t depth = m_sizes.buffer_flits;
        return m_buffers[input * depth + (m_inputs[input].first + number) % depth];
    }
    void arrive(uint32_t port, const LinkEnd& link);
};

// Round robin (hdl/round_robin.py): the first of `requests` above the one served last.
inline uint32_t granted(uint32_t requests, uint32_t above) {
    const uint32_t high = requests & above, from = high ? high : requests;
    return from & -from;
}
inline uint32_t above(uint32_t grant) { return ~(grant | (grant - 1)); }

}  // namespace vip::timed
