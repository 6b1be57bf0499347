#include "e2e/recorded_loop.h"

#include <sstream>

#include "support/paths.h"

namespace rematch::test {
namespace {

class RecordingSource : public SegmentSource {
 public:
  RecordingSource(SegmentSource& inner, RecordedLoop& record) : inner_(inner), record_(record) {}
  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override {
    return record_.built.emplace_back(inner_.build(plan, metrics));
  }

 private:
  SegmentSource& inner_;
  RecordedLoop& record_;
};

class RecordingSink : public MetricSink {
 public:
  explicit RecordingSink(RecordedLoop& record) : record_(record) {}
  void write(int64_t step, const MetricValues& values) override {
    record_.steps.at(static_cast<size_t>(step) - 1).metrics.insert(values.begin(), values.end());
    record_.steps.emplace_back();
  }

 private:
  RecordedLoop& record_;
};

}  // namespace

std::map<const Segment*, int> RecordedLoop::times_trained() const {
  std::map<const Segment*, int> times;
  for (const Step& step : steps) {
    for (const PackedRow& row : step.rows) {
      for (const auto& segment : row.segments) ++times[segment.get()];
    }
  }
  return times;
}

int64_t RecordedLoop::num_built() const {
  size_t count = 0;
  for (const WindowSegments& window : built) {
    for (const auto& micro_batch : window) count += micro_batch.size();
  }
  return static_cast<int64_t>(count);
}

RecordedLoop run_loop(RecordedStage2& stage2, RecordedLoop::Options options) {
  RecordedLoop record;
  record.steps.emplace_back();
  RecordingSource source(stage2.source(), record);
  MStep& mstep = stage2.mstep(1e-4);
  stage2.watch_rows([&](const PackedRow& row) { record.steps.back().rows.push_back(row); });
  options.windows.num_samples = stage2.num_samples();
  WindowStream windows(options.windows);
  Packer packer(options.packing);
  RolloutBuffer buffer(options.buffer);
  const Cadence cadence({.max_steps = options.num_steps,
                         .logging_steps = 1,
                         .save_when = When::kNever,
                         .save_last_epoch = false},
                        [&](int64_t epoch) { return windows.windows_in_epoch(epoch); });
  const TempDir dir;
  Checkpoints checkpoints({.run_dir = dir.path(), .save_only_model = true},
                          [&](const std::string&) {
                            if (options.on_save) options.on_save(windows.cursor(), packer);
                          });
  const LongSegments long_segments(options.is_long, alone());
  const Fingerprint fingerprint{};
  WindowCleanup cleanup(nullptr);
  std::ostringstream out, err;
  {
    Terminal terminal(out, err, {});
    std::vector<std::unique_ptr<MetricSink>> sinks;
    sinks.push_back(std::make_unique<RecordingSink>(record));
    RunLog log(
        terminal, std::move(sinks),
        {.memory_bytes = [] { return int64_t{0}; }, .step_tokens = [] { return int64_t{0}; }});
    TrainerState state;
    state.max_steps = options.num_steps;
    TrainParts parts{.windows = windows,
                     .source = source,
                     .packer = packer,
                     .buffer = buffer,
                     .mstep = mstep,
                     .cleanup = cleanup,
                     .cadence = cadence,
                     .evaluation = nullptr,
                     .checkpoints = checkpoints,
                     .fingerprint = fingerprint,
                     .log = log,
                     .state = state,
                     .long_segments = options.is_long ? &long_segments : nullptr};
    train_loop(parts);
  }
  record.steps.pop_back();
  record.waiting = packer.waiting();
  record.told = err.str();
  stage2.watch_rows({});
  return record;
}

std::vector<std::vector<int64_t>> sample_ids(const std::vector<PackedRow>& rows) {
  std::vector<std::vector<int64_t>> ids;
  for (const PackedRow& row : rows) {
    ids.emplace_back();
    for (const auto& segment : row.segments) ids.back().push_back(segment->sample_id);
  }
  return ids;
}

}  // namespace rematch::test
