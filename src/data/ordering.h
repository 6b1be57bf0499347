#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// How the objects of an answer are numbered (`custom.object_ordering`).
enum class ObjectOrdering {
  kSorted,  ///< stable by (min y, min x) over all vertices
  kRandom,  ///< reshuffled each epoch
};

/// "sorted" or "random". @throws UserError (config) for anything else
ObjectOrdering object_ordering_from(std::string_view name);

/// The objects of a sample in the order in which they are numbered; depends on the arguments only (BEHAVIOUR 2.4).
/// @param seed, epoch  read by kRandom only, together with sample.sample_id
std::vector<SceneObject> order_objects(const Sample& sample, ObjectOrdering ordering, uint64_t seed, int64_t epoch);

}  // namespace rematch
