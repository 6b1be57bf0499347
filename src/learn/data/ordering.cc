#include "learn/data/ordering.h"

#include <algorithm>
#include <optional>

#include "base/flow/bins.h"
#include "base/random.h"

namespace rematch {
namespace {

// Separates this random stream from others with the same seed and epoch.
constexpr uint64_t kOrderStream = 0x6F626A65637473ULL;

std::pair<int64_t, int64_t> top_left(const Geometry& geometry) {
  const Aabb box = bounding_box(geometry);
  return {box.min_y, box.min_x};
}

}  // namespace

std::shared_ptr<const OrderScore> stored_order(const DataSettings& data,
                                               const std::string& directory) {
  if (data.object_ordering != ObjectOrdering::kOwn) return nullptr;
  const std::optional<OrderScore> order = read_order(directory);
  return order ? std::make_shared<const OrderScore>(*order) : nullptr;
}

Objects order_objects(const Sample& sample, const ObjectOrder& order, uint64_t seed,
                      int64_t epoch) {
  Objects objects = sample.objects;
  if (order.own != nullptr) return sort_by(*order.own, std::move(objects));
  if (order.kind != ObjectOrdering::kRandom) {
    std::ranges::stable_sort(objects, {}, [](const auto& one) { return top_left(one.geometry); });
    return objects;
  }
  const uint64_t key = random_key(kOrderStream, seed, epoch, sample.sample_id);
  const std::vector<int64_t> places = random_permutation(key, objects.size());
  for (size_t i = 0; i < places.size(); ++i) objects[i] = sample.objects[places[i]];
  return objects;
}

}  // namespace rematch
