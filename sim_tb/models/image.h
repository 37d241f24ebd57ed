// The memory image of a simulation: one file, mapped, for all models.
#pragma once

#include <cstdint>

#include "../../memory/model/mapped_file.h"

namespace vip {

extern MappedFile g_image;

}  // namespace vip

// Maps the file at `path` instead of the previous one. Returns 0, or -1 (see errno).
extern "C" int32_t vip_image_open(const char* path);
