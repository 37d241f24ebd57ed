// State of a simulated processing engine, and the kinds of instructions on it.
#pragma once

#include <unistd.h>

#include "constants.inc"
#include "semantics.h"
#include "workspace.h"

namespace vip {

// Puts the results of a special row for all elements at its place in `results`; returns 0, or
// another value where it fails.
using Evaluate = int32_t (*)(uint32_t row, uint64_t fx);

// Operation, Engine and FoundHazard, which library.py describes.
#include "structures.inc"

constexpr unsigned kMost = 256;

// Elements at any address.
template <typename T>
class Elements {
  public:
    explicit Elements(const uint8_t* start) : start_(start) {}
    T operator[](unsigned index) const {
        T value;
        std::memcpy(&value, start_ + index * sizeof(T), sizeof(T));
        return value;
    }

  private:
    const uint8_t* start_;
};

template <typename T>
class OneElement {
  public:
    explicit OneElement(const uint8_t* start) : value_(Elements<T>(start)[0]) {}
    T operator[](unsigned) const { return value_; }

  private:
    T value_;
};

// `count` elements in the scratchpad at an address, or null.
template <typename T>
inline uint8_t* operand(Engine& engine, unsigned number, uint64_t count) {
    const uint64_t start = engine.registers[number];
    const uint64_t size = count * sizeof(T);
    if (start & engine.unaligned || size > engine.scratchpad_bytes ||
        start > engine.scratchpad_bytes - size)
        return nullptr;
    return engine.scratchpad + start;
}

// Memory whose space is not taken is accessed in the file, which says so when there is none.

inline bool is_held(const Engine& engine, uint64_t start, uint64_t size) {
    for (uint64_t page = start / kPage; page <= (start + size - 1) / kPage; ++page)
        if (!engine.held[page]) return false;
    return true;
}

inline bool load(Engine& engine, uint8_t* to, uint64_t from, uint64_t size) {
    if (!size) return true;
    if (is_held(engine, from, size)) {
        std::memcpy(to, engine.memory + from, size);
        return true;
    }
    while (size) {
        const ssize_t done = pread(static_cast<int>(engine.file), to, size, static_cast<off_t>(from));
        if (done <= 0) return false;
        to += done, from += done, size -= done;
    }
    return true;
}

inline bool store(Engine& engine, uint64_t to, const uint8_t* from, uint64_t size) {
    if (!size) return true;
    if (is_held(engine, to, size)) {
        std::memcpy(engine.memory + to, from, size);
        return true;
    }
    while (size) {
        const ssize_t done = pwrite(static_cast<int>(engine.file), from, size, static_cast<off_t>(to));
        if (done <= 0) return false;
        for (uint64_t page = to / kPage; page <= (to + done - 1) / kPage; ++page)
            engine.held[page] = 1;
        to += done, from += done, size -= done;
    }
    return true;
}

// Loads `size` bytes of the window from `from` on; kNone, or the cause of a fault, or kFailed.
inline uint32_t load_lowered(Engine& engine, uint8_t* to, uint64_t from, uint64_t size) {
    // A fault changes nothing.
    uint8_t bytes[kMostScratchpad];
    for (uint64_t done = 0; done < size;) {
        uint64_t start = 0;
        const uint64_t count =
            std::min(engine.workspace.piece(from + done, start), size - done);
        if (start == kZeros)
            std::memset(bytes + done, 0, count);
        else if (start + count > engine.memory_bytes)
            return kDramRange;
        else if (!load(engine, bytes + done, start, count))
            return kFailed;
        done += count;
    }
    std::memcpy(to, bytes, size);
    return kNone;
}

// Cause of a fault of an access that a declared workspace forbids; it is not a load from its
// window.
inline uint32_t keep_out(const Workspace& workspace, uint64_t far, uint64_t size, bool loads) {
    if (!workspace.declared()) return kNone;
    if (workspace.touches_window(far, size)) return loads ? kWorkspaceEdge : kStoreToWorkspace;
    return !loads && workspace.touches_image(far, size) ? kStoreToWorkspace : kNone;
}

// Kinds of instructions. `execute` returns kNone and has changed the engine, or the cause of a
// fault and has not. `Narrow`: registers below 64 bits. `Counting`: of saturated values.

template <typename Op, bool kConstant>
struct Scalar {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t&) {
        const uint64_t b = engine.registers[op.b];
        const uint64_t c = kConstant ? static_cast<uint64_t>(op.constant) : engine.registers[op.c];
        if (Narrow && !fits_narrow<Op>(b, c, engine.register_width)) return kRegisterRange;
        engine.registers[op.a] = Op::of(b, c);
        return kNone;
    }
};

template <bool kConstant>
struct Move {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t&) {
        engine.registers[op.a] =
            kConstant ? static_cast<uint64_t>(op.constant) : engine.registers[op.b];
        return kNone;
    }
};

template <typename Op>
struct Branch {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t&) {
        if (Op::of(static_cast<int64_t>(engine.registers[op.b]),
                   static_cast<int64_t>(engine.registers[op.c])))
            // Less one, as the next word follows.
            engine.pc = op.constant - 1;
        return kNone;
    }
};

template <uint64_t Engine::* setting, uint64_t low, uint64_t Engine::* most, uint64_t high>
struct Set {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t&) {
        const uint64_t value = engine.registers[op.b];
        uint64_t bound = high;
        if constexpr (most != nullptr) bound = engine.*most;
        if (value < low || value > bound) return kVectorSetting;
        engine.*setting = value;
        return kNone;
    }
};

