// Vaults that send packets through a network and check what arrives.
//
// Every packet is recorded when generated. What arrives must be, flit by flit, the oldest packet of
// its source, destination and class; at the end none may be left.

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "vip_network.h"
#include "vip_network_vault.h"

namespace {

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

constexpr uint32_t kClasses = 2;
constexpr uint32_t kRequest = 0;
constexpr uint32_t kResponse = 1;
constexpr uint32_t kCertain = 65536;
constexpr uint32_t kResetCycles = 4;
constexpr uint32_t kAnswersKept = 4;       // answers that a vault has room for
constexpr uint32_t kPauseChance = 64;      // of 65536, per cycle
constexpr uint32_t kLatencies = std::size(VipNetworkResult{}.latencies);
constexpr uint32_t kHops = std::size(VipNetworkResult{}.fastest);
constexpr uint64_t kPatienceCheck = 1024;  // cycles between two looks at who waits for how long

enum class Phase { kIdle, kReset, kRun };

// Packets of one source, destination and class, and how much of the first has arrived.
struct Stream {
    std::deque<Packet> packets;
    uint32_t made = 0;
};

struct Vault {
    Random random;
    std::deque<Packet> queue[kClasses];
    uint32_t sent[kClasses] = {0, 0};  // flits of the first packet of each queue
    uint32_t credits[kClasses] = {0, 0};
    uint32_t turn = 0;
    // Flits that have arrived and not been taken, and the packet that is arriving.
    std::deque<bool> held[kClasses];  // whether each flit is the last of its packet
    std::deque<uint32_t> senders;     // of the requests whose last flit is held
    Stream* arriving[kClasses] = {nullptr, nullptr};
    uint32_t arrived[kClasses] = {0, 0};
    uint64_t rests_until = 0;
};

struct Traffic {
    VipFlitJob job = {};
    VipNetworkResult result = {};
    std::string violation;
    std::vector<Vault> vaults;
    std::vector<Stream> streams;
    Phase phase = Phase::kIdle;
    bool pending = false;
    uint32_t step = 0;
    uint64_t now = 0;
    uint64_t flits_made = 0;
    uint64_t packets_left = 0;

    uint32_t count() const { return job.columns * job.rows; }
    Stream& stream(uint32_t from, uint32_t to, uint32_t kind) {
        return streams[(static_cast<size_t>(from) * count() + to) * kClasses + kind];
    }
    bool makes() const { return now < job.cycles && flits_made < job.flits; }

