#include "image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vip {

uint8_t* g_memory = nullptr;
uint64_t g_size = 0;

}  // namespace vip

int32_t vip_image_open(const char* path) {
    using vip::g_memory;
    using vip::g_size;
    if (g_memory) munmap(g_memory, g_size);
    g_memory = nullptr;
    g_size = 0;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return -1;
    struct stat status;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
        void* mapped = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, file, 0);
        if (mapped != MAP_FAILED) {
            g_memory = static_cast<uint8_t*>(mapped);
            g_size = static_cast<uint64_t>(status.st_size);
        }
    }
    close(file);
    return g_memory ? 0 : -1;
}
