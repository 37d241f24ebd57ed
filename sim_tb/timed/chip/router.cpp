#include "router.h"

#include <bit>

namespace vip::timed {

Router::Router(const NetworkSizes& sizes, uint32_t vault)
    : m_sizes(sizes),
      m_routes(sizes.routes + vault * sizes.vaults),
      m_buffers(kPorts * kChannels * sizes.buffer_flits) {
    for (Output& output : m_outputs) output.credits = static_cast<uint32_t>(sizes.buffer_flits);
}

// noc/router/link_input.py
void Router::arrive(uint32_t port, const LinkEnd& link) {
    const uint32_t number = port * kChannels + link.channel;
    Input& input = m_inputs[number];
    if (!input.in_packet) {
        const bool local = port == m_sizes.local;
        const uint32_t kind =
            local ? link.channel : link.channel / static_cast<uint32_t>(m_sizes.virtual_channels);
        const uint32_t route = m_routes[link.flit.to], target = route / kMostVcs;
        const uint32_t channel = target == m_sizes.local
                                     ? kind
                                     : kind * static_cast<uint32_t>(m_sizes.virtual_channels) +
                                           route % kMostVcs;
        input.output = static_cast<uint8_t>(target * kChannels + channel);
    }
    place(number, input.level) = {link.flit, !input.in_packet, input.output};
    ++input.level;
    m_waiting |= 1U << number;
    input.in_packet = !link.flit.last;
}

uint32_t Router::held() const {
    uint32_t ports = 0;
    for (uint32_t left = m_waiting; left; left &= left - 1) {
        const uint32_t input = std::countr_zero(left);
        ports |= 1U << input / kChannels | 1U << head(input).output / kChannels;
    }
    return ports;
}

void Router::cycle(const LinkEnd* const in[kPorts], LinkEnd out[kPorts]) {
    const auto ports = static_cast<uint32_t>(m_sizes.ports);
    // Flits that may leave (output_channel.py, arbiter.py).
    uint32_t headers[kPorts * kChannels] = {}, contended = 0, eligible = 0;
    for (uint32_t left = m_waiting; left; left &= left - 1) {
        const uint32_t number = std::countr_zero(left);
        const Waiting& head = place(number, 0);
        const Output& output = m_outputs[head.output];
        if (head.is_header) {
            headers[head.output] |= 1U << number;
            contended |= 1U << head.output;
        } else if (output.credits) {
            eligible |= 1U << number;
        }
    }
    for (uint32_t left = contended; left; left &= left - 1) {
        const uint32_t number = std::countr_zero(left);
        const Output& output = m_outputs[number];
        const uint32_t first = headers[number] & output.preferred;
        if (output.credits && !output.allocated) eligible |= first ? first : headers[number];
    }
    // An input of each port, then a port for each output.
    uint32_t chosen[kPorts] = {}, requests[kPorts] = {};
    for (uint32_t port = 0; port < ports; ++port) {
        const uint32_t mine = eligible >> port * kChannels & ((1U << kChannels) - 1);
        if (!mine) continue;
        chosen[port] = port * kChannels + std::countr_zero(granted(mine, m_input_above[port]));
        requests[place(chosen[port], 0).output / kChannels] |= 1U << port;
    }
    uint32_t served[kPorts * kChannels] = {}, spent = 0, popped[kPorts] = {};
    m_left = false;
    for (uint32_t port = 0; port < ports; ++port) {
        LinkEnd& end = out[port];
        if (end.valid != (requests[port] != 0)) end.valid = requests[port] != 0;
        if (!requests[port]) continue;
        m_left = true;
        const uint32_t grant = granted(requests[port], m_output_above[port]);
        const uint32_t source = std::countr_zero(grant), number = chosen[source];
        const Waiting& head = place(number, 0);
        m_output_above[port] = above(grant);
        m_input_above[source] = above(1U << number % kChannels);
        end.channel = head.output % kChannels;
        end.flit = head.flit;
        popped[source] = 1U << number % kChannels;
        spent |= 1U << head.output;
        if (head.is_header) served[head.output] = 1U << number;
        m_outputs[head.output].allocated = !head.flit.last;
        Input& input = m_inputs[number];
        input.first = (input.first + 1) % m_sizes.buffer_flits;
        if (!--input.level) m_waiting &= ~(1U << number);
    }
    for (uint32_t left = contended; left; left &= left - 1) {
        const uint32_t number = std::countr_zero(left);
        Output& output = m_outputs[number];
        const uint32_t others = headers[number] & ~output.preferred;
        const uint32_t following = others & above(output.preferred);
        if (headers[number] & output.preferred & ~served[number] || !others) continue;
        output.preferred = following ? following & -following : others & -others;
    }
    for (uint32_t port = 0; port < ports; ++port) {
        const LinkEnd& link = *in[port];
        for (uint32_t left = link.credit; left; left &= left - 1)
            ++m_outputs[port * kChannels + std::countr_zero(left)].credits;
        if (out[port].credit != popped[port]) out[port].credit = static_cast<uint8_t>(popped[port]);
        m_left = m_left || popped[port];
        if (link.valid) arrive(port, link);
    }
    for (; spent; spent &= spent - 1) --m_outputs[std::countr_zero(spent)].credits;
}

}  // namespace vip::timed
