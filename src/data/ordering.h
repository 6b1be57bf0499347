#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "flow/sample.h"
#include "settings/data.h"

namespace rematch {

/// The objects of a sample in the order in which they are numbered; depends on the arguments only
/// (BEHAVIOUR 2.4).
/// @param seed, epoch  read by kRandom only, together with sample.sample_id
std::vector<SceneObject> order_objects(const Sample& sample, ObjectOrdering ordering, uint64_t seed,
                                       int64_t epoch);

}  // namespace rematch
