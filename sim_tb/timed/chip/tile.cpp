#include "tile.h"

namespace vip::timed {
namespace {

const RequestBeat* offered(const std::unique_ptr<PeModel>& engine) {
    return engine && engine->requests() ? &engine->request() : nullptr;
}

}  // namespace

ChipTile::ChipTile(const NetworkSizes& sizes, const VaultSizes& vault, uint32_t number,
                   uint32_t count)
    : engines(count),
      node(sizes, number),
      controller(vault),
      m_sizes(sizes),
      m_number(number),
      m_router(sizes, number),
      // The engines, the host and the other vaults.
      m_crossbar(count + 2),
      m_demuxes(count) {}

void ChipTile::network(ChipTile* const* tiles, uint32_t now) {
    const LinkEnd* in[kPorts] = {};
    bool arrivals = false;
    for (uint32_t port = 0; port < m_sizes.ports; ++port) {
        node.counters[m_sizes.flit_counters[port]] += ends[now][port].valid;
        if (port == m_sizes.local) {
            in[port] = &node.to_router();
        } else {
            const uint32_t other = m_sizes.neighbours[m_number * m_sizes.ports + port];
            in[port] = &tiles[other]->ends[now][m_sizes.opposites[port]];
        }
        arrivals = arrivals || in[port]->valid || in[port]->credit;
    }
    if (arrivals || !m_router.idle()) {
        m_router.cycle(in, ends[1 - now]);
    } else {
        // Neighbours on other threads read it: what stays is not written.
        for (LinkEnd& end : ends[1 - now])
            if (end.valid || end.credit) end.valid = false, end.credit = 0;
    }
}

void ChipTile::cycle(ChipTile* const* tiles, uint32_t now) {
    const auto count = static_cast<uint32_t>(engines.size()), others = count + 1;
    uint64_t own = 0, remote = 0;
    Demux::Source targets[16] = {};
    for (uint32_t slot = 0; slot < count; ++slot) {
        const RequestBeat* beat = offered(engines[slot]);
        if (!beat) continue;
        targets[slot] = m_demuxes[slot].target(m_sizes, m_number, beat->address);
        own |= uint64_t{targets[slot] == Demux::kOwn} << slot;
        remote |= uint64_t{targets[slot] == Demux::kOthers} << slot;
    }
    own |= uint64_t{node.server.request() != nullptr} << others;
    const int passing = m_crossbar.selected(own), leaving = node.crossbar.selected(remote);
    const ResponseBeat* served = m_crossbar.response(others);
    const bool idle = node.idle() && !remote && !served && !ends[now][m_sizes.local].valid &&
                      !ends[now][m_sizes.local].credit;
    if (!idle) node.look(ends[now][m_sizes.local], served);

    Crossbar::Beat own_beat = {}, remote_beat = {};
    bool passes = false, leaves = false;
    uint64_t own_took = 0, remote_took = 0;
    const uint64_t answered = m_crossbar.answered() | node.crossbar.answered();
    for (uint32_t slot = 0; slot < count; ++slot) {
        if (!engines[slot] || !engines[slot]->running()) continue;
        Demux& demux = m_demuxes[slot];
        if (!(answered >> slot & 1) && !demux.refuses() && engines[slot]->pass()) continue;
        const RequestBeat* beat = offered(engines[slot]);
        MemoryPort port = {};
        const bool lost = beat && targets[slot] == Demux::kNone;
        if (lost) {
            port.request_ready = !demux.refuses();
        } else if (beat) {
            const int chosen = targets[slot] == Demux::kOwn ? passing : leaving;
            port.request_ready = static_cast<int>(slot) == chosen;
        }
        const ResponseBeat* response =
            demux.response(m_crossbar.response(slot), node.crossbar.response(slot));
        port.response_valid = response;
        if (response) {
            port.response_data = response->data;
            port.response_tag = response->tag;
            port.response_last = response->last;
            port.response_error = response->error;
        }
        engines[slot]->cycle(port);
        const bool taken = response && port.response_ready;
        if (taken && demux.selected() == Demux::kOwn) own_took |= uint64_t{1} << slot;
        if (taken && demux.selected() == Demux::kOthers) remote_took |= uint64_t{1} << slot;
        const bool fires = port.request_valid && port.request_ready;
        demux.edge(response, taken, lost && fires ? &port.request : nullptr);
        if (!fires || lost) continue;
        if (targets[slot] == Demux::kOwn) {
            own_beat = {port.request, slot};
            own_beat.beat.address &= (uint64_t{1} << m_sizes.address_bits) - 1;
            passes = true;
        } else {
            remote_beat = {port.request, slot};
            leaves = true;
        }
    }
    bool serves = false;
    if (passing == static_cast<int>(others) && node.server.request()) {
        own_beat = {*node.server.request(), others};
        passes = serves = true;
    }
    node.counters[kNetworkLocalRequests] += passes && !serves && own_beat.beat.last;
    if (served && node.takes_response()) own_took |= uint64_t{1} << others;

    const bool answers = controller.response_valid();
    const ResponseBeat response = controller.response();
    const Crossbar::Beat* asked = m_crossbar.request();
    DramSignals dram = {};
    controller.cycle(asked ? &asked->beat : nullptr, asked ? asked->source : 0,
                     answers && m_crossbar.takes(response), m_read_data, dram);
    const int32_t broken =
        vip_dram_cycle(static_cast<int32_t>(m_number), 0, dram.valid, dram.kind, dram.bank,
                       dram.row, dram.column, dram.write_data, dram.write_strobe, &m_read_data);
    failed = failed || broken;
    network(tiles, now);
    if (idle) {
        node.rest();
    } else {
        node.edge(leaves ? &remote_beat : nullptr, remote_took, serves);
    }
    m_crossbar.edge(passes ? &own_beat : nullptr, controller.accepted,
                    answers ? &response : nullptr, own_took);
}

}  // namespace vip::timed
