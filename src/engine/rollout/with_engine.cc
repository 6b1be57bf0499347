#include "engine/rollout/with_engine.h"

#include <optional>

namespace rematch {

void with_engine(RolloutEngine& engine, Offload* offload, int64_t version,
                 const std::function<void()>& body) {
  std::optional<OffloadScope> offloaded;  // until all ranks have taken their turns
  engine.take_turn([&] {
    offloaded.emplace(engine.holds_own_weights() ? offload : nullptr);
    engine.sync_weights(version);
    body();
  });
  engine.release();
  offloaded->restore();
}

}  // namespace rematch
