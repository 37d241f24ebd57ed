// What scalar and vector instructions compute, bit-exact: one structure for each operation.
//
// Everything between the operands and the one saturation of a result is exact.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace vip {

using int128 = __int128;
using uint128 = unsigned __int128;

template <typename T>
constexpr bool kNarrow = sizeof(T) <= 2;

// Holds sums and differences of two elements, and sums of 256 elements.
template <typename T>
using Wide = std::conditional_t<kNarrow<T>, int32_t, std::conditional_t<sizeof(T) == 4, int64_t, int128>>;

// Holds products of two elements.
template <typename T>
using Product = std::conditional_t<sizeof(T) == 8, int128, std::conditional_t<kNarrow<T>, int32_t, int64_t>>;

// Limits a value to what an element holds, and counts it where it was beyond.
template <typename T, bool Counting, typename V>
inline T saturate(V value, uint64_t& clipped) {
    constexpr V high = std::numeric_limits<T>::max();
    constexpr V low = std::numeric_limits<T>::min();
    V limited = value > high ? high : value;
    limited = limited < low ? low : limited;
    if constexpr (Counting) clipped += limited != value;
    return static_cast<T>(limited);
}

// Shifts right, rounds to nearest, halves up.
template <typename V>
inline V round_shift(V value, unsigned fx) {
    return fx ? ((value >> (fx - 1)) + 1) >> 1 : value;
}

// Element-wise operations. `kSaturates`: the exact result may not fit an element. `kNeutral`: an
// operand with which the result is the other one. `limited`: the result of narrow elements in their
// own width, which takes the fewest vector instructions. It limits the second operand so that the
// result fits.

struct Min {
    static constexpr bool kSaturates = false;
    template <typename T>
    static constexpr T kNeutral = std::numeric_limits<T>::max();
    template <typename V>
    static V of(V b, V c) { return b < c ? b : c; }
};

struct Max {
    static constexpr bool kSaturates = false;
    template <typename T>
    static constexpr T kNeutral = std::numeric_limits<T>::min();
    template <typename V>
    static V of(V b, V c) { return b > c ? b : c; }
};

struct Add {
    static constexpr bool kSaturates = true;
    template <typename V>
    static V of(V b, V c) { return b + c; }
    template <typename T>
    static T limited(T b, T c) {
        constexpr T high = std::numeric_limits<T>::max(), low = std::numeric_limits<T>::min();
        const T most = high - Max::of<T>(b, 0), least = low - Min::of<T>(b, 0);
        return b + Max::of(Min::of(c, most), least);
    }
};

struct Sub {
    static constexpr bool kSaturates = true;
    template <typename V>
    static V of(V b, V c) { return b - c; }
    template <typename T>
    static T limited(T b, T c) {
        constexpr T high = std::numeric_limits<T>::max(), low = std::numeric_limits<T>::min();
        const T most = Min::of<T>(b, -1) - low, least = Max::of<T>(b, -1) - high;
        return b - Max::of(Min::of(c, most), least);
    }
};

struct Absdiff {
    static constexpr bool kSaturates = true;
    template <typename V>
    static V of(V b, V c) { return b < c ? c - b : b - c; }
};

struct Avg {
    static constexpr bool kSaturates = false;
    template <typename V>
    static V of(V b, V c) { return (b + c + 1) >> 1; }
};

// Products are shifted by FX before they saturate.
struct Mul {};
// Sums of the products of the bytes of two elements, likewise.
struct Dot {};
// The first operand as it is.
struct Nop {};

template <typename Op, typename T, bool Counting>
inline T element(T b, T c, unsigned fx, uint64_t& clipped) {
    if constexpr (std::is_same_v<Op, Mul>) {
        if constexpr (sizeof(T) == 8) {
            return saturate<T, Counting>(round_shift(int128{b} * c, fx), clipped);
        } else {
            return saturate<T, Counting>(round_shift(int64_t{b} * c, fx), clipped);
        }
    } else if constexpr (kNarrow<T> && !Counting && requires { Op::limited(b, c); }) {
        return Op::limited(b, c);
    } else if constexpr (Op::kSaturates) {
        return saturate<T, Counting>(Op::of(Wide<T>{b}, Wide<T>{c}), clipped);
    } else if constexpr (std::is_same_v<Op, Avg>) {
        return static_cast<T>(Op::of(Wide<T>{b}, Wide<T>{c}));
    } else {
        return Op::of(b, c);
    }
}

// The sum of products, exact: of 64-bit elements it may need more than 128 bits.
template <typename T>
class ProductSum {
  public:
    void add(T b, T c) {
        if constexpr (sizeof(T) == 8) {
            const int128 product = int128{b} * c;
            high_ += static_cast<int64_t>(product >> 64);
            low_ += static_cast<uint64_t>(product);
        } else {
            high_ += Product<T>{b} * c;
        }
    }

