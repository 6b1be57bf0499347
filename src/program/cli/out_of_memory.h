#pragma once
#include <exception>
#include <string_view>

#include "base/error.h"

namespace rematch {

/// True for what allocators, oneDNN, CUDA and the start of a thread throw when there is not enough
/// memory; they have separate types and messages.
bool is_out_of_memory(const std::exception& error);

/// The requested memory, as far as the message names it, and the available one (device; machine,
/// container, ulimit).
/// @param phase  of a training (Group::phase); empty = another command
Problem out_of_memory(const std::exception& error, std::string_view phase = "");

/// Turns a crash under `ulimit -v` into an error that names the limit, with exit code 4: oneDNN
/// dereferences a null pointer when memory runs out while it compiles a kernel. Call it once, at
/// the start of the program.
void explain_crashes_under_memory_limit();

}  // namespace rematch
