#pragma once
#include <memory>
#include <utility>

#include "estep/segment_source.h"
#include "rollout/engine.h"

namespace rematch {

/// A source whose every window is a turn of the engine: where ranks share one, a rank that fails
/// before it generates stops the others too, and one that has nothing to generate answers with
/// them.
class TurnSource : public SegmentSource {
 public:
  /// @param engine  outlives the source
  TurnSource(std::unique_ptr<SegmentSource> source, RolloutEngine& engine)
      : source_(std::move(source)), engine_(engine) {}

  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override {
    EngineTurn turn(engine_);
    WindowSegments segments = source_->build(plan, metrics);
    turn.end();
    return segments;
  }

 private:
  std::unique_ptr<SegmentSource> source_;
  RolloutEngine& engine_;
};

}  // namespace rematch
