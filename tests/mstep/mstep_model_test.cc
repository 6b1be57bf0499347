// The M-step on a tiny Qwen3-VL with images, packed every way.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "learn/mstep/make_gradient_sum.h"
#include "learn/mstep/mstep.h"
#include "learn/mstep/optim/groups.h"
#include "model/row.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr int kFirstCoordId = 368;  // tests/golden/tokenizer; order does not matter here
constexpr int kImagePad = 366, kVisionStart = 363, kVisionEnd = 364;

std::shared_ptr<Model> tiny_model() {
  return Model::load(test::source_path("tests/golden/model/tiny_tied"), {});
}

std::shared_ptr<const Patches> noise_image(const ImageRef& image) {
  auto patches = std::make_shared<Patches>();
  patches->grid_thw = image.grid_thw;
  patches->row_width = 3 * 2 * 16 * 16;
  const uint64_t key = random_key({static_cast<uint64_t>(image.path.size())});
  const auto size = static_cast<uint64_t>(patches->num_rows() * patches->row_width);
  for (uint64_t i = 0; i < size; ++i)
    patches->pixel_values.push_back(static_cast<float>(random_uniform(key, i) * 2 - 1));
  return patches;
}

std::shared_ptr<const Segment> segment(int id) {
  auto made = std::make_shared<Segment>();
  made->sample_id = id;
  made->token_ids = {3, 5, kVisionStart};
  made->images = {{.path = std::string(static_cast<size_t>(id) + 1, 'x'),
                   .grid_thw = {1, 4, id % 2 == 0 ? 4 : 6}}};
  made->token_ids.insert(made->token_ids.end(), id % 2 == 0 ? 4 : 6, kImagePad);
  made->token_ids.push_back(kVisionEnd);
  made->labels.assign(made->token_ids.size(), kIgnoreLabel);
  for (int i = 0; i < 6 + 5 * id; ++i) {
    const bool is_slot = i % 3 == 1;
    const int token =
        is_slot ? kFirstCoordId + (i * 211 + id) % kNumBins : 10 + (i * 17 + id) % 300;
    if (is_slot)
      made->add_slot(kCoordSlots,
                     {made->encoded_len(), (i * 211 + id) % kNumBins, SlotSource::kAppend});
    made->token_ids.push_back(token);
    made->labels.push_back(is_slot ? kIgnoreLabel : token);
  }
  return made;
}

struct StepResult {
  std::vector<std::pair<std::string, at::Tensor>> gradients;
  double loss = 0;
};

StepResult gradients_of(const std::vector<std::vector<int>>& rows,
                        const OptimSettings& optim = {.learning_rate = 0, .weight_decay = 0},
                        const FreezeSettings& freeze = {}) {
  const auto model = tiny_model();
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const NamedParameter& parameter : model->parameters())
    parameters.emplace_back(parameter.name, parameter.tensor);
  MStep::Options options;
  options.max_grad_norm = 0;
  for (int i = 0; i < kNumBins; ++i)
    options.loss.coord_token_ids[static_cast<size_t>(i)] = kFirstCoordId + i;
  RowModel row_model{
      .hidden_TH =
          [&](const PackedRow& row) { return forward_row(*model, make_row(row, noise_image)); },
      .head = Head::of(model->head())};
  MStep step(
      row_model,
      make_gradient_sum(make_groups(parameters, model->description().part_of, optim, freeze)),
      {.beta1 = 0.0}, Schedule({.type = ScheduleType::kConstant}), options);
  Window window;
  for (const std::vector<int>& ids : rows) {
    PackedRow& row = window.rows.emplace_back();
    for (const int id : ids) row.segments.push_back(segment(id));
  }
  MetricsBag metrics;
  step.run(window, metrics);
  StepResult result;
  result.loss = metrics.values("loss").at(0);
  for (const auto& [name, tensor] : step.optimizer().state()) {
    if (name.ends_with(".exp_avg")) result.gradients.emplace_back(name, tensor.clone());
  }
  return result;
}

}  // namespace

