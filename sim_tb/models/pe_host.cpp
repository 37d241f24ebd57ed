// Hosts of the engines in a simulation: each loads a program through its engine's control port,
// launches it, waits for its end and reads status and counters, cycle by cycle. Python only hands
// it
// a run and takes the result, so that no cycle waits for an interpreter.

#include <map>

#include "vip_host.h"

namespace {

constexpr uint32_t kResetCycles = 2;
constexpr uint32_t kCounters = 16;
constexpr uint32_t kRunning = 1;  // hdl.ports.PeState
enum class Phase { kIdle, kReset, kLoad, kLaunch, kRun, kStop, kCounters };

struct Host {
    Phase phase = Phase::kIdle;
    VipHostJob job = {};
    VipHostResult result = {};
    uint32_t step = 0;
    uint64_t age = 0;   // cycles since the run began
    bool fresh = true;  // the engine needs a reset before the next run
    bool pending = false;
    bool running = false;  // the engine has been seen running in this run

    void enter(Phase next) {
        phase = next;
        step = 0;
    }

    void enter_load() { enter(job.words_count ? Phase::kLoad : Phase::kLaunch); }

    void end(uint64_t outcome) {
        result.outcome = outcome;
        // An engine that obeyed a stop can be launched again without a reset.
        fresh = outcome != kEnded && outcome != kTooLong && outcome != kWasReset;
        enter(Phase::kIdle);
    }
};

std::map<int32_t, Host> g_hosts;

}  // namespace

int32_t vip_host_start(int32_t index, const VipHostJob* job) {
    Host& host = g_hosts[index];
    host.job = *job;
    host.result = VipHostResult{};
    host.running = false;
    host.age = 0;
    host.pending = true;
    return 0;
}

void vip_host_result(int32_t index, VipHostResult* result) { *result = g_hosts[index].result; }

void vip_host_cycle(int32_t index, const VipHostIn* in, VipHostOut* out) {
    Host& host = g_hosts[index];
    if (in->failed && host.phase != Phase::kIdle && host.phase != Phase::kReset) host.end(kViolation);
    if (host.phase != Phase::kIdle && host.age++ == host.job.reset_after) {
        host.result.outcome = kWasReset;
        host.enter(Phase::kReset);
    }
    // In the cycle that ends, the engine saw what the previous call drove.
    switch (host.phase) {
        case Phase::kIdle:
            if (!host.pending) break;
            host.pending = false;
            if (host.fresh || host.job.reset) {
                host.enter(Phase::kReset);
            } else {
                host.enter_load();
            }
            host.fresh = false;
            break;
        case Phase::kReset:
            if (++host.step < kResetCycles) break;
            if (host.result.outcome == kWasReset) {
                host.end(kWasReset);
            } else {
                host.enter_load();
            }
            break;
        case Phase::kLoad:
            if (in->load_ready && ++host.step == host.job.words_count) host.enter(Phase::kLaunch);
            break;
        case Phase::kLaunch:
            if (in->launch_ready) host.enter(Phase::kRun);
            break;
        case Phase::kRun:
        case Phase::kStop:
            if (in->status_state == kRunning) host.running = true;
            if (in->status_state != kRunning && host.running) {
                host.result.outcome = host.phase == Phase::kStop ? kTooLong : kEnded;
                host.result.state = in->status_state;
                host.result.cause = in->status_cause;
                host.result.pc = in->status_pc;
                host.result.memory_error = in->status_memory_error;
                if (in->in_flight) host.result.outcome = kInFlight;
                host.enter(Phase::kCounters);
                break;
            }
            ++host.result.cycles;
            if (host.phase == Phase::kRun && host.result.cycles > host.job.max_cycles) {
                host.enter(Phase::kStop);
            } else if (host.phase == Phase::kStop &&
                       host.result.cycles - host.job.max_cycles > host.job.stop_cycles) {
                host.result.state = in->status_state;
                host.end(kHung);
            }
            break;
        case Phase::kCounters:
            // The counter's value follows one cycle after its index.
            if (++host.step >= 2) host.result.counters[host.step - 2] = in->counter_value;
            if (host.step == kCounters + 1) {
                if (in->in_flight) host.result.outcome = kInFlight;
                host.end(host.result.outcome);
            }
            break;
    }
    out->reset = host.phase == Phase::kReset;
    out->load_valid = host.phase == Phase::kLoad;
    out->load_address = host.step;
    out->load_word = host.phase == Phase::kLoad ? host.job.words[host.step] : 0;
    out->launch_valid = host.phase == Phase::kLaunch;
    out->launch_words = host.job.words_count;
    out->launch_parameters = host.job.parameters;
    const bool stops = host.phase == Phase::kRun && host.result.cycles >= host.job.stop_after;
    out->stop = stops || host.phase == Phase::kStop;
    out->counter_index = host.step % kCounters;
    out->pe_index = host.job.identity[0];
    out->vault = host.job.identity[1];
    out->slot = host.job.identity[2];
    out->pe_count = host.job.identity[3];
    out->idle = host.phase == Phase::kIdle;
}
