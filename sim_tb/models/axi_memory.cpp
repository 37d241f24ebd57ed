// Memories on AXI4 buses that keep their contents in a file mapped into memory.
//
// A memory accepts every address immediately, answers reads in order, and moves one data beat per
// cycle, in or out, like the data bus of a DRAM; if both wait, they take turns. Addresses beyond
// its end, and those that fail, get SLVERR: a write is not performed, and of a read any one beat
// has the response, with random data. Managers keep rready and bready at 1.

#include <cstring>
#include <deque>
#include <map>

#include "image.h"
#include "vip_axi_memory.h"

namespace {

constexpr uint64_t kWordBytes = 8;
constexpr uint32_t kError = 2;  // SLVERR

struct Burst {
    uint32_t id;
    uint64_t address;
    uint32_t beats;  // left
    uint64_t due;    // first cycle in which a beat can be offered
    bool error;
    uint32_t bad;  // of a read with an error, the beats left at the one that says so
};

class Memory {
  public:
    bool start(const VipAxiMemory& setup) {
        m_setup = setup;
        reset();
        return vip::g_image.data && setup.base + setup.size <= vip::g_image.size;
    }

    void reset() {
        m_reads.clear();
        m_writes.clear();
        m_done.clear();
        m_write_turn = false;
    }

    void request(bool write, uint32_t id, uint64_t address, uint32_t beats) {
        const uint64_t end = address + beats * m_setup.lanes * kWordBytes;
        const bool outside = end > m_setup.size;
        const bool fails = address < m_setup.errors[1] && end > m_setup.errors[0];
        const uint32_t bad = fails ? 1 + random() % beats : beats;
        (write ? m_writes : m_reads)
            .push_back({id, address, beats, m_cycle + m_setup.latency, outside || fails, bad});
    }

    void write(const uint32_t* data, uint32_t strobe) {
        Burst& burst = m_writes.front();
        for (uint32_t byte = 0; byte < m_setup.lanes * kWordBytes; ++byte) {
            if (burst.error || !(strobe >> byte & 1)) continue;
            const uint32_t word = data[byte / 4];
            at(burst)[byte] = static_cast<uint8_t>(word >> 8 * (byte % 4));
        }
        burst.address += m_setup.lanes * kWordBytes;
        if (--burst.beats) return;
        burst.due = m_cycle + m_setup.latency;
        m_done.push_back(burst);
        m_writes.pop_front();
    }

    bool read_is_due() const { return !m_reads.empty() && m_reads.front().due <= m_cycle; }

    void read(VipAxiMemoryOut* out) {
        Burst& burst = m_reads.front();
        out->rid = burst.id;
        if (burst.error && burst.beats == burst.bad) {
            out->rresp = kError;
            for (uint32_t word = 0; word < m_setup.lanes * kWordBytes / 4; ++word) {
                out->rdata[word] = static_cast<uint32_t>(random());
            }
        } else if (burst.address + m_setup.lanes * kWordBytes <= m_setup.size) {
            std::memcpy(out->rdata, at(burst), m_setup.lanes * kWordBytes);
        }
        burst.address += m_setup.lanes * kWordBytes;
        out->rlast = --burst.beats == 0;
        if (out->rlast) m_reads.pop_front();
    }

    void answer(VipAxiMemoryOut* out) {
        if (m_done.empty() || m_done.front().due > m_cycle) return;
        out->bvalid = true;
        out->bid = m_done.front().id;
        out->bresp = m_done.front().error ? kError : 0;
        m_done.pop_front();
    }

    // Whose turn the data bus is in the next cycle; `waits`: a beat was offered and not taken.
    bool next_is_write(bool waits) {
        m_write_turn = !read_is_due() || (waits && !m_write_turn);
        // Data without an address has to wait for it.
        return m_write_turn && !m_writes.empty();
    }

    void tick() { ++m_cycle; }

    bool takes_data = false;  // in this cycle

  private:
    uint8_t* at(const Burst& burst) const {
        return vip::g_image.data + m_setup.base + burst.address;
    }

    uint64_t random() {
        m_random = m_random * 6364136223846793005ULL + 1442695040888963407ULL;
        return m_random >> 33;
    }

    VipAxiMemory m_setup = {};
    uint64_t m_random = 1;
    uint64_t m_cycle = 0;
    bool m_write_turn = false;
    std::deque<Burst> m_reads, m_writes, m_done;
};

std::map<int32_t, Memory> g_memories;

}  // namespace

int32_t vip_axi_memory_start(int32_t index, const VipAxiMemory* setup) {
    return g_memories[index].start(*setup) ? 0 : -1;
}

void vip_axi_memory_cycle(int32_t index, const VipAxiMemoryIn* in, VipAxiMemoryOut* out) {
    Memory& memory = g_memories[index];
    const bool taken = in->wvalid && memory.takes_data;
    memory.takes_data = false;
    out->awready = out->arready = true;
    memory.tick();
    if (in->reset) {
        memory.reset();
        return;
    }
    if (taken) memory.write(in->wdata, in->wstrb);
    if (in->arvalid) memory.request(false, in->arid, in->araddr, in->arlen + 1);
    if (in->awvalid) memory.request(true, in->awid, in->awaddr, in->awlen + 1);
    memory.answer(out);
    if (memory.next_is_write(in->wvalid && !taken)) {
        out->wready = memory.takes_data = true;
    } else if (memory.read_is_due()) {
        out->rvalid = true;
        memory.read(out);
    }
}
