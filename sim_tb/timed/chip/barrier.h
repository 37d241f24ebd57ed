// Where the threads of a chip's model meet.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace vip::timed {

// Times that a thread looks for something to do before it gives its processor to another one.
constexpr uint32_t kTries = 50;

// Threads meet here at the end of a stretch of cycles.
class Barrier {
  public:
    explicit Barrier(uint32_t threads) : m_threads(threads) {}

    void wait() {
        const uint32_t phase = m_phase.load(std::memory_order_relaxed);
        if (m_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == m_threads) {
            m_arrived.store(0, std::memory_order_relaxed);
            m_phase.store(phase + 1, std::memory_order_release);
            return;
        }
        // Where another thread has no processor, it gets this one.
        for (uint32_t tries = 0; m_phase.load(std::memory_order_acquire) == phase; ++tries)
            if (tries > kTries) std::this_thread::yield();
    }

  private:
    const uint32_t m_threads;
    std::atomic<uint32_t> m_arrived{0}, m_phase{0};
};

}  // namespace vip::timed