    template <bool Counting>
    T result(unsigned fx, uint64_t& clipped) const {
        if constexpr (sizeof(T) == 8) {
            const int128 high = high_ + static_cast<int128>(low_ >> 64);
            if (high != static_cast<int64_t>(high)) {
                // Beyond an element with any shift.
                clipped += Counting;
                return high < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
            }
            const int128 total = static_cast<int128>(
                (static_cast<uint128>(high) << 64) | static_cast<uint64_t>(low_));
            return saturate<T, Counting>(round_shift(total, fx), clipped);
        } else {
            return saturate<T, Counting>(round_shift(high_, fx), clipped);
        }
    }

  private:
    std::conditional_t<sizeof(T) >= 4, int128, int64_t> high_ = 0;
    uint128 low_ = 0;
};

// A row of a matrix, combined with a vector and reduced.
template <typename Op, typename Reduction, typename T, bool Counting, typename Row, typename Vector>
inline T row_result(Row row, Vector vector, unsigned vl, unsigned fx, uint64_t& clipped) {
    if constexpr (std::is_same_v<Op, Dot>) {
        static_assert(sizeof(T) == 2 && std::is_same_v<Reduction, Add>);
        int64_t sum = 0;
        for (unsigned i = 0; i < vl; ++i) {
            const T b = row[i], c = vector[i];
            sum += static_cast<int8_t>(b) * static_cast<int8_t>(c) + (b >> 8) * (c >> 8);
        }
        return saturate<T, Counting>(round_shift(sum, fx), clipped);
    } else if constexpr (std::is_same_v<Op, Mul>) {
        if constexpr (std::is_same_v<Reduction, Add>) {
            ProductSum<T> sum;
            for (unsigned i = 0; i < vl; ++i) sum.add(row[i], vector[i]);
            return sum.template result<Counting>(fx, clipped);
        } else {
            using V = Product<T>;
            V best = V{row[0]} * vector[0];
            for (unsigned i = 1; i < vl; ++i) best = Reduction::of(best, V{row[i]} * vector[i]);
            using Shifted = std::conditional_t<sizeof(T) == 8, int128, int64_t>;
            return saturate<T, Counting>(round_shift(Shifted{best}, fx), clipped);
        }
    } else {
        const auto at = [&](unsigned i) -> T {
            if constexpr (std::is_same_v<Op, Nop>) {
                return row[i];
            } else {
                return element<Op, T, Counting>(row[i], vector[i], fx, clipped);
            }
        };
        if constexpr (std::is_same_v<Reduction, Add>) {
            Wide<T> sum = 0;
            for (unsigned i = 0; i < vl; ++i) sum += at(i);
            return saturate<T, Counting>(sum, clipped);
        } else {
            T best = Reduction::template kNeutral<T>;
            for (unsigned i = 0; i < vl; ++i) best = Reduction::of(best, at(i));
            return best;
        }
    }
}

// Scalar operations on 64-bit patterns.

struct ScalarAdd { static uint64_t of(uint64_t b, uint64_t c) { return b + c; } };
struct ScalarSub { static uint64_t of(uint64_t b, uint64_t c) { return b - c; } };
struct ScalarSll { static uint64_t of(uint64_t b, uint64_t c) { return b << (c & 63); } };
struct ScalarSrl { static uint64_t of(uint64_t b, uint64_t c) { return b >> (c & 63); } };
struct ScalarSra {
    static uint64_t of(uint64_t b, uint64_t c) {
        return static_cast<uint64_t>(static_cast<int64_t>(b) >> (c & 63));
    }
};
struct ScalarAnd { static uint64_t of(uint64_t b, uint64_t c) { return b & c; } };
struct ScalarOr { static uint64_t of(uint64_t b, uint64_t c) { return b | c; } };
struct ScalarXor { static uint64_t of(uint64_t b, uint64_t c) { return b ^ c; } };

// Whether `bits` bits in two's complement hold `value`.
inline bool fits(int128 value, unsigned bits) {
    const int128 bound = int128{1} << (bits - 1);
    return -bound <= value && value < bound;
}

// Whether an engine with registers of `bits` bits, below 64, has the result of an operation.
template <typename Op>
inline bool fits_narrow(uint64_t b, uint64_t c, unsigned bits) {
    const int64_t signed_b = static_cast<int64_t>(b);
    if constexpr (std::is_same_v<Op, ScalarSrl>) {
        if (signed_b < 0) return false;
    }
    if constexpr (std::is_same_v<Op, ScalarSll>) {
        return fits(static_cast<int128>(static_cast<uint128>(int128{signed_b}) << (c & 63)), bits);
    }
    return fits(static_cast<int64_t>(Op::of(b, c)), bits);
}

// Branch conditions.

struct BranchBlt { static bool of(int64_t a, int64_t b) { return a < b; } };
struct BranchBge { static bool of(int64_t a, int64_t b) { return a >= b; } };
struct BranchBeq { static bool of(int64_t a, int64_t b) { return a == b; } };
struct BranchBne { static bool of(int64_t a, int64_t b) { return a != b; } };
struct BranchJmp { static bool of(int64_t, int64_t) { return true; } };

}  // namespace vip
