// Memories on AXI4 buses that keep their contents in a file mapped into memory.
//
// A memory takes every address at once, answers reads in their order, and moves one beat of data a
// cycle, in or out, as the data bus of a DRAM does; where both wait, they take turns. Addresses
// beyond its end are answered with SLVERR. Managers have rready and bready always 1.

#include "axi_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <map>

namespace {

constexpr uint64_t kWordBytes = 8;
constexpr uint32_t kError = 2;  // SLVERR

struct Burst {
    uint32_t id;
    uint64_t address;
    uint32_t beats;  // left
    uint64_t due;    // cycle in which the first beat can be given
    bool error;
};

class Memory {
  public:
    ~Memory() { close_file(); }

    bool open_file(const char* path, uint64_t base, uint64_t size, uint32_t latency) {
        close_file();
        const int file = open(path, O_RDWR | O_CLOEXEC);
        if (file < 0) return false;
        struct stat status;
        const bool large = !fstat(file, &status) && static_cast<uint64_t>(status.st_size) >= base + size;
        void* mapped = MAP_FAILED;
        if (large) mapped = mmap(nullptr, base + size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
        if (mapped == MAP_FAILED) return false;
        m_mapped = static_cast<uint8_t*>(mapped);
        m_base = base;
        m_size = size;
        m_latency = latency;
        reset();
        return true;
    }

    void reset() {
        m_reads.clear();
        m_writes.clear();
        m_done.clear();
        m_write_turn = false;
    }

    void request(bool write, uint32_t id, uint64_t address, uint32_t beats, uint32_t lanes) {
        const bool error = address + beats * lanes * kWordBytes > m_size;
        (write ? m_writes : m_reads).push_back({id, address, beats, m_cycle + m_latency, error});
    }

    void write(const svBitVecVal* data, uint32_t strobe, uint32_t lanes) {
        Burst& burst = m_writes.front();
        for (uint32_t byte = 0; byte < lanes * kWordBytes; ++byte) {
            if (burst.error || !(strobe >> byte & 1)) continue;
            const uint32_t word = data[byte / 4];
            m_mapped[m_base + burst.address + byte] = static_cast<uint8_t>(word >> 8 * (byte % 4));
        }
        burst.address += lanes * kWordBytes;
        if (--burst.beats) return;
        burst.due = m_cycle + m_latency;
        m_done.push_back(burst);
        m_writes.pop_front();
    }

    bool read_is_due() const { return !m_reads.empty() && m_reads.front().due <= m_cycle; }

    void read(uint32_t lanes, uint32_t* id, svBitVecVal* data, uint32_t* response, uint8_t* last) {
        Burst& burst = m_reads.front();
        *id = burst.id;
        *response = burst.error ? kError : 0;
        if (burst.error) {
            std::memset(data, 0, lanes * kWordBytes);
        } else {
            std::memcpy(data, m_mapped + m_base + burst.address, lanes * kWordBytes);
        }
        burst.address += lanes * kWordBytes;
        *last = --burst.beats == 0;
        if (*last) m_reads.pop_front();
    }

    bool answer(uint32_t* id, uint32_t* response) {
        if (m_done.empty() || m_done.front().due > m_cycle) return false;
        *id = m_done.front().id;
        *response = m_done.front().error ? kError : 0;
        m_done.pop_front();
        return true;
    }

    // Whose turn the data bus is in the next cycle; `waits`: a beat was offered and not taken.
    bool next_is_write(bool waits) {
        m_write_turn = !read_is_due() || (waits && !m_write_turn);
        // Data without an address has to wait for it.
        return m_write_turn && !m_writes.empty();
    }

    void tick() { ++m_cycle; }

  private:
    void close_file() {
        if (m_mapped != nullptr) munmap(m_mapped, m_base + m_size);
        m_mapped = nullptr;
    }

    uint8_t* m_mapped = nullptr;
    uint64_t m_base = 0, m_size = 0, m_cycle = 0;
    uint32_t m_latency = 1;
    bool m_write_turn = false;
    std::deque<Burst> m_reads, m_writes, m_done;
};

std::map<int32_t, Memory> g_memories;

}  // namespace

int32_t vip_axi_open(int32_t memory, const char* path, uint64_t base, uint64_t size,
                     uint32_t latency) {
    return g_memories[memory].open_file(path, base, size, latency) ? 0 : -1;
}

void vip_axi_cycle(int32_t index, uint8_t reset, uint32_t lanes, uint8_t arvalid, uint32_t arid,
                   uint64_t araddr, uint32_t arlen, uint8_t awvalid, uint32_t awid, uint64_t awaddr,
                   uint32_t awlen, uint8_t wvalid, const svBitVecVal* wdata, uint32_t wstrb,
                   uint8_t* wready, uint8_t* rvalid, uint32_t* rid, svBitVecVal* rdata,
                   uint32_t* rresp, uint8_t* rlast, uint8_t* bvalid, uint32_t* bid, uint32_t* bresp) {
    Memory& memory = g_memories[index];
    const bool taken = wvalid && *wready;
    *wready = *rvalid = *bvalid = 0;
    memory.tick();
    if (reset) {
        memory.reset();
        return;
    }
    if (taken) memory.write(wdata, wstrb, lanes);
    if (arvalid) memory.request(false, arid, araddr, arlen + 1, lanes);
    if (awvalid) memory.request(true, awid, awaddr, awlen + 1, lanes);
    *bvalid = memory.answer(bid, bresp);
    if (memory.next_is_write(wvalid && !taken)) {
        *wready = 1;
    } else if (memory.read_is_due()) {
        *rvalid = 1;
        memory.read(lanes, rid, rdata, rresp, rlast);
    }
}
