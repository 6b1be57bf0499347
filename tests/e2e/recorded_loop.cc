#include "e2e/recorded_loop.h"

#include <sstream>

#include "support/paths.h"

namespace rematch::test {
namespace {

class RecordingSink : public MetricSink {
 public:
  explicit RecordingSink(RecordedLoop& record) : record_(record) {}
  void write(int64_t step, const MetricValues& values, const std::string&) override {
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

RecordedLoop run_loop(RecordedStage2& stage2, RecordedLoop::Options options) {
  RecordedLoop record;
  record.steps.emplace_back();
  std::unique_ptr<MStep> mstep = stage2.make_mstep(1e-4);
  stage2.watch_rows([&](const PackedRow& row) {
    record.steps.back().rows.push_back(row);
    if (options.on_row) options.on_row(row);
  });
  options.windows.num_samples = stage2.num_samples();
  auto stream = std::make_unique<WindowStream>(options.windows);
  Cadence cadence(
      {.max_steps = options.num_steps,
       .logging_steps = 1,
       .save_when = When::kNever,
       .save_last_epoch = false},
      [windows = stream.get()](int64_t epoch) { return windows->windows_in_epoch(epoch); });
  const TempDir dir;
  Trainer* running = nullptr;
  const auto on_save = [&](const std::string&) {
    if (options.on_save) options.on_save(running->stream().cursor(), running->packer());
  };
  RolloutParts rollouts = stage2.rollout_parts();
  rollouts.on_rollouts = [&](int64_t, const std::vector<ScoredRollout>& scored) {
    record.num_built.push_back(std::ssize(scored));
  };
  if (options.skip_longer_than > 0) rollouts.target.max_length = 0;
  std::ostringstream out, err;
  {
    Terminal terminal(out, err, {});
    RunLog log(terminal, {.memory_bytes = [] { return int64_t{0}; }});
    log.add(std::make_unique<RecordingSink>(record));
    TrainerState state;
    state.max_steps = options.num_steps;
    Trainer trainer(
        alone(),
        {.stream = std::move(stream),
         .bad_samples = BadSamples(stage2.dataset(), stage2.pixels(), terminal, alone(),
                                   {.skips = options.skip_longer_than > 0,
                                    .run_dir = dir.path(),
                                    .max_length = options.skip_longer_than,
                                    .patches = stage2.scorer().options().patches}),
         .truth = nullptr,
         .packer = Packer(options.packing),
         .buffer = RolloutBuffer(options.buffer)},
        std::move(rollouts), {.mstep = std::move(mstep), .features = nullptr},
        {.log = log,
         .cadence = std::move(cadence),
         .evaluation = nullptr,
         .checkpoints = Checkpoints({.run_dir = dir.path(), .save_only_model = true}, on_save),
         .fingerprint = {},
         .state = state});
    running = &trainer;
    train(trainer);
    record.waiting = trainer.packer().waiting();
  }
  record.steps.pop_back();
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
