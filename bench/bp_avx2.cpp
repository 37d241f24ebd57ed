// BP-M on a processor with AVX2: 16 labels of 16 bits, one message is one register.
//
// Additions saturate in the order of microkernels/bp/golden.py, so messages are equal bit for bit.
// The lines of a sweep are independent: threads share them, and each thread interleaves several
// rows, or a range of all columns, to hide the latency of a message.

#include <immintrin.h>

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

constexpr int LABELS = 16;
constexpr int ROWS_AT_ONCE = 4;

struct Field {
  const int16_t *data;  // [height][width][LABELS]
  int16_t *messages;    // [right, left, down, up][height][width][LABELS]
  long width, height;

  const int16_t *costs(long y, long x) const { return data + (y * width + x) * LABELS; }
  int16_t *message(int direction, long y, long x) const {
    return messages + ((direction * height + y) * width + x) * LABELS;
  }
};

enum Direction { RIGHT, LEFT, DOWN, UP };

inline __m256i load(const int16_t *from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
}

// `columns`: [i][o], the smoothness cost from label i to label o.
inline __m256i update(const __m256i *columns, __m256i total) {
  alignas(32) int16_t each[LABELS];
  _mm256_store_si256(reinterpret_cast<__m256i *>(each), total);
  __m256i even = _mm256_adds_epi16(columns[0], _mm256_set1_epi16(each[0]));
  __m256i odd = _mm256_adds_epi16(columns[1], _mm256_set1_epi16(each[1]));
  for (int i = 2; i < LABELS; i += 2) {
    even = _mm256_min_epi16(even, _mm256_adds_epi16(columns[i], _mm256_set1_epi16(each[i])));
    odd = _mm256_min_epi16(odd, _mm256_adds_epi16(columns[i + 1], _mm256_set1_epi16(each[i + 1])));
  }
  const __m256i least = _mm256_min_epi16(even, odd);
  const __m256i first = _mm256_broadcastw_epi16(_mm256_castsi256_si128(least));
  return _mm256_subs_epi16(least, first);
}

// The message from pixel (y, x) in `direction`.
inline __m256i leaving(const Field &field, const __m256i *columns, Direction direction, long y,
                       long x) {
  const bool horizontal = direction == RIGHT || direction == LEFT;
  const __m256i costs = load(field.costs(y, x));
  const __m256i first = load(field.message(horizontal ? UP : LEFT, y, x));
  const __m256i second = load(field.message(horizontal ? DOWN : RIGHT, y, x));
  // up + down + costs, or costs + left + right: only the order of the costs differs.
  const __m256i sum = horizontal
                          ? _mm256_adds_epi16(_mm256_adds_epi16(first, second), costs)
                          : _mm256_adds_epi16(_mm256_adds_epi16(costs, first), second);
  return update(columns, _mm256_adds_epi16(sum, load(field.message(direction, y, x))));
}

inline void store(int16_t *to, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), value);
}

void along_rows(const Field &field, const __m256i *columns, Direction direction, long from,
                long to) {
  const long step = direction == RIGHT ? 1 : -1;
  const long start = direction == RIGHT ? 0 : field.width - 1;
  for (long top = from; top < to; top += ROWS_AT_ONCE) {
    const long end = std::min<long>(to, top + ROWS_AT_ONCE);
    for (long n = 0, x = start; n + 1 < field.width; n++, x += step)
      for (long y = top; y < end; y++)
        store(field.message(direction, y, x + step), leaving(field, columns, direction, y, x));
  }
}

void along_columns(const Field &field, const __m256i *columns, Direction direction, long from,
                   long to) {
  const long step = direction == DOWN ? 1 : -1;
  const long start = direction == DOWN ? 0 : field.height - 1;
  for (long n = 0, y = start; n + 1 < field.height; n++, y += step)
    for (long x = from; x < to; x++)
      store(field.message(direction, y + step, x), leaving(field, columns, direction, y, x));
}

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

}  // namespace

// One iteration: sweeps right, left, down and up. `smoothness`: [o][i] for messages right and down;
// messages left and up use its transpose. Returns the processor time of the slowest thread, summed
// over the sweeps, on which other work on the machine has little effect.
extern "C" double vip_bp_iterate(const int16_t *data, int16_t *messages, const int16_t *smoothness,
                               long width, long height, int threads) {
  const Field field{data, messages, width, height};
  __m256i forward[LABELS], backward[LABELS];
  for (int i = 0; i < LABELS; i++) {
    alignas(32) int16_t column[LABELS];
    for (int o = 0; o < LABELS; o++) column[o] = smoothness[o * LABELS + i];
    forward[i] = load(column);
    backward[i] = load(smoothness + i * LABELS);
  }
  double seconds = 0;
  for (Direction direction : {RIGHT, LEFT, DOWN, UP}) {
    const bool horizontal = direction == RIGHT || direction == LEFT;
    const __m256i *columns = direction == RIGHT || direction == DOWN ? forward : backward;
    const long lines = horizontal ? height : width;
    std::vector<double> used(threads);
    auto work = [&](int number) {
      const double start = processor_seconds();
      const long from = lines * number / threads, to = lines * (number + 1) / threads;
      if (horizontal)
        along_rows(field, columns, direction, from, to);
      else
        along_columns(field, columns, direction, from, to);
      used[number] = processor_seconds() - start;
    };
    std::vector<std::thread> others;
    for (int number = 1; number < threads; number++)
      others.emplace_back(work, number);
    work(0);
    for (std::thread &other : others) other.join();
    seconds += *std::max_element(used.begin(), used.end());
  }
  return seconds;
}
