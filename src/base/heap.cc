#include "base/heap.h"

#include <cstddef>

// jemalloc's control function; null in programs without it (tests, tools).
extern "C" int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value,
                       size_t new_size) __attribute__((weak));

namespace rematch {

void give_back_free_memory() {
  // 4096 means all arenas
  if (mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

}  // namespace rematch