    void violate(const char* format, ...) __attribute__((format(printf, 2, 3))) {
        if (!violation.empty()) return;
        char text[200];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        char where[40];
        snprintf(where, sizeof where, "cycle %" PRIu64 ": ", now);
        violation = std::string(where) + text;
    }
};

Traffic g_traffic;

uint32_t bits(uint32_t places) {
    uint32_t found = 0;
    while ((1U << found) < places) ++found;
    return found;
}

uint64_t header(const Packet& packet) {
    const VipFlitJob& job = g_traffic.job;
    const uint32_t x_bits = bits(job.columns), y_bits = bits(job.rows);
    const uint64_t content = packet.from | static_cast<uint64_t>(packet.kind) << 8 |
                             static_cast<uint64_t>(packet.length) << 9 |
                             static_cast<uint64_t>(packet.sequence) << 17;
    return packet.to % job.columns | static_cast<uint64_t>(packet.to / job.columns) << x_bits |
           content << (x_bits + y_bits);
}

Flit flit_of(const Packet& packet, uint32_t index) {
    const bool last = index + 1 == packet.length;
    const uint64_t data = index ? mix(header(packet) + index * 0x9e3779b97f4a7c15ULL)
                                : header(packet);
    return {data, last, last && packet.error};
}

uint32_t hops(uint32_t from, uint32_t to) {
    const VipFlitJob& job = g_traffic.job;
    const auto along = [](uint32_t a, uint32_t b, uint32_t size) {
        const uint32_t ahead = (b + size - a) % size;
        return std::min(ahead, size - ahead);
    };
    return along(from % job.columns, to % job.columns, job.columns) +
           along(from / job.columns, to / job.columns, job.rows);
}

// Destination of the next packet of `from`; `from` itself: none.
uint32_t choose(uint32_t from, Random& random) {
    const VipFlitJob& job = g_traffic.job;
    const uint32_t count = g_traffic.count();
    const uint32_t x = from % job.columns, y = from / job.columns;
    switch (job.destinations) {
        case kTranspose:
            return x * job.rows + y;
        case kNeighbour:
            return job.columns > 1 ? (x + 1) % job.columns + y * job.columns : (y + 1) % job.rows;
        case kHotSpot:
            if (from && random.chance(job.hot)) return 0;
            break;
        default:
            break;
    }
    return (from + 1 + random.below(count - 1)) % count;
}

void make(uint32_t from, uint32_t to, uint32_t kind, uint32_t length) {
    Traffic& traffic = g_traffic;
    Vault& vault = traffic.vaults[from];
    Stream& stream = traffic.stream(from, to, kind);
    Packet packet;
    packet.from = from;
    packet.to = to;
    packet.kind = kind;
    packet.sequence = stream.made++;
    packet.length = length;
    packet.error = vault.random.chance(kCertain / 4);
    packet.made = traffic.now;
    stream.packets.push_back(packet);
    vault.queue[kind].push_back(packet);
    traffic.flits_made += length;
    ++traffic.packets_left;
}

void make_random(uint32_t from) {
    Traffic& traffic = g_traffic;
    const VipFlitJob& job = traffic.job;
    Vault& vault = traffic.vaults[from];
    if (!traffic.makes()) return;
    const uint32_t classes = job.answers ? 1 : kClasses;
    const uint32_t mean_twice = job.shortest + job.longest;
    for (uint32_t kind = 0; kind < classes; ++kind) {
        if (job.rate >= kCertain) {
            if (!vault.queue[kind].empty()) continue;
        } else if (!vault.random.chance(2 * job.rate / (classes * mean_twice))) {
            continue;
        }
        const uint32_t to = choose(from, vault.random);
        const uint32_t length = job.shortest + vault.random.below(job.longest - job.shortest + 1);
        if (to != from) make(from, to, kind, length);
    }
}

void receive(uint32_t number, uint32_t kind, const Flit& flit) {
    Traffic& traffic = g_traffic;
    Vault& vault = traffic.vaults[number];
    if (vault.held[kind].size() >= traffic.job.buffer_flits) {
        traffic.violate("ROOM: vault %u gets a flit of class %u that it has no room for", number,
                        kind);
        return;
    }
    if (!vault.arriving[kind]) {
        const VipFlitJob& job = traffic.job;
        const uint32_t from = flit.data >> (bits(job.columns) + bits(job.rows)) & 0xff;
        if (from >= traffic.count() || traffic.stream(from, number, kind).packets.empty()) {
            traffic.violate("UNKNOWN: vault %u gets a header %016" PRIx64 " of class %u that nobody "
                            "has sent it", number, flit.data, kind);
            return;
        }
        vault.arriving[kind] = &traffic.stream(from, number, kind);
        vault.arrived[kind] = 0;
    }
    Stream& stream = *vault.arriving[kind];
    const Packet& packet = stream.packets.front();
    const Flit expected = flit_of(packet, vault.arrived[kind]);
    if (!packet.entered || flit.data != expected.data || flit.last != expected.last ||
        (flit.last && flit.error != expected.error)) {
        traffic.violate("CONTENT: vault %u gets %016" PRIx64 "%s as flit %u of a packet of class %u "
                        "from vault %u, expected %016" PRIx64 "%s",
                        number, flit.data, flit.last ? " (last)" : "", vault.arrived[kind], kind,
                        packet.from, expected.data, expected.last ? " (last)" : "");
        return;
    }
    VipNetworkResult& result = traffic.result;
    if (!vault.arrived[kind]) {
        uint64_t& fastest = result.fastest[std::min(hops(packet.from, number), kHops - 1)];
        const uint64_t time = traffic.now - packet.entered;
        if (!fastest || time < fastest) fastest = time;
    }
    ++vault.arrived[kind];
    ++result.flits[kind];
    if (traffic.now >= traffic.job.warmup && traffic.now < traffic.job.cycles) {
        ++result.measured_flits;
    }
    vault.held[kind].push_back(flit.last);
    if (!flit.last) return;
    ++result.packets[kind];
    result.longest = std::max(result.longest, traffic.now - packet.entered);
    if (packet.made >= traffic.job.warmup && packet.made < traffic.job.cycles) {
        const uint64_t latency = traffic.now - packet.made;
        result.latency_sum += latency;
        ++result.latency_count;
        ++result.latencies[std::min<uint64_t>(latency, kLatencies - 1)];
    }
    if (kind == kRequest) vault.senders.push_back(packet.from);
    stream.packets.pop_front();
    vault.arriving[kind] = nullptr;
    --traffic.packets_left;
}

// Takes flits that have arrived; returns their credits.
uint32_t take(uint32_t number) {
    Traffic& traffic = g_traffic;
    const VipFlitJob& job = traffic.job;
    Vault& vault = traffic.vaults[number];
    uint32_t credits = 0;
    if (job.pause && vault.rests_until <= traffic.now && vault.random.chance(kPauseChance)) {
        vault.rests_until = traffic.now + 1 + vault.random.below(job.pause);
    }
    if (vault.rests_until > traffic.now) return 0;
    for (uint32_t kind = 0; kind < kClasses; ++kind) {
        if (vault.held[kind].empty() || !vault.random.chance(job.take)) continue;
        const bool ends_request = kind == kRequest && vault.held[kind].front();
        const bool answers = ends_request && job.answers;
        // Requests wait until there is room for a response; responses never wait.
        if (answers && vault.queue[kResponse].size() >= kAnswersKept) continue;
        vault.held[kind].pop_front();
        credits |= 1U << kind;
        if (!ends_request) continue;
        const uint32_t sender = vault.senders.front();
        vault.senders.pop_front();
        const uint32_t span = job.longest - job.shortest + 1;
        if (answers) make(number, sender, kResponse, job.shortest + vault.random.below(span));
    }
    return credits;
}

// The class whose flit enters the network in this cycle, or -1.
int32_t choose_class(Vault& vault) {
    if (!vault.random.chance(g_traffic.job.offer)) return -1;
    for (uint32_t n = 0; n < kClasses; ++n) {
        const uint32_t kind = (vault.turn + n) % kClasses;
        if (vault.queue[kind].empty() || !vault.credits[kind]) continue;
        vault.turn = kind + 1;
        return static_cast<int32_t>(kind);
    }
    return -1;
}

void check_patience() {
    Traffic& traffic = g_traffic;
    for (const Stream& stream : traffic.streams) {
        if (stream.packets.empty()) continue;
        const Packet& packet = stream.packets.front();
        if (!packet.entered || traffic.now - packet.entered <= traffic.job.patience) continue;
        traffic.violate("LOST: a packet of class %u from vault %u to vault %u has not arrived after "
                        "%" PRIu64 " cycles", packet.kind, packet.from, packet.to,
                        traffic.now - packet.entered);
        return;
    }
}

void end_run(TrafficOutcome outcome) {
    g_traffic.result.outcome = outcome;
    g_traffic.result.cycles = g_traffic.now;
    g_traffic.phase = Phase::kIdle;
}

void begin_run() {
    Traffic& traffic = g_traffic;
    traffic.vaults.assign(traffic.count(), Vault{});
    traffic.streams.assign(static_cast<size_t>(traffic.count()) * traffic.count() * kClasses,
                           Stream{});
    for (uint32_t number = 0; number < traffic.count(); ++number) {
        Vault& vault = traffic.vaults[number];
        vault.random.state = mix(traffic.job.seed * kCertain + number + 1);
        for (uint32_t& credits : vault.credits) credits = traffic.job.buffer_flits;
    }
    traffic.now = 0;
    traffic.phase = Phase::kRun;
}

}  // namespace

