// Host of a chip in a simulation: the manager of both AXI buses, cycle by cycle. Python hands it an
// operation and looks at the result; so no interpreter is on the path of a cycle.

#include "chip_host.h"

#include <algorithm>
#include <deque>

namespace {

constexpr uint64_t kRegisterBytes = 4;
constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kBurstBytes = 2048;  // 256 beats, the longest burst of AXI4
constexpr uint32_t kBursts = 4;         // in flight

enum Kind : uint32_t { kReset, kRun, kReadRegister, kWriteRegisters, kReadMemory, kWriteMemory };
enum Outcome : uint32_t { kDone, kLate, kViolation };

// The bursts of a transfer: the addresses that go out, and the words that follow them.
struct Transfer {
    uint64_t next = 0;  // first byte that no burst has been formed for
    uint64_t end = 0;   // both are multiples of a word
    bool valid = false;
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint32_t in_flight = 0;

    void begin(uint64_t first, uint64_t count) {
        *this = Transfer{};
        if (!count) return;
        next = first & ~(kWordBytes - 1);
        end = (first + count + kWordBytes - 1) & ~(kWordBytes - 1);
    }

    // Offers the next burst if there is one and room for it.
    bool offer() {
        if (valid || next == end || in_flight == kBursts) return false;
        address = next;
        next = std::min(end, (next / kBurstBytes + 1) * kBurstBytes);
        bytes = next - address;
        valid = true;
        ++in_flight;
        return true;
    }

    bool done() const { return next == end && !valid && !in_flight; }
};

struct Host {
    VipChipOperation operation = {};
    VipChipResult result = {};
    bool pending = false;
    bool busy = false;
    uint64_t step = 0;  // cycles of the operation
    // Of register accesses: bytes offered so far, what is still offered, answers to come.
    uint64_t offered = 0;
    bool address_valid = false;
    bool data_valid = false;
    uint32_t waiting = 0;
    Transfer reads;
    Transfer writes;
    std::deque<uint64_t> burst_ends;  // of the bursts whose words have not all gone out
    uint64_t read_at = 0;             // address of the word that comes next
    uint64_t write_at = 0;            // address of the word that goes out

    uint64_t first() const { return operation.address; }
    uint64_t last() const { return operation.address + operation.count; }
    bool is(Kind kind) const { return busy && operation.kind == kind; }

    void begin() {
        pending = false;
        busy = true;
        step = 0;
        if (operation.kind == kReset) result.cycles = 0;
        offered = 0;
        reads.begin(first(), is(kReadMemory) ? operation.count : 0);
        writes.begin(first(), is(kWriteMemory) ? operation.count : 0);
        read_at = write_at = first() & ~(kWordBytes - 1);
        burst_ends.clear();
    }

    void end(uint32_t outcome) {
        result.outcome = outcome;
        busy = address_valid = data_valid = false;
        waiting = 0;
        reads = writes = Transfer{};
        burst_ends.clear();
    }

    void respond(uint32_t response) { result.response = std::max(result.response, response); }

    void offer_register() {
        bool access = is(kReadRegister) || is(kWriteRegisters);
        if (!access || address_valid || data_valid || offered == operation.count) return;
        address_valid = true;
        data_valid = is(kWriteRegisters);
        offered += kRegisterBytes;
        ++waiting;
    }

    // The register that is offered, in the order of bytes of registers.
    uint32_t register_value() const {
        uint32_t value = 0;
        for (uint64_t byte = 0; byte < kRegisterBytes && data_valid; ++byte) {
            value |= static_cast<uint32_t>(operation.data[offered - kRegisterBytes + byte])
                     << 8 * byte;
        }
        return value;
    }

    // The bytes of the word at `address` that the operation is about.
    uint32_t strobe(uint64_t address) const {
        uint32_t bytes = 0;
        for (uint32_t byte = 0; byte < kWordBytes; ++byte) {
            if (address + byte >= first() && address + byte < last()) bytes |= 1u << byte;
        }
        return bytes;
    }

    void take(uint64_t word) {
        for (uint32_t byte = 0, bytes = strobe(read_at); byte < kWordBytes; ++byte) {
            if (bytes >> byte & 1) {
                operation.data[read_at + byte - first()] = static_cast<uint8_t>(word >> 8 * byte);
            }
        }
        read_at += kWordBytes;
    }

    uint64_t word() const {
        uint64_t found = 0;
        for (uint32_t byte = 0, bytes = strobe(write_at); byte < kWordBytes; ++byte) {
            if (bytes >> byte & 1) {
                found |= static_cast<uint64_t>(operation.data[write_at + byte - first()])
                         << 8 * byte;
            }
        }
        return found;
    }

