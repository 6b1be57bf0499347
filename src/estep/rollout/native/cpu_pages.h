#pragma once
#include <cstdint>

namespace rematch {

/// Asks the system to put what lies at `data` on large pages, where it is: with small ones every row of a large matrix costs a walk through
/// page tables, which nothing overlaps (a third of the bandwidth on a virtual machine). Contents and addresses stay. A system that cannot
/// changes nothing. Cost: the first call copies once.
void prefer_large_pages(const void* data, int64_t bytes);

}  // namespace rematch
