// Requesters at the ports of a memory, and the host that starts and ends their runs.
//
// A requester that replays a trace has a part of the range of its own. Each other requester has
// every n-th column, for n requesters. So no other requester changes what it reads.

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "image.h"
#include "vault_replay.h"
#include "vault_requester.h"
#include "vip_requester.h"
#include "vip_traffic.h"

namespace {

// Created in the first cycle of a run, when the port's number of tags is known.
using Place = std::unique_ptr<vip::Requester>;

constexpr uint32_t kResetCycles = 4;
constexpr uint32_t kCounters = std::size(VipTrafficResult{}.counters);
constexpr uint64_t kPatienceCheck = 1024;  // cycles between two looks at who waits for how long

enum class Phase { kIdle, kReset, kRun, kSettle, kCounters };

struct Traffic {
    vip::Run run;
    std::vector<Place> requesters;
    Phase phase = Phase::kIdle;
    bool pending = false;
    uint32_t step = 0;
};

Traffic g_traffic;

void compare_memory() {
    vip::Run& run = g_traffic.run;
    for (uint64_t i = 0; i < run.copy.size(); ++i) {
        const uint64_t address = run.job.begin + i * vip::kWordBytes;
        uint64_t word;
        memcpy(&word, vip::g_image.data + address, vip::kWordBytes);
        if (word == run.copy[i]) continue;
        const uint64_t column = i * vip::kWordBytes / vip::kColumnBytes;
        run.violate("MEMORY", static_cast<uint32_t>(column % run.job.patterns_count),
                    "0x%" PRIx64 " at 0x%" PRIx64 " in the end, expected 0x%" PRIx64, word, address,
                    run.copy[i]);
        return;
    }
}

bool all_finished() {
    return std::all_of(g_traffic.requesters.begin(), g_traffic.requesters.end(),
                       [](const Place& place) { return place && place->finished(); });
}

Place make(uint32_t number, uint32_t tags) {
    vip::Run& run = g_traffic.run;
    const VipPattern& pattern = run.job.patterns[number];
    if (pattern.trace_count) return std::make_unique<vip::Replayer>(run, number, pattern, tags);
    return std::make_unique<vip::Walker>(run, number, pattern, tags);
}

void offer(const vip::Access& request, uint32_t beat, VipRequesterOut* out) {
    out->request_address = request.address + beat * vip::kWordBytes;
    out->request_tag = request.tag;
    out->request_write = request.write;
    out->request_words = request.words - 1 - beat;
    out->request_data = request.write ? request.data[beat] : 0;
    out->request_strobe = request.strobe[beat];
    out->request_last = !request.write || beat + 1 == request.words;
}

void end_run(TrafficOutcome outcome) {
    vip::Run& run = g_traffic.run;
    run.result.outcome = outcome;
    run.result.cycles = run.last - run.first + 1;
    run.result.total_cycles = run.now;
    g_traffic.phase = Phase::kIdle;
}

}  // namespace

int32_t vip_traffic_start(int32_t, const VipTrafficJob* job) {
    if (job->begin > vip::g_image.size || job->span > vip::g_image.size - job->begin) return -1;
    vip::Run& run = g_traffic.run;
    run = vip::Run{};
    run.job = *job;
    g_traffic.requesters.clear();
    g_traffic.requesters.resize(job->patterns_count);
    vip::Random contents;
    for (uint64_t i = 0; i < job->patterns_count; ++i) contents.state ^= job->patterns[i].seed;
    run.copy.resize(job->span / vip::kWordBytes);
    for (uint64_t& word : run.copy) word = contents.next();
    memcpy(vip::g_image.data + job->begin, run.copy.data(), job->span);
    g_traffic.pending = true;
    return 0;
}

void vip_traffic_result(int32_t, VipTrafficResult* result) {
    *result = g_traffic.run.result;
    result->violation = g_traffic.run.violation.c_str();
}

void vip_traffic_cycle(int32_t, const VipTrafficIn* in, VipTrafficOut* out) {
    Traffic& traffic = g_traffic;
    vip::Run& run = traffic.run;
    ++run.now;
    switch (traffic.phase) {
        case Phase::kIdle:
            if (!traffic.pending) break;
            traffic.pending = false;
            traffic.step = 0;
            traffic.phase = Phase::kReset;
            break;
        case Phase::kReset:
            if (++traffic.step < kResetCycles) break;
            run.now = run.first = run.last = 0;
            traffic.phase = Phase::kRun;
            break;
        case Phase::kRun:
            if (in->failed || !run.violation.empty()) {
                end_run(kViolation);
            } else if (all_finished()) {
                traffic.step = 0;
                traffic.phase = Phase::kSettle;
            } else if (run.now > run.job.max_cycles) {
                end_run(kTooLong);
            } else if (run.now % kPatienceCheck == 0) {
                for (const Place& place : traffic.requesters) {
                    if (place) place->check_patience();
                }
            }
            break;
        case Phase::kSettle:
            if (++traffic.step < run.job.settle) break;
            compare_memory();
            traffic.step = 0;
            traffic.phase = Phase::kCounters;
            break;
        case Phase::kCounters:
            // The counter's value follows one cycle after its index.
            out->counter_index = ++traffic.step % kCounters;
            if (traffic.step >= 2 && traffic.step - 2 < run.job.counters) {
                run.result.counters[traffic.step - 2] = in->counter_value;
            }
            if (traffic.step < run.job.counters + 2) break;
            end_run(in->failed || !run.violation.empty() ? kViolation : kDone);
            break;
    }
    out->reset = traffic.phase == Phase::kReset;
    out->idle = traffic.phase == Phase::kIdle && !traffic.pending;
}

void vip_requester_cycle(int32_t index, const VipRequesterIn* in, VipRequesterOut* out) {
    const bool runs = g_traffic.phase != Phase::kIdle && g_traffic.phase != Phase::kReset;
    if (in->reset || !runs || static_cast<size_t>(index) >= g_traffic.requesters.size()) return;
    const auto number = static_cast<uint32_t>(index);
    Place& place = g_traffic.requesters[number];
    if (!place) place = make(number, in->tags);
    if (g_traffic.run.violation.empty()) {
        place->cycle(in->request_ready, {in->response_valid, in->response_tag, in->response_data,
                                         in->response_last, in->response_error});
    }
    out->request_valid = place->request_valid();
    out->response_ready = place->response_ready();
    if (place->request_valid()) offer(place->request(), place->beat(), out);
}
