#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/data.h"

namespace rematch {

/// Orders the objects of a sample for the answer (BEHAVIOUR 2.4); depends only on the arguments.
/// @param seed, epoch  used only by kRandom, together with sample.sample_id
std::vector<SceneObject> order_objects(const Sample& sample, ObjectOrdering ordering, uint64_t seed,
                                       int64_t epoch);

}  // namespace rematch
