// Host of a chip in a simulation: the manager of both AXI buses, cycle by cycle. Python only hands
// it
// an operation and takes the result, so that no cycle waits for an interpreter.

#include <algorithm>
#include <deque>

#include "vip_chip.h"

namespace {

constexpr uint64_t kRegisterBytes = 4;
constexpr uint64_t kWordBytes = 8;
constexpr uint64_t kBurstBytes = 2048;  // 256 beats, the longest burst of AXI4
constexpr uint32_t kBursts = 4;         // in flight

// The bursts of a transfer: addresses to send, and the words that follow them.
struct Transfer {
    uint64_t next = 0;  // first byte without a burst yet
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

    // Offers the next burst, if there is one and room for it.
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
    VipOperation operation = {};
    VipResult result = {};
    bool pending = false;
    bool busy = false;
    uint64_t step = 0;  // cycles of the operation
    // For register accesses: bytes offered so far, what is still offered, responses to come.
    uint64_t offered = 0;
    bool address_valid = false;
    bool data_valid = false;
    uint32_t waiting = 0;
    // Whether the responses of a port are taken.
    bool control_ready = true;
    bool data_ready = true;
    Transfer reads;
    Transfer writes;
    std::deque<uint64_t> burst_ends;  // of the bursts whose words have not all gone out
    uint64_t read_at = 0;             // address of the next word received
    uint64_t write_at = 0;            // address of the next word sent

    uint64_t first() const { return operation.address; }
    uint64_t last() const { return operation.address + operation.count; }
    bool is(Kind kind) const { return busy && operation.kind == kind; }
    bool misuses(Misuse misuse) const { return busy && operation.misuse == misuse; }

    void begin() {
        pending = false;
        busy = true;
        step = 0;
        if (operation.kind == kReset) {
            result.cycles = 0;
            control_ready = data_ready = true;
        }
        if (operation.misuse == kNotReady) {
            const bool registers = is(kReadRegister) || is(kWriteRegisters);
            (registers ? control_ready : data_ready) = false;
        }
        offered = 0;
        reads.begin(first(), is(kReadMemory) ? operation.count : 0);
        writes.begin(first(), is(kWriteMemory) ? operation.count : 0);
        read_at = write_at = first() & ~(kWordBytes - 1);
        burst_ends.clear();
    }

    void end(Outcome outcome) {
        result.outcome = outcome;
        busy = address_valid = data_valid = false;
        waiting = 0;
        reads = writes = Transfer{};
        burst_ends.clear();
    }

    void respond(uint32_t response) { result.response = std::max<uint64_t>(result.response, response); }

    void offer_register() {
        bool access = is(kReadRegister) || is(kWriteRegisters);
        if (!access || address_valid || data_valid || offered == operation.count) return;
        address_valid = true;
        data_valid = is(kWriteRegisters);
        offered += kRegisterBytes;
        ++waiting;
    }

    // The register value offered, in the byte order of registers.
    uint32_t register_value() const {
        uint32_t value = 0;
        for (uint64_t byte = 0; byte < kRegisterBytes && data_valid; ++byte) {
            value |= static_cast<uint32_t>(operation.data[offered - kRegisterBytes + byte])
                     << 8 * byte;
        }
        return value;
    }

    // The bytes of the word at `address` that the operation accesses.
    uint32_t strobe(uint64_t address) const {
        uint32_t bytes = 0;
        for (uint32_t byte = 0; byte < kWordBytes; ++byte) {
            if (address + byte >= first() && address + byte < last()) bytes |= 1u << byte;
        }
        return bytes;
    }