// Nothing: what it waits for has no duration here.
struct Wait {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine&, const Operation&, uint64_t&) { return kNone; }
};

template <typename T, typename Op, typename Second>
struct ElementWise {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t& clipped) {
        const unsigned vl = engine.vl, fx = engine.fx;
        const bool one = std::is_same_v<Second, OneElement<T>>;
        uint8_t* result = operand<T>(engine, op.a, vl);
        const uint8_t* first = operand<T>(engine, op.b, vl);
        const uint8_t* second = operand<T>(engine, op.c, one ? 1 : vl);
        if (!result || !first || !second) return kScratchpadRange;
        const Elements<T> b(first);
        const Second c(second);
        T values[kMost];
        for (unsigned i = 0; i < vl; ++i)
            values[i] = element<Op, T, Counting>(b[i], c[i], fx, clipped);
        std::memcpy(result, values, vl * sizeof(T));
        return kNone;
    }
};

template <typename T, typename Op, typename Reduction>
struct MatrixVector {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t& clipped) {
        const unsigned vl = engine.vl, mr = engine.mr, fx = engine.fx;
        constexpr bool kVector = !std::is_same_v<Op, Nop>;
        uint8_t* result = operand<T>(engine, op.a, mr);
        const uint8_t* matrix = operand<T>(engine, op.b, uint64_t{vl} * mr);
        const uint8_t* vector = kVector ? operand<T>(engine, op.c, vl) : matrix;
        // Rows of a matrix are as aligned as it.
        const bool ragged = vl * sizeof(T) & engine.unaligned;
        if (!result || !matrix || !vector || ragged) return kScratchpadRange;
        T values[kMost], copy[kMost];
        std::memcpy(copy, vector, kVector ? vl * sizeof(T) : 0);
        for (unsigned i = 0; i < mr; ++i)
            values[i] = row_result<Op, Reduction, T, Counting>(
                Elements<T>(matrix + i * vl * sizeof(T)), copy, vl, fx, clipped);
        std::memcpy(result, values, mr * sizeof(T));
        return kNone;
    }
};

// A function of single elements, by its results for all of them. `kFirst`: of the tables of FX.
template <typename T, uint32_t kRow, uint32_t kFirst>
struct Special {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t&) {
        const unsigned vl = engine.vl;
        uint8_t* result = operand<T>(engine, op.a, vl);
        const uint8_t* first = operand<T>(engine, op.b, vl);
        if (!result || !first) return kScratchpadRange;
        int16_t* table = engine.results[kFirst + engine.fx];
        if (!table) {
            if (engine.evaluate(kRow, engine.fx)) return kFailed;
            table = engine.results[kFirst + engine.fx];
        }
        T values[kMost];
        for (unsigned i = 0; i < vl; ++i) {
            const auto index = static_cast<std::make_unsigned_t<T>>(Elements<T>(first)[i]);
            values[i] = static_cast<T>(table[index]);
        }
        std::memcpy(result, values, vl * sizeof(T));
        return kNone;
    }
};

template <typename T, bool kLoad>
struct Transfer {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t&) {
        const uint64_t near = engine.registers[op.a], far = engine.registers[op.b];
        const uint128 size = uint128{engine.registers[op.c]} * sizeof(T);
        if (near + size > engine.scratchpad_bytes || near & engine.unaligned)
            return kScratchpadRange;
        if (far & engine.unaligned) return kMisaligned;
        const uint64_t bytes = static_cast<uint64_t>(size);
        const Workspace& workspace = engine.workspace;
        if (kLoad && size && workspace.declared() && workspace.contains(far, size))
            return load_lowered(engine, engine.scratchpad + near, far, bytes);
        if (far + size > engine.memory_bytes) return kDramRange;
        if (const uint32_t cause = keep_out(workspace, far, bytes, kLoad)) return cause;
        uint8_t* pad = engine.scratchpad + near;
        return (kLoad ? load(engine, pad, far, bytes) : store(engine, far, pad, bytes)) ? kNone
                                                                                      : kFailed;
    }
};

template <typename T, bool kLoad>
struct RegisterTransfer {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t&) {
        const uint64_t far = engine.registers[op.b];
        if (far % sizeof(T)) return kMisaligned;
        if (far + uint128{sizeof(T)} > engine.memory_bytes) return kDramRange;
        if (const uint32_t cause = keep_out(engine.workspace, far, sizeof(T), kLoad)) return cause;
        T value = static_cast<T>(engine.registers[op.a]);
        auto* bytes = reinterpret_cast<uint8_t*>(&value);
        if (!(kLoad ? load(engine, bytes, far, sizeof(T)) : store(engine, far, bytes, sizeof(T))))
            return kFailed;
        if (kLoad) {
            if (Narrow && !fits(value, engine.register_width)) return kRegisterRange;
            engine.registers[op.a] = static_cast<uint64_t>(int64_t{value});
        }
        return kNone;
    }
};

struct Declare {
    template <bool Narrow, bool Counting>
    static uint32_t execute(Engine& engine, const Operation& op, uint64_t&) {
        const uint64_t start = engine.registers[op.b];
        if (start % kDescriptorBytes) return kMisaligned;
        if (start + uint128{kDescriptorBytes} > engine.memory_bytes) return kDramRange;
        Workspace found;
        static_assert(sizeof(found) == kDescriptorBytes);
        if (!load(engine, reinterpret_cast<uint8_t*>(&found), start, sizeof(found))) return kFailed;
        if (!found.sound(engine.address_space, engine.unaligned)) return kWorkspace;
        engine.workspace = found;
        return kNone;
    }
};

}  // namespace vip
