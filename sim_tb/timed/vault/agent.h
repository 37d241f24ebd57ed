// Timing model of the agent of a vault's scheduler (memory/agent/sarsa.py): the equations of
// memory/model/sarsa_model.py, with the agent's timing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "vault.inc"

namespace vip::timed {

class Agent {
  public:
    explicit Agent(const AgentSizes& sizes)
        : m_sizes(sizes), m_random(static_cast<uint32_t>(sizes.seed)) {
        for (auto& weights : m_theta) std::fill_n(weights, kAgentSlots, sizes.initial);
    }

    // The action in this cycle, and whether this is its first cycle.
    uint32_t action() const { return m_action; }
    bool begins() const { return m_begins; }

    // Advances to the next cycle: the registered values of the state, and whether a burst began.
    void edge(const uint32_t* values, bool reward) {
        m_earned += reward;
        m_begins = m_now > m_sizes.steps && (m_now - 1 - m_sizes.steps) % m_sizes.epoch == 0;
        if (m_begins) decide();
        // The state is sampled in the first cycle, and in the last one of every epoch.
        if (m_now % m_sizes.epoch == 0) take(values);
        ++m_now;
    }

  private:
    struct Decision {
        uint8_t state[kAgentSlots];
        uint32_t action;
        int64_t value;
    };

    const AgentSizes m_sizes;
    int64_t m_theta[kAgentActions][kAgentSlots];
    uint32_t m_random, m_action = 0;
    uint64_t m_now = 0, m_earned = 0;
    bool m_begins = false;
    // States without a decision yet; decisions and their errors from which it has yet to learn.
    uint8_t m_sampled[4][kAgentSlots] = {};
    uint64_t m_taken = 0, m_used = 0;
    Decision m_open[4] = {};
    int64_t m_errors[4] = {};
    uint64_t m_decided = 0, m_learned = 0;

    void take(const uint32_t* values) {
        uint8_t* const state = m_sampled[m_taken++ % 4];
        for (uint64_t number = 0; number < m_sizes.features; ++number) {
            const uint32_t value = values[m_sizes.values[number]];
            state[number] = 0;
            for (const uint64_t threshold : m_sizes.thresholds[number])
                state[number] += value >= threshold;
        }
    }

    void decide() {
        const uint8_t* const state = m_sampled[m_used++ % 4];
        int64_t values[kAgentActions] = {};
        for (uint32_t action = 0; action < kAgentActions; ++action)
            for (uint64_t number = 0; number < m_sizes.features; ++number)
                values[action] += m_theta[action][number] >> state[number];
        const uint32_t action = choose(values);
        const int64_t value = values[action];
        if (m_decided) {
            const Decision& before = m_open[(m_decided - 1) % 4];
            m_errors[(m_decided - 1) % 4] = (static_cast<int64_t>(m_earned) << m_sizes.reward_shift) +
                                            value - (value >> m_sizes.gamma_shift) - before.value;
        }
        if (m_decided - m_learned >= m_sizes.update_lag) learn();
        Decision& now = m_open[m_decided++ % 4];
        std::copy_n(state, kAgentSlots, now.state);
        now.action = m_action = action;
        now.value = value;
        m_earned = 0;
    }

    // The action with the greatest value (the first of several), or a random one. The last action
    // never follows itself.
    uint32_t choose(const int64_t* values) {
        const bool again = m_decided && m_action == kAgentActions - 1;
        const uint32_t drawn = m_random >> 14;
        const bool explore = m_random % (uint32_t{1} << m_sizes.epsilon_shift) == 0;
        for (int step = 0; step < 16; ++step) {
            const uint32_t bits = m_random;
            const uint32_t sum = (bits ^ bits >> 2 ^ bits >> 3 ^ bits >> 5) & 1;
            m_random = bits >> 1 | sum << 15;
        }
        if (explore && !(again && drawn == kAgentActions - 1)) return drawn;
        const int64_t* const end = values + kAgentActions - again;
        return static_cast<uint32_t>(std::max_element(values, end) - values);
    }

    void learn() {
        const Decision& past = m_open[m_learned % 4];
        const int64_t error = m_errors[m_learned++ % 4];
        const int64_t most = (int64_t{1} << (m_sizes.theta_bits - 1)) - 1;
        for (uint64_t number = 0; number < m_sizes.features; ++number) {
            int64_t& weight = m_theta[past.action][number];
            weight += error >> (m_sizes.alpha_shift + past.state[number]);
            weight = std::clamp(weight, -most - 1, most);
        }
    }
};

}  // namespace vip::timed
