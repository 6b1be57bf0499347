#pragma once

namespace rematch {

/// Returns the heap's free pages to the system. The program keeps them otherwise
/// (program/cli/allocator.cc), and because windows differ in size they add up to every window's
/// largest allocations. Has an effect only in programs linked with jemalloc. Cost: milliseconds,
/// plus page faults when the memory is used again.
void give_back_free_memory();

}  // namespace rematch
