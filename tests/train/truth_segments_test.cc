#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "learn/data/windows.h"
#include "learn/estep/sample_lengths.h"
#include "learn/estep/truth_segments.h"
#include "learn/pack/packer.h"
#include "learn/pack/stream_packing.h"
#include "model/checkpoint/model_dir.h"
#include "model/text/chat_template.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

// Parts of stage 1 on the golden scenes. @param model_dir  whose tokenizer encodes
struct Scenes {
  Scenes(const std::string& model_dir, ObjectOrdering ordering)
      : tokenizer(Tokenizer::load(model_dir)),
        format(make_answer_format("coord_tokens", tokenizer, model_dir)),
        patches(PatchOptions::from_model_dir(model_dir)),
        prompts(tokenizer, std::make_shared<const ChatTemplate>(ChatTemplate::load(model_dir)),
                {.built_in = answer_formats().find("coord_tokens").built_in_prompt({}),
                 .merge_size = patches.merge_size}),
        scorer_options{.ordering = ordering, .seed = 3, .patches = patches} {}

  TruthSegments teacher(TruthSegments::Caps caps = {}) {
    return TruthSegments(dataset, prompts, *format, pixels, scorer_options, caps);
  }

  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<const AnswerFormat> format;
  PatchOptions patches;
  PromptEncoder prompts;
  Dataset dataset = Dataset::load(test::source_path("tests/golden/e2e/train.jsonl"), {});
  PixelStore pixels{{.loader = {.num_workers = 0}, .patches = patches}};
  RolloutScorer::Options scorer_options;
};

std::string golden_model() { return test::source_path("tests/golden/model/tiny_tied"); }

// The golden tokenizer, but for the one merge that ends a poly in front of another object: `"]]},`
// is two tokens, `"]},` one.
std::string model_without_a_merge(const test::TempDir& dir) {
  for (const char* name : {"config.json", "tokenizer_config.json", "chat_template.jinja",
                           "preprocessor_config.json"}) {
    dir.write(name, read_file(golden_model() + "/" + name));
  }
  Json json = parse_json(read_file(golden_model() + "/tokenizer.json"), "tokenizer.json");
  Json kept = Json::array();
  for (const Json& merge : json["model"]["merges"]) {
    if (merge != Json::array({"\"]]}", ","})) kept.push_back(merge);
  }
  EXPECT_EQ(kept.size() + 1, json["model"]["merges"].size());
  json["model"]["merges"] = kept;
  dir.write("tokenizer.json", json.dump());
  return dir.path();
}

StreamSamples samples_of(const TruthSegments& source, const Dataset& dataset) {
  return {.num_samples = dataset.size(),
          .encoded_len = [&source](int64_t sample_idx,
                                   int64_t epoch) { return source.encoded_len(sample_idx, epoch); },
          .vary_by_epoch = source.lengths_vary_by_epoch()};
}

// Trains nothing, but does with every window of some epochs what the loop does before the M-step;
// returns the sample ids of each epoch.
std::vector<std::vector<int64_t>> trained_ids(Scenes& scenes, int64_t num_epochs,
                                              StreamOptions options) {
  TruthSegments teacher = scenes.teacher(
      {.segment_tokens = options.packing_length, .row_tokens = options.packing_length});
  StreamPacking packing(samples_of(teacher, scenes.dataset), options);
  WindowStream windows({.num_samples = scenes.dataset.size(),
                        .batches = {.gradient_accumulation_steps = 2},
                        .cut = packing.cut()});
  Packer packer(
      {.pack = {.scope = PackScope::kMicroBatch}, .packing_length = options.packing_length});
  std::vector<std::vector<int64_t>> ids(static_cast<size_t>(num_epochs));
  for (WindowPlan plan = windows.next(); plan.epoch < num_epochs; plan = windows.next()) {
    MetricsBag metrics;
    WindowSegments segments = teacher.build(plan);
    for (const PackedRow& row : packer.pack(std::move(segments), metrics)) {
      EXPECT_LE(row.total_len(), options.packing_length);
      for (const auto& segment : row.segments)
        ids[static_cast<size_t>(plan.epoch)].push_back(segment->sample_id);
    }
  }
  return ids;
}

