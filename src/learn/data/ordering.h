#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/data.h"
#include "learn/data/order_score.h"

namespace rematch {

/// `custom.object_ordering` with the order that `own` has learned.
struct ObjectOrder {
  ObjectOrdering kind = ObjectOrdering::kSorted;
  std::shared_ptr<const OrderScore> own = nullptr;  ///< only with kOwn; null: as kSorted

  ObjectOrder(ObjectOrdering ordering, std::shared_ptr<const OrderScore> score = nullptr)
      : kind(ordering), own(std::move(score)) {}
};

/// The order that a checkpoint has stored; null without one, or if the objects have another order.
/// @param directory  of the checkpoint
/// @throws UserError (data) if it is damaged
std::shared_ptr<const OrderScore> stored_order(const DataSettings& data,
                                               const std::string& directory);

/// Orders the objects of a sample for the answer (BEHAVIOUR 2.4); depends only on the arguments.
/// @param seed, epoch  used only by kRandom, together with sample.sample_id
Objects order_objects(const Sample& sample, const ObjectOrder& order, uint64_t seed, int64_t epoch);

}  // namespace rematch
