#pragma once

namespace rematch {

/// Use of results. kUnread: nothing reads their values, so that a recomputed pass (checkpoint.h)
/// may leave out its last products and keep only their graph.
enum class Results { kRead, kUnread };

}  // namespace rematch
