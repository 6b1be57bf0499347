#pragma once
#include <functional>

namespace rematch::test {

/// Runs `action` in a thread with a stack of 64 KiB: code that needs more crashes the test.
void on_small_stack(const std::function<void()>& action);

}  // namespace rematch::test
