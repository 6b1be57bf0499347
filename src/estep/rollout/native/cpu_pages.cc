#include "estep/rollout/native/cpu_pages.h"

#include <sys/mman.h>

namespace rematch {
namespace {

constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;  // Linux 6.1; older headers do not know it, older kernels say no
#endif

bool collapse(uintptr_t begin, uintptr_t end) {
  void* const data = reinterpret_cast<void*>(begin);
  return madvise(data, end - begin, MADV_HUGEPAGE) == 0 && madvise(data, end - begin, kCollapse) == 0;
}

}  // namespace

void prefer_large_pages(const void* data, int64_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(data), last = first + static_cast<uintptr_t>(bytes);
  // Page by page: one that also holds something else may be refused, e.g. at the end of a mapping.
  for (uintptr_t page = first / kLargePage * kLargePage; page < last; page += kLargePage) collapse(page, page + kLargePage);
}

}  // namespace rematch
