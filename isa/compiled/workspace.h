// The virtual workspace: isa/workspace.py, with the same results.
#pragma once

#include <algorithm>
#include <cstdint>

#include "semantics.h"

namespace vip {

// In place of an address in the image: zeros.
constexpr uint64_t kZeros = ~uint64_t{0};

// Descriptor, which library.py describes.
#include "descriptor.inc"

struct Workspace : Descriptor {
    bool declared() const { return pixel_bytes; }
    uint64_t row_bytes() const { return uint64_t{kernel} * kernel * pixel_bytes; }
    uint64_t window_bytes() const { return row_bytes() * output_width * output_height; }
    uint64_t image_bytes() const { return uint64_t{width} * height * pixel_bytes; }

    // Whether it can be declared where addresses are below `space` and aligned but for `unaligned`.
    bool sound(uint64_t space, uint64_t unaligned) const {
        for (const uint16_t size : {width, height, pixel_bytes, output_width, output_height})
            if (size < 1 || size > kMostPixels) return false;
        if (kernel < 1 || kernel > kMostKernel || stride < 1 || stride > kMostKernel ||
            padding > kMostPadding || rest[0] || rest[1] || rest[2])
            return false;
        return kernel <= std::min(width, height) + 2 * padding &&
               image + uint128{image_bytes()} <= space &&
               window + uint128{window_bytes()} <= space &&
               !((image | window | pixel_bytes) & unaligned) &&
               !touches_image(window, window_bytes());
    }

    bool touches_image(uint64_t start, uint64_t size) const {
        return size && start < image + image_bytes() && image < start + size;
    }
    bool touches_window(uint64_t start, uint64_t size) const {
        return size && start < window + window_bytes() && window < start + size;
    }
    bool contains(uint64_t start, uint128 size) const {
        return window <= start && start + size <= window + window_bytes();
    }

    bool image_contains(uint64_t start, uint128 size) const {
        return image <= start && start + size <= image + image_bytes();
    }

    // Bytes up to the end of the pixel of the window's address `from`, and where they are: an
    // address in the image, or kZeros.
    uint64_t piece(uint64_t from, uint64_t& start) const {
        const uint64_t offset = from - window, row = offset / row_bytes();
        const uint64_t column = offset % row_bytes(), run_bytes = uint64_t{kernel} * pixel_bytes;
        const uint64_t byte = column % pixel_bytes;
        const int64_t y = row / output_width * stride + column / run_bytes - padding;
        const int64_t x =
            row % output_width * stride + column % run_bytes / pixel_bytes - padding;
        const bool inside = 0 <= x && x < width && 0 <= y && y < height;
        start = inside ? image + (y * width + x) * pixel_bytes + byte : kZeros;
        return pixel_bytes - byte;
    }
};

}  // namespace vip
