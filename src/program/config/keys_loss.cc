// Keys of the losses, generated from their descriptions (base/settings/loss.h).
#include <cmath>

#include "program/config/keys.h"

namespace rematch {

KeySpec loss_key(std::string path, const LossKey& key) {
  KeySpec spec = plain_key(std::move(path), KeyType::kNumber).says(key.meaning);
  if (std::isfinite(key.fallback)) spec.fallback = key.fallback;
  spec.low = key.closer ? key.closer->low : key.low;
  spec.low_open = key.excludes_low && !key.closer;
  if (key.closer) spec.high = key.closer->high;
  spec.fill = [name = key.name](Settings& all, const KeyValue& value) {
    if (const auto* given = std::get_if<double>(&value)) all.losses[name] = *given;
  };
  return spec;
}

std::vector<KeySpec> coord_loss_keys() {
  std::vector<KeySpec> keys{boolean_key(kCoordLosses + ".enabled", true)
                                .says("false: weights that are not set are 0 instead of 1")};
  for (const CoordLossKey& loss : kCoordLossKeys)
    keys.push_back(
        loss_key(kCoordLosses + "." + loss.shared_name, loss.key).in(TrainerVariant::kSft));
  return keys;
}

std::vector<KeySpec> coord_loss_overrides() {
  std::vector<KeySpec> keys;
  for (const CoordLossKey& loss : kCoordLossKeys) {
    keys.push_back(
        loss_key(kRolloutMatching + "." + loss.key.name, loss.key)
            .null_by_default()
            .in(TrainerVariant::kRolloutMatching)
            .says("stage-2 override; null: `" + kCoordLosses + "." + loss.shared_name + "`"));
  }
  return keys;
}

}  // namespace rematch
