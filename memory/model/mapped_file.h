// A memory image: a file mapped into memory, so that what is written to one is in the other.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

namespace vip {

class MappedFile {
  public:
    uint8_t* data = nullptr;
    uint64_t size = 0;

    MappedFile() = default;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() { close(); }

    // Maps the file at `path` instead of the previous one. Returns whether it could (see errno); a
    // file without bytes can't be mapped.
    bool open(const char* path) {
        close();
        const int file = ::open(path, O_RDWR | O_CLOEXEC);
        if (file < 0) return false;
        struct stat status;
        if (fstat(file, &status) == 0 && status.st_size > 0) {
            void* mapped = mmap(nullptr, static_cast<size_t>(status.st_size),
                                PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
            if (mapped != MAP_FAILED) {
                data = static_cast<uint8_t*>(mapped);
                size = static_cast<uint64_t>(status.st_size);
            }
        }
        ::close(file);
        return data;
    }

  private:
    void close() {
        if (data) munmap(data, size);
        data = nullptr;
        size = 0;
    }
};

}  // namespace vip
