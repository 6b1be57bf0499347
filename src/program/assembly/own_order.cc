#include "program/assembly/own_order.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/window_order.h"
#include "engine/ranks/gather.h"
#include "program/assembly/engine.h"
#include "program/assembly/parts.h"
#include "tools/monitor/order_sheet.h"
#include "tools/report/evaluated_sample.h"

namespace rematch {

/// For other ranks (base/wire.h).
void fields(auto& wire, SceneObject& object) {
  wire(object.desc, object.geometry.kind, object.geometry.bins);
}

namespace {

constexpr int kMostPictures = 300;

/// Records with one picture, evenly spaced; sorted.
std::vector<int64_t> choose_samples(const Dataset& data) {
  std::vector<int64_t> single;
  for (int64_t i = 0; i < data.size(); ++i) {
    if (data.samples()[i].image_paths.size() == 1) single.push_back(i);
  }
  std::vector<int64_t> chosen;
  for (const size_t i : evenly_spaced_indices(single.size(), kMostPictures))
    chosen.push_back(single[i]);
  return chosen;
}

}  // namespace

OrderScore learn_order(const Job& job, const std::shared_ptr<Model>& model) {
  GenerationSettings greedy = job.settings().generation;
  greedy.temperature = 0;
  const Engine engine = start_engine(job, model, greedy);
  const Dataset& data = *job.data.train;
  const std::vector<int64_t> samples = choose_samples(data);
  const std::vector<SampleBatch> batches = own_part(
      make_batches(samples, engine.batch_size, /*epoch=*/0), job.group.rank(), job.group.size());
  std::vector<Objects> mine, answers;
  OrderSheet sheet;
  score_batches(
      make_scorer(job, data, scoring_options(job), engine), engine.source(), batches,
      [&](int64_t num_done) {
        job.terminal.progress(
            {.phase = "order", .done = num_done * job.group.size(), .total = std::ssize(samples)});
      },
      [&](size_t, const std::vector<ScoredRollout>& scored, const MetricsBag&) {
        for (const ScoredRollout& rollout : scored) {
          mine.push_back(to_scene(rollout.parsed.objects));
          sheet.add(rollout);
        }
      });
  job.terminal.finish_progress();
  if (job.is_first() && !sheet.empty()) {
    const std::string path = job.settings().output.run_dir + "/order.png";
    write_file_atomic(path, sheet.png());
    job.terminal.say("order of truth and answers drawn in " + path);
  }
  for (const auto& of_rank : gather(job.group, mine))
    answers.insert(answers.end(), of_rank.begin(), of_rank.end());
  return fit_order(std::move(answers));
}

}  // namespace rematch
