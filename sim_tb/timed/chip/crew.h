// The threads that share the work of a chip's model: which one does which tiles, in which order.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tile.h"

namespace vip::timed {

// How often a waiting thread checks for work before it yields its processor.
constexpr uint32_t kTries = 50;

class Crew {
  public:
    // Does a thread's part of a job that this many threads share.
    using Part = std::function<void(uint32_t thread, uint32_t threads)>;

    // `threads` includes the calling one, which has number 0.
    Crew(uint32_t threads, Part part) : m_part(std::move(part)) {
        for (uint32_t thread = 1; thread < threads; ++thread)
            m_threads.emplace_back([this, thread] { follow(thread); });
    }

    ~Crew() {
        start(0);
        for (std::thread& thread : m_threads) thread.join();
    }

    // Lets the first `threads` do their parts of a job. Returns 0 or, if one of them waited for others
    // for more than `patience`, its waiting time until all had ended; in nanoseconds.
    int64_t share(uint32_t threads, int64_t patience) {
        m_patience = patience;
        if (threads > 1) start(threads);
        m_part(0, threads);
        if (threads > 1) meet(threads);
        const int64_t since = m_waits_since.exchange(0, std::memory_order_relaxed);
        return since ? now() - since : 0;
    }

    // Whether a thread has waited too long; then all stop where they are.
    bool gives_up() const { return m_waits_since.load(std::memory_order_relaxed); }

    // A thread's wait for others within a job.
    class Wait {
      public:
        explicit Wait(Crew& crew) : m_crew(crew) {}
        void over() { m_tries = 0; }
        void look() {
            if (++m_tries <= kTries) return;
            if (m_tries == kTries + 1) m_since = now();
            // A thread without a processor may get this one. If other processes compete for it, this
            // takes long.
            std::this_thread::yield();
            if (now() - m_since > m_crew.m_patience)
                m_crew.m_waits_since.store(m_since, std::memory_order_relaxed);
        }

      private:
        Crew& m_crew;
        uint32_t m_tries = 0;
        int64_t m_since = 0;
    };

  private:
    // More than any chip has vaults.
    static constexpr uint32_t kMostThreads = 1024;

    const Part m_part;
    // The last job: its number times kMostThreads, plus the number of threads that share it; 0 threads
    // end the crew. A single word, since a thread without a part in a job may read it late.
    std::atomic<uint32_t> m_job{0};
    std::atomic<uint32_t> m_ended{0};  // threads that have finished their parts of it
    // Since when a thread that has given up had been waiting; 0 if none has.
    std::atomic<int64_t> m_waits_since{0};
    int64_t m_patience = 0;
    std::vector<std::thread> m_threads;

    static int64_t now() {
        const auto since = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::nanoseconds(since).count();
    }

    void start(uint32_t threads) {
        m_ended.store(0, std::memory_order_relaxed);
        const uint32_t number = m_job.load(std::memory_order_relaxed) / kMostThreads + 1;
        m_job.store(number * kMostThreads + threads, std::memory_order_release);
        m_job.notify_all();
    }

    // The first thread waits until the others have finished their parts.
    void meet(uint32_t threads) {
        Wait wait(*this);
        while (m_ended.load(std::memory_order_acquire) != threads - 1) wait.look();
    }

    void follow(uint32_t thread) {
        for (uint32_t job = 0;;) {
            m_job.wait(job, std::memory_order_acquire);
            job = m_job.load(std::memory_order_acquire);
            const uint32_t threads = job % kMostThreads;
            if (!threads) return;
            if (thread >= threads) continue;
            m_part(thread, threads);
            m_ended.fetch_add(1, std::memory_order_acq_rel);
        }
    }
};

class Sharing {
  public:
    Sharing(const NetworkSizes& network, uint64_t threads)
        : m_count(static_cast<uint32_t>(network.vaults)), m_threads(static_cast<uint32_t>(threads)) {
        const auto columns = static_cast<uint32_t>(network.columns);
        const uint32_t rows = m_count / columns;
        // Order tiles by column, or by row if rows are shorter, so that few tiles of a thread are
        // adjacent to tiles of another.
        for (uint32_t turn = 0; turn < m_count; ++turn)
            m_order.push_back(columns < rows ? turn : turn % rows * columns + turn / rows);
        // Within a thread, do one colour of a chessboard first: all neighbours of a tile advance
        // before its next turn.
        for (uint32_t thread = 0; thread < m_threads; ++thread)
            std::stable_partition(m_order.begin() + first(thread), m_order.begin() + first(thread + 1),
                                  [&](uint32_t vault) {
                                      return (vault / columns + vault % columns) % 2 == 0;
                                  });
    }

    // A thread's turns begin here and end at the next thread's first one.
    uint32_t first(uint32_t thread) const { return thread * m_count / m_threads; }
    uint32_t vault(uint32_t turn) const { return m_order[turn]; }

    // Called once all tiles, by number, exist and are connected.
    void look_at(const std::vector<std::unique_ptr<ChipTile>>& tiles) {
        m_foreign.assign(m_count, {});
        for (uint32_t thread = 0; thread < m_threads; ++thread)
            for (uint32_t turn = first(thread); turn < first(thread + 1); ++turn)
                for (uint32_t number = 0; number < kPorts; ++number) {
                    const Reported* const found = tiles[m_order[turn]]->neighbour(number);
                    if (found && !is_own(tiles, thread, found)) m_foreign[turn].push_back(found);
                }
    }
    // Prefetches what tiles of other threads report to the tile of the turn after this one.
    void prefetch(uint32_t thread, uint32_t turn) const {
        const uint32_t next = turn + 1 < first(thread + 1) ? turn + 1 : first(thread);
        for (const Reported* const reported : m_foreign[next]) __builtin_prefetch(reported);
    }

  private:
    const uint32_t m_count, m_threads;
    std::vector<uint32_t> m_order;  // numbers of tiles
    std::vector<std::vector<const Reported*>> m_foreign;

    bool is_own(const std::vector<std::unique_ptr<ChipTile>>& tiles, uint32_t thread,
                const Reported* reported) const {
        return std::any_of(m_order.begin() + first(thread), m_order.begin() + first(thread + 1),
                           [&](uint32_t vault) { return tiles[vault]->reported() == reported; });
    }
};

}  // namespace vip::timed
