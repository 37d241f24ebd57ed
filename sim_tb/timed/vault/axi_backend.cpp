#include "axi_backend.h"

#include <bit>
#include <cstring>

namespace vip::timed {
namespace {

constexpr uint32_t kErrors = 2;  // SLVERR, DECERR: responses from it on

enum Channel { kWriteAddress, kReadAddress, kWriteData };

uint64_t bit(uint32_t number) { return uint64_t{1} << number; }

}  // namespace

AxiBackend::AxiBackend(const AxiSizes& sizes, int32_t memory)
    : m_sizes(sizes),
      m_memory(memory),
      m_unused(~uint64_t{0} >> (64 - sizes.outstanding)),
      m_columns(sizes.outstanding),
      m_transfers(sizes.outstanding),
      m_read_data(sizes.outstanding * sizes.beats),
      m_arrived(sizes.outstanding) {
    m_in.awready = m_in.arready = true;
}

// Whether an access must wait for another one to its column.
bool AxiBackend::conflicts(uint64_t column, bool write) const {
    for (uint64_t left = write ? m_pending : m_pending & m_writes; left; left &= left - 1)
        if (m_columns[std::countr_zero(left)] == column) return true;
    return false;
}

// Handles a beat of a request; returns whether the request begins. `sent`: channels whose output is
// accepted in this cycle.
bool AxiBackend::request(const RequestBeat& beat, uint32_t source, bool sent[3]) {
    const uint64_t word = beat.address / kWordBytes, column = beat.address / kColumnBytes;
    const auto lane = static_cast<uint32_t>(word % m_sizes.lanes);
    const bool full = beat.last || lane == m_sizes.lanes - 1;
    const bool begins = !m_in_burst;
    bool accept = !begins || (m_id_ready && !conflicts(column, beat.write));
    if (beat.write) {
        accept = accept && (!full || m_write_data.ready());
        accept = accept && (!begins || m_write_addresses.ready());
    } else {
        accept = accept && m_read_addresses.ready();
    }
    accepted = accept;
    if (!accept) return false;
    if (begins) {
        const uint64_t beat_bytes = m_sizes.lanes * kWordBytes;
        const Address address = {.id = m_id,
                                 .length = (lane + beat.words) >> m_sizes.lane_bits,
                                 .address = beat.address / beat_bytes * beat_bytes};
        const Channel channel = beat.write ? kWriteAddress : kReadAddress;
        (beat.write ? m_write_addresses : m_read_addresses).edge(&address, sent[channel]);
        sent[channel] = false;
        m_transfers[m_id] = {beat.tag, source, beat.words, lane, beat.write};
        m_errors &= ~bit(m_id);
        m_pending |= bit(m_id);
        m_writes = beat.write ? m_writes | bit(m_id) : m_writes & ~bit(m_id);
        m_columns[m_id] = column;
    }
    if (!beat.write) return begins;
    m_in_burst = !beat.last;
    m_gathered.words[lane] = beat.data;
    m_gathered.strobe &= ~(0xffU << 8 * lane);
    m_gathered.strobe |= beat.strobe << 8 * lane;
    m_gathered.last = beat.last;
    if (full) {
        m_write_data.edge(&m_gathered, sent[kWriteData]);
        sent[kWriteData] = false;
        m_gathered.strobe = 0;
    }
    return begins;
}

// Selects the next identifier, one cycle ahead, among those that were free in this cycle.
void AxiBackend::identifiers(bool allocates, bool frees) {
    const uint64_t unused = m_unused;
    const bool selects = unused && (!m_id_ready || allocates);
    if (allocates) m_id_ready = false;
    if (selects) {
        m_id_ready = true;
        m_id = static_cast<uint32_t>(std::countr_zero(unused));
        m_unused &= unused - 1;
    }
    if (frees) m_unused |= bit(m_active_id);
}

// Continues the response; returns whether the last beat of its transfer is read.
bool AxiBackend::respond(bool taken) {
    const bool step = m_active && m_output.level() + m_formed < 3;
    const bool last = m_transfer.write || m_word == m_transfer.words;
    m_output.edge(m_formed ? &m_beat : nullptr, taken);
    m_formed = step;
    if (!step) return false;
    const uint32_t position = m_transfer.lane + m_word;
    const uint64_t place = (position >> m_sizes.lane_bits) % m_sizes.beats;
    m_beat = {.data = m_read_data[m_active_id * m_sizes.beats + place]
                          .words[position % m_sizes.lanes],
              .tag = m_transfer.tag,
              .source = m_transfer.source,
              .last = last,
              .error = last && m_errors & bit(m_active_id)};
    m_word = last ? 0 : m_word + 1;
    return last;
}

// Takes the memory's responses.
void AxiBackend::arrive(const VipAxiMemoryOut& in) {
    if (in.rvalid) {
        Data& data = m_read_data[in.rid * m_sizes.beats + m_arrived[in.rid]];
        std::memcpy(data.words, in.rdata, m_sizes.lanes * kWordBytes);
        m_arrived[in.rid] = in.rlast ? 0 : m_arrived[in.rid] + 1;
        if (in.rresp >= kErrors) m_errors |= bit(in.rid);
        if (in.rlast) m_done |= bit(in.rid), m_pending &= ~bit(in.rid);
    }
    if (in.bvalid) {
        if (in.bresp >= kErrors) m_errors |= bit(in.bid);
        m_done |= bit(in.bid), m_pending &= ~bit(in.bid);
    }
}

void AxiBackend::cycle(const RequestBeat* beat, uint32_t source, bool response_taken) {
    const VipAxiMemoryOut in = m_in;
    VipAxiMemoryIn out = {};
    if (m_write_addresses.valid()) {
        const Address& address = m_write_addresses.front();
        out.awvalid = true, out.awid = address.id;
        out.awaddr = address.address, out.awlen = address.length;
    }
    if (m_read_addresses.valid()) {
        const Address& address = m_read_addresses.front();
        out.arvalid = true, out.arid = address.id;
        out.araddr = address.address, out.arlen = address.length;
    }
    if (m_write_data.valid()) {
        const Data& data = m_write_data.front();
        out.wvalid = true, out.wstrb = data.strobe, out.wlast = data.last;
        std::memcpy(out.wdata, data.words, m_sizes.lanes * kWordBytes);
    }
    bool sent[] = {out.awvalid && in.awready, out.arvalid && in.arready, out.wvalid && in.wready};

    ++counters[kVaultCycles];
    counters[kVaultReads] += in.rvalid && in.rlast;
    counters[kVaultWrites] += in.bvalid;
    counters[kVaultBusBusy] += in.rvalid || sent[kWriteData];
    counters[kVaultOccupancy] += m_in_flight;

    // The transfer being answered, and the next one.
    const uint64_t done = m_done;
    const bool frees = respond(response_taken);
    accepted = false;
    const bool allocates = beat && request(*beat, source, sent);
    identifiers(allocates, frees);
    if (done && (!m_active || frees)) {
        const uint64_t high = done & m_above;
        m_active_id = static_cast<uint32_t>(std::countr_zero(high ? high : done));
        m_active = true;
        m_transfer = m_transfers[m_active_id];
        m_above = ~((uint64_t{2} << m_active_id) - 1);
        m_done &= ~bit(m_active_id);
    } else if (frees) {
        m_active = false;
    }
    m_in_flight += allocates, m_in_flight -= frees;
    arrive(in);
    if (sent[kWriteAddress]) m_write_addresses.edge(nullptr, true);
    if (sent[kReadAddress]) m_read_addresses.edge(nullptr, true);
    if (sent[kWriteData]) m_write_data.edge(nullptr, true);

    m_in = {};
    vip_axi_memory_cycle(m_memory, &out, &m_in);
    m_rests = !m_in_flight && !in.rvalid && !in.bvalid && !m_formed && !m_output.valid() &&
              !m_in_burst && m_id_ready;
}

}  // namespace vip::timed