int32_t vip_network_start(int32_t, const VipFlitJob* job) {
    g_traffic = Traffic{};
    g_traffic.job = *job;
    g_traffic.pending = true;
    return 0;
}

void vip_network_result(int32_t, VipNetworkResult* result) {
    *result = g_traffic.result;
    result->violation = g_traffic.violation.c_str();
}

void vip_network_cycle(int32_t, const VipNetworkIn*, VipNetworkOut* out) {
    Traffic& traffic = g_traffic;
    ++traffic.now;
    switch (traffic.phase) {
        case Phase::kIdle:
            if (!traffic.pending) break;
            traffic.pending = false;
            traffic.step = 0;
            traffic.phase = Phase::kReset;
            break;
        case Phase::kReset:
            if (++traffic.step >= kResetCycles) begin_run();
            break;
        case Phase::kRun:
            if (traffic.now % kPatienceCheck == 0) check_patience();
            if (!traffic.violation.empty()) {
                end_run(kViolation);
            } else if (!traffic.makes() && !traffic.packets_left) {
                end_run(kDone);
            } else if (traffic.now > traffic.job.max_cycles) {
                end_run(kTooLong);
            }
            break;
    }
    out->reset = traffic.phase == Phase::kReset;
    out->idle = traffic.phase == Phase::kIdle && !traffic.pending;
}

void vip_network_vault_cycle(int32_t index, const VipNetworkVaultIn* in, VipNetworkVaultOut* out) {
    Traffic& traffic = g_traffic;
    if (traffic.phase != Phase::kRun || !traffic.violation.empty()) return;
    const auto number = static_cast<uint32_t>(index);
    Vault& vault = traffic.vaults[number];
    for (uint32_t kind = 0; kind < kClasses; ++kind) vault.credits[kind] += in->in_credit >> kind & 1;
    if (in->out_valid) {
        receive(number, in->out_channel, {in->out_flit_data, in->out_flit_last, in->out_flit_error});
    }
    out->out_credit = take(number);
    make_random(number);
    const int32_t chosen = choose_class(vault);
    if (chosen < 0) return;
    const auto kind = static_cast<uint32_t>(chosen);
    Packet& packet = vault.queue[kind].front();
    if (!vault.sent[kind]) {
        Stream& stream = traffic.stream(number, packet.to, kind);
        // The stream's packets have consecutive sequence numbers.
        const uint32_t place = packet.sequence - stream.packets.front().sequence;
        // The flit is on the link in the next cycle.
        stream.packets[place].entered = traffic.now + 1;
    }
    const Flit flit = flit_of(packet, vault.sent[kind]);
    out->in_valid = true;
    out->in_channel = kind;
    out->in_flit_data = flit.data;
    out->in_flit_last = flit.last;
    out->in_flit_error = flit.error;
    --vault.credits[kind];
    if (++vault.sent[kind] == packet.length) {
        vault.queue[kind].pop_front();
        vault.sent[kind] = 0;
    }
}
