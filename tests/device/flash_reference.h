#pragma once
#include <cstdint>

namespace rematch::test {

/// Gives the pretend device flash attention by cumulative lengths, forward and backward, by its
/// definition in float32. In this process choose_attention() finds that it runs there from then on.
/// Call it before anything asks.
void give_flash_to_pretend_device();
/// Its forward calls since the start of the process.
int64_t num_flash_calls();

}  // namespace rematch::test