    // Whether a word of a write is offered.
    bool sends() const {
        return !burst_ends.empty() && !(misuses(kNoData) && write_at + kWordBytes > first() + operation.count / 2);
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

int32_t vip_chip_start(int32_t, const VipOperation* operation) {
    g_host.operation = *operation;
    g_host.result.outcome = kDone;
    g_host.result.response = 0;
    g_host.pending = true;
    return 0;
}

void vip_chip_result(int32_t, VipResult* result) { *result = g_host.result; }

void vip_chip_cycle(int32_t, const VipChipIn* in, VipChipOut* out) {
    Host& host = g_host;
    ++host.result.cycles;
    host.result.interrupt = in->host_interrupt;
    // In the cycle that ends, the chip saw what the previous call drove.
    if (host.busy) {
        ++host.step;
        bool address_ready = host.is(kReadRegister) ? in->control_arready : in->control_awready;
        if (host.address_valid && address_ready && !host.misuses(kNoAddress)) {
            host.address_valid = false;
        }
        if (host.data_valid && in->control_wready && !host.misuses(kNoData)) host.data_valid = false;
        if (host.is(kWriteRegisters) && in->control_bvalid && host.control_ready) {
            host.respond(in->control_bresp);
            --host.waiting;
        }
        if (host.is(kReadRegister) && in->control_rvalid && host.control_ready) {
            host.respond(in->control_rresp);
            for (uint64_t byte = 0; byte < kRegisterBytes; ++byte) {
                host.operation.data[byte] = static_cast<uint8_t>(in->control_rdata >> 8 * byte);
            }
            --host.waiting;
        }
        if (host.writes.valid && in->data_awready && !host.misuses(kNoAddress)) {
            host.writes.valid = false;
        }
        if (host.sends() && in->data_wready) {
            host.write_at += kWordBytes;
            if (host.write_at == host.burst_ends.front()) host.burst_ends.pop_front();
        }
        if (host.is(kWriteMemory) && in->data_bvalid && host.data_ready) {
            host.respond(in->data_bresp);
            --host.writes.in_flight;
        }
        if (host.reads.valid && in->data_arready) host.reads.valid = false;
        if (host.is(kReadMemory) && in->data_rvalid && host.data_ready) {
            host.respond(in->data_rresp);
            host.take(in->data_rdata);
            if (host.read_at % kBurstBytes == 0 || host.read_at == host.reads.end) {
                --host.reads.in_flight;
            }
        }
        if (in->failed && !host.is(kReset)) {
            host.end(kViolation);
        } else if (host.finished(in->host_interrupt)) {
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
    out->reset = host.is(kReset);
    out->control_awvalid =
        host.address_valid && host.is(kWriteRegisters) && !host.misuses(kNoAddress);
    out->control_wvalid = host.data_valid && !host.misuses(kNoData);
    out->control_arvalid = host.address_valid && host.is(kReadRegister);
    out->control_awaddr = static_cast<uint32_t>(host.first() + host.offered - kRegisterBytes);
    out->control_araddr = out->control_awaddr;
    out->control_wdata = host.register_value();
    out->data_awvalid = host.writes.valid && !host.misuses(kNoAddress);
    out->data_awaddr = host.writes.address;
    out->data_awlen = host.writes.valid ? host.writes.bytes / kWordBytes - 1 : 0;
    out->data_wvalid = host.sends();
    out->data_wdata = out->data_wvalid ? host.word() : 0;
    out->data_wstrb = out->data_wvalid ? host.strobe(host.write_at) : 0;
    out->data_wlast = out->data_wvalid && (host.write_at + kWordBytes == host.burst_ends.front()) !=
                                              host.misuses(kWrongLast);
    out->data_arvalid = host.reads.valid;
    out->data_araddr = host.reads.address;
    out->data_arlen = host.reads.valid ? host.reads.bytes / kWordBytes - 1 : 0;
    // Whole words in ascending order with one identifier: responses come in order.
    out->control_wstrb = 0xf;
    out->data_awsize = out->data_arsize = 3;
    out->data_awburst = out->data_arburst = 1;
    out->data_awcache = out->data_arcache = 3;
    out->control_bready = out->control_rready = host.control_ready;
    out->data_bready = out->data_rready = host.data_ready;
    out->idle = !host.busy && !host.pending;
}
