#pragma once

namespace rematch {

/// Gives the heap's free pages back to the system. The program keeps them otherwise (cli/main.cc), and since windows differ in size they would
/// add up to the sum of every window's largest pieces. Does something where the program is linked with jemalloc. Cost: milliseconds, and page
/// faults where the memory is used again.
void give_back_free_memory();

}  // namespace rematch