int longest_of(Scenes& scenes) {
  int longest = 0;
  const TruthSegments teacher = scenes.teacher();
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    for (int64_t i = 0; i < scenes.dataset.size(); ++i)
      longest = std::max(longest, teacher.encoded_len(i, epoch));
  }
  return longest;
}

}  // namespace

TEST(StreamPacking, TrainsEachSceneOnceInEveryEpoch) {
  Scenes scenes(golden_model(), ObjectOrdering::kRandom);
  const int longest = longest_of(scenes);
  for (const PackingSelector selector :
       {PackingSelector::kBinpacking, PackingSelector::kOptimal, PackingSelector::kFifo}) {
    for (const int packing_length : {longest, longest + 100, 3 * longest}) {
      const StreamOptions options{.pack = {.buffer = 4, .drop_last = false, .selector = selector},
                                  .packing_length = packing_length};
      const auto ids = trained_ids(scenes, 3, options);
      for (std::vector<int64_t> of_epoch : ids) {
        std::sort(of_epoch.begin(), of_epoch.end());
        EXPECT_EQ(of_epoch, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
      }
      EXPECT_NE(ids[0], ids[1]);
    }
  }
}

TEST(TruthSegments, EncodedLenEqualsTheBuiltSegment) {
  for (const ObjectOrdering ordering : {ObjectOrdering::kSorted, ObjectOrdering::kRandom}) {
    Scenes scenes(golden_model(), ordering);
    TruthSegments teacher = scenes.teacher();
    EXPECT_EQ(teacher.lengths_vary_by_epoch(), ordering == ObjectOrdering::kRandom);
    for (int64_t epoch = 0; epoch < 5; ++epoch) {
      MetricsBag metrics;
      const WindowSegments segments =
          teacher.build({.epoch = epoch, .micro_batches = {{0, 1, 2, 3}, {4, 5, 6, 7}}});
      for (int64_t i = 0; i < 8; ++i) {
        const int encoded_len = teacher.encoded_len(i, epoch);
        EXPECT_EQ(encoded_len,
                  segments[static_cast<size_t>(i / 4)][static_cast<size_t>(i % 4)]->encoded_len());
        // This tokenizer merges the ends of both geometries alike.
        EXPECT_EQ(encoded_len, teacher.encoded_len(i, 0));
      }
    }
  }
}

TEST(TruthSegments, IncludesTheUserTextOfTheSample) {
  const test::TempDir dir;
  const std::string record = R"({"images": [")" +
                             test::source_path("tests/golden/e2e/images/0.png") +
                             R"("], "width": 64, "height": 64, "objects": [])";
  Scenes scenes(golden_model(), ObjectOrdering::kSorted);
  scenes.dataset = Dataset::load(
      dir.write("own.jsonl", record + "}\n" + record + R"(, "prompt": "Find the red cats."})"), {});
  const TruthSegments teacher = scenes.teacher();
  const auto plain = teacher.segment_at(0, 0), own = teacher.segment_at(1, 0);
  const std::vector<GridThw> grids{own->images.front().grid_thw};
  const std::vector<TokenId> prompt = scenes.prompts.encode(grids, "Find the red cats.");
  EXPECT_NE(prompt.size(), static_cast<size_t>(plain->prompt_len));
  ASSERT_EQ(static_cast<size_t>(own->prompt_len), prompt.size());
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), own->token_ids.begin()));
  EXPECT_EQ(teacher.encoded_len(1, 0), own->encoded_len());
  const auto lengths = measure_samples(scenes.dataset, scenes.prompts, *scenes.format,
                                       {.patches = scenes.patches}, [](int64_t) {});
  EXPECT_EQ(lengths[1].total(), own->encoded_len());
  EXPECT_EQ(lengths[0].total(), plain->encoded_len());
}