// spec: pack-07
TEST(MStepModel, TheGradientOfAWindowDoesNotDependOnMicroBatchesOrPacking) {
  const StepResult whole = gradients_of({{0, 1, 2, 3}});
  double total_norm = 0;
  for (const auto& [name, gradient] : whole.gradients)
    total_norm += gradient.square().sum().item<double>();
  total_norm = std::sqrt(total_norm);
  for (const auto& rows : std::vector<std::vector<std::vector<int>>>{
           {{0}, {1}, {2}, {3}}, {{0, 1}, {2, 3}}, {{3, 0}, {2}, {1}}}) {
    const StepResult split = gradients_of(rows);
    EXPECT_NEAR(split.loss, whole.loss, 1e-5 * whole.loss);
    ASSERT_EQ(split.gradients.size(), whole.gradients.size());
    double total_difference = 0;
    for (size_t i = 0; i < whole.gradients.size(); ++i) {
      const auto& [name, gradient] = whole.gradients[i];
      const double difference = (split.gradients[i].second - gradient).norm().item<double>();
      total_difference += difference * difference;
      EXPECT_LE(difference, 1e-5 * std::max(gradient.norm().item<double>(), 1e-4 * total_norm))
          << name;
    }
    EXPECT_LE(std::sqrt(total_difference), 1e-5 * total_norm);
  }
}

TEST(MStepModel, FrozenPartsTakeNoGradientAndTheOthersKeepTheirs) {
  const StepResult all = gradients_of({{0, 1}});
  const StepResult text_only = gradients_of({{0, 1}}, {.learning_rate = 0, .weight_decay = 0},
                                            {.vit = true, .aligner = true});
  ASSERT_LT(text_only.gradients.size(), all.gradients.size());
  const ParameterParts part_of = tiny_model()->description().part_of;
  for (const auto& [name, gradient] : text_only.gradients) {
    EXPECT_EQ(part_of(name), ParameterPart::kLlm) << name;
    const auto same = std::find_if(all.gradients.begin(), all.gradients.end(),
                                   [&, n = name](const auto& entry) { return entry.first == n; });
    ASSERT_NE(same, all.gradients.end());
    EXPECT_TRUE(at::allclose(gradient, same->second, 1e-4, 1e-7)) << name;
  }
}

// Parameters after three steps on one window with a frozen vision tower and aligner.
std::vector<at::Tensor> after_reuse(FeatureCache* kept) {
  const auto model = tiny_model();
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const NamedParameter& parameter : model->parameters())
    parameters.emplace_back(parameter.name, parameter.tensor);
  MStep::Options options;
  for (int i = 0; i < kNumBins; ++i)
    options.loss.coord_token_ids[static_cast<size_t>(i)] = kFirstCoordId + i;
  RowModel row_model{.hidden_TH =
                         [&](const PackedRow& row) {
                           return forward_row(*model, make_row(row, noise_image), kept);
                         },
                     .head = Head::of(model->head())};
  MStep step(row_model,
             make_gradient_sum(make_groups(parameters, model->description().part_of,
                                           {.learning_rate = 1e-2, .weight_decay = 0},
                                           {.vit = true, .aligner = true})),
             {}, Schedule({.type = ScheduleType::kConstant}), options);
  Window window;
  window.rows = {{{segment(0), segment(1)}}, {{segment(2)}}};
  MetricsBag metrics;
  step.run(window, metrics);
  const int64_t bytes = kept != nullptr ? kept->bytes() : 0;
  EXPECT_EQ(bytes > 0, kept != nullptr);
  for (int i = 0; i < 2; ++i) step.run(window, metrics);
  if (kept != nullptr) {
    EXPECT_EQ(kept->bytes(), bytes) << "the rows of the first step are found";
  }
  std::vector<at::Tensor> values;
  for (const auto& [name, tensor] : parameters) values.push_back(tensor);
  return values;
}

TEST(MStepModel, FeaturesKeptForAReusedWindowChangeNoBit) {
  FeatureCache kept;
  const std::vector<at::Tensor> with = after_reuse(&kept), without = after_reuse(nullptr);
  for (size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(at::equal(with[i], without[i])) << i;
  EXPECT_GT(kept.bytes(), 0);
  kept.clear();
  EXPECT_EQ(kept.bytes(), 0);
}

}  // namespace rematch