    bool finished(bool raised) const {
        switch (operation.kind) {
            case kReset: return step == operation.count;
            case kRun: return step == operation.count || (operation.stop && raised);
            case kReadRegister:
            case kWriteRegisters: return offered == operation.count && !waiting;
            default: return reads.done() && writes.done();
        }
    }
};

Host g_host;

}  // namespace

extern "C" {

void vip_chip_start(const VipChipOperation* operation) {
    g_host.operation = *operation;
    g_host.result.outcome = kDone;
    g_host.result.response = 0;
    g_host.pending = true;
}

void vip_chip_result(VipChipResult* result) { *result = g_host.result; }

int32_t vip_chip_cycle(uint8_t failed, uint8_t raised, uint8_t control_awready,
                       uint8_t control_wready, uint8_t control_bvalid, uint32_t control_bresp,
                       uint8_t control_arready, uint8_t control_rvalid, uint32_t control_rresp,
                       uint32_t control_rdata, uint8_t data_awready, uint8_t data_wready,
                       uint8_t data_bvalid, uint32_t data_bresp, uint8_t data_arready,
                       uint8_t data_rvalid, uint32_t data_rresp, uint64_t data_rdata,
                       uint8_t* reset, uint8_t* control_awvalid, uint8_t* control_wvalid,
                       uint8_t* control_arvalid, uint32_t* control_address,
                       uint32_t* control_wdata, uint8_t* data_awvalid, uint64_t* data_awaddr,
                       uint32_t* data_awlen, uint8_t* data_wvalid, uint64_t* data_wdata,
                       uint32_t* data_wstrb, uint8_t* data_wlast, uint8_t* data_arvalid,
                       uint64_t* data_araddr, uint32_t* data_arlen) {
    Host& host = g_host;
    ++host.result.cycles;
    host.result.interrupt = raised;
    // What the previous call drove was seen by the chip in the cycle that ends now.
    if (host.busy) {
        ++host.step;
        bool address_ready = host.is(kReadRegister) ? control_arready : control_awready;
        if (host.address_valid && address_ready) host.address_valid = false;
        if (host.data_valid && control_wready) host.data_valid = false;
        if (host.is(kWriteRegisters) && control_bvalid) {
            host.respond(control_bresp);
            --host.waiting;
        }
        if (host.is(kReadRegister) && control_rvalid) {
            host.respond(control_rresp);
            for (uint64_t byte = 0; byte < kRegisterBytes; ++byte) {
                host.operation.data[byte] = static_cast<uint8_t>(control_rdata >> 8 * byte);
            }
            --host.waiting;
        }
        if (host.writes.valid && data_awready) host.writes.valid = false;
        if (!host.burst_ends.empty() && data_wready) {
            host.write_at += kWordBytes;
            if (host.write_at == host.burst_ends.front()) host.burst_ends.pop_front();
        }
        if (host.is(kWriteMemory) && data_bvalid) {
            host.respond(data_bresp);
            --host.writes.in_flight;
        }
        if (host.reads.valid && data_arready) host.reads.valid = false;
        if (host.is(kReadMemory) && data_rvalid) {
            host.respond(data_rresp);
            host.take(data_rdata);
            if (host.read_at % kBurstBytes == 0 || host.read_at == host.reads.end) {
                --host.reads.in_flight;
            }
        }
        if (failed && !host.is(kReset)) {
            host.end(kViolation);
        } else if (host.finished(raised)) {
            host.end(kDone);
        } else if (host.operation.limit && host.step == host.operation.limit) {
            host.end(kLate);
        }
    }
    if (host.pending) host.begin();
    if (host.busy) {
        host.offer_register();
        host.reads.offer();
        if (host.writes.offer()) host.burst_ends.push_back(host.writes.next);
    }
    *reset = host.is(kReset);
    *control_awvalid = host.address_valid && host.is(kWriteRegisters);
    *control_wvalid = host.data_valid;
    *control_arvalid = host.address_valid && host.is(kReadRegister);
    *control_address = static_cast<uint32_t>(host.first() + host.offered - kRegisterBytes);
    *control_wdata = host.register_value();
    *data_awvalid = host.writes.valid;
    *data_awaddr = host.writes.address;
    *data_awlen = host.writes.valid ? host.writes.bytes / kWordBytes - 1 : 0;
    *data_wvalid = !host.burst_ends.empty();
    *data_wdata = *data_wvalid ? host.word() : 0;
    *data_wstrb = *data_wvalid ? host.strobe(host.write_at) : 0;
    *data_wlast = *data_wvalid && host.write_at + kWordBytes == host.burst_ends.front();
    *data_arvalid = host.reads.valid;
    *data_araddr = host.reads.address;
    *data_arlen = host.reads.valid ? host.reads.bytes / kWordBytes - 1 : 0;
    return !host.busy && !host.pending;
}

}  // extern "C"