TEST(TruthSegments, TheOrderOfObjectsMovesATokenWhereGeometriesEndInDifferentMerges) {
  const test::TempDir dir;
  Scenes scenes(model_without_a_merge(dir), ObjectOrdering::kRandom);
  const TruthSegments teacher = scenes.teacher();
  std::set<int> lengths;
  for (int64_t epoch = 0; epoch < 20; ++epoch) lengths.insert(teacher.encoded_len(0, epoch));
  ASSERT_EQ(lengths.size(), 2u);  // the poly of sample 0 is the last object, or it is not
  EXPECT_EQ(*lengths.begin() + 1, *lengths.rbegin());
  // Rows of two that are full to the token hold in each epoch all the same.
  const int longest = longest_of(scenes);
  for (int packing_length = 2 * longest - 120; packing_length <= 2 * longest; ++packing_length) {
    trained_ids(scenes, 6,
                {.pack = {.drop_last = false, .selector = PackingSelector::kOptimal},
                 .packing_length = packing_length});
  }
}

TEST(TruthSegments, AugmentedSegmentsAreNoLongerThanMeasured) {
  Scenes scenes(golden_model(), ObjectOrdering::kSorted);
  const std::vector<SampleLength> plain = measure_samples(
      scenes.dataset, scenes.prompts, *scenes.format, {.patches = scenes.patches}, [](int64_t) {});
  scenes.scorer_options.augment = {.hflip = 0.5, .crop = 0.2};
  const TruthSegments teacher = scenes.teacher();
  EXPECT_TRUE(teacher.lengths_vary_by_epoch());
  const std::vector<SampleLength> measured = measure_samples(
      scenes.dataset, scenes.prompts, *scenes.format,
      {.any_order = true, .num_new_vertices = 4, .patches = scenes.patches}, [](int64_t) {});
  bool is_any_shorter = false, is_any_longer = false;
  for (int64_t i = 0; i < scenes.dataset.size(); ++i) {
    for (int64_t epoch = 0; epoch < 40; ++epoch) {
      const auto segment = teacher.segment_at(i, epoch);
      EXPECT_LE(segment->encoded_len(), measured[static_cast<size_t>(i)].total());
      EXPECT_EQ(segment->prompt_len, plain[static_cast<size_t>(i)].prompt_len);
      is_any_shorter |= segment->encoded_len() < plain[static_cast<size_t>(i)].total();
      is_any_longer |= segment->encoded_len() > plain[static_cast<size_t>(i)].total();
    }
  }
  EXPECT_TRUE(is_any_shorter && is_any_longer);  // objects go, outlines gain vertices
}

TEST(TruthSegments, RefusesARowOverTheCap) {
  Scenes scenes(golden_model(), ObjectOrdering::kSorted);
  const int one = scenes.teacher().encoded_len(0, 0), other = scenes.teacher().encoded_len(1, 0);
  MetricsBag metrics;
  TruthSegments fits = scenes.teacher({.segment_tokens = one + other, .row_tokens = one + other});
  EXPECT_EQ(fits.build({.micro_batches = {{0, 1}}})[0].size(), 2u);
  TruthSegments tight =
      scenes.teacher({.segment_tokens = one + other - 1, .row_tokens = one + other - 1});
  EXPECT_THROW(tight.build({.micro_batches = {{0, 1}}}), InternalError);
  TruthSegments loose = scenes.teacher({.segment_tokens = one + other - 1});
  EXPECT_EQ(loose.build({.micro_batches = {{0, 1}}})[0].size(), 2u);
}

TEST(TruthSegments, ASampleLongerThanTheCapIsAnErrorWhenItIsMeasured) {
  Scenes scenes(golden_model(), ObjectOrdering::kSorted);
  const TruthSegments teacher = scenes.teacher({.segment_tokens = longest_of(scenes) - 1});
  const StreamSamples samples = samples_of(teacher, scenes.dataset);
  const UserError error =
      test::catch_user_error([&] { StreamPacking(samples, {.packing_length = 1000}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].where.find("train.jsonl"), std::string::npos);
  EXPECT_NE(error.problems()[0].fix.find("global_max_length"), std::string::npos);
}

}  // namespace rematch
