#include "program/assembly/long_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "learn/estep/sample_lengths.h"
#include "learn/estep/teach/truth_segment.h"
#include "learn/estep/truth_segments.h"
#include "model/text/chat_template.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

class LongSamplesTest : public testing::Test {
 protected:
  LongSamplesTest()
      : files_{.tokenizer = Tokenizer::load(model_),
               .format_name = "coord_tokens",
               .format = make_answer_format("coord_tokens", Tokenizer::load(model_), model_),
               .patches = PatchOptions::from_model_dir(model_)},
        dataset_(Dataset::load(test::source_path("tests/golden/e2e/train.jsonl"), {})) {
    files_.prompts = std::make_unique<const PromptEncoder>(
        files_.tokenizer, std::make_shared<const ChatTemplate>(ChatTemplate::load(model_)),
        PromptEncoder::Options{
            .built_in = answer_formats().find("coord_tokens").built_in_prompt({}),
            .merge_size = files_.patches.merge_size});
    lengths_ = measure(1);
    for (const SampleLength& length : lengths_) totals_.push_back(length.total());
    std::sort(totals_.begin(), totals_.end());
  }

  std::vector<SampleLength> measure(int num_threads) {
    return measure_samples(dataset_, *files_.prompts, *files_.format,
                           {.seed = 3, .patches = files_.patches, .num_threads = num_threads},
                           [](int64_t) {});
  }

  int64_t settle(int cap, LongSamples strategy = LongSamples::kRaise) {
    Settings settings;
    settings.model.global_max_length = cap;
    settings.data.truncation_strategy = strategy;
    settings.data.on_bad_sample = on_bad_sample_;
    settings.variant = variant_;
    settings.target.policy = policy_;
    settings.generation.max_new_tokens = 40;
    return settle_long_samples(dataset_, settings, files_, {}, report_);
  }

  const std::string model_ = test::source_path("tests/golden/model/tiny_tied");
  ModelFiles files_;
  Dataset dataset_;
  std::vector<SampleLength> lengths_;
  std::vector<int> totals_;  // ascending
  TrainerVariant variant_ = TrainerVariant::kSft;
  std::string policy_ = "append";
  OnBadSample on_bad_sample_ = OnBadSample::kStop;
  std::ostringstream out_, err_;
  Terminal terminal_{out_, err_, {}};
  Report report_{terminal_};
};

}  // namespace

TEST_F(LongSamplesTest, AreMeasuredAsTheTeacherEncodesThem) {
  PixelStore pixels{{.loader = {.num_workers = 0}, .patches = files_.patches}};
  const TruthSegments source(dataset_, *files_.prompts, *files_.format, pixels,
                             {.seed = 3, .patches = files_.patches}, {});
  for (int64_t i = 0; i < dataset_.size(); ++i) {
    EXPECT_EQ(lengths_[static_cast<size_t>(i)].total(), source.encoded_len(i, 0)) << i;
    EXPECT_EQ(lengths_[static_cast<size_t>(i)].prompt_len, source.segment_at(i, 0)->prompt_len)
        << i;
  }
  const std::vector<SampleLength> again = measure(5);
  ASSERT_EQ(again.size(), lengths_.size());
  for (size_t i = 0; i < again.size(); ++i)
    EXPECT_EQ(again[i].total(), lengths_[i].total()) << "with five threads";
}

// Without a token for the end of an outline that is followed by an object, an answer that ends with
// the outline is the shorter one.
TEST_F(LongSamplesTest, AreAsLongAsTheLongestOrderOfTheirObjects) {
  Json file = read_json_file(model_ + "/tokenizer.json");
  Json kept = Json::array();
  for (const Json& merge : file["model"]["merges"]) {
    if (merge != Json::array({"\"]]}", ","})) kept.push_back(merge);
  }
  ASSERT_LT(kept.size(), file["model"]["merges"].size());
  file["model"]["merges"] = kept;
  const test::TempDir directory;
  const auto tokenizer = Tokenizer::load(directory.write("tokenizer.json", file.dump()));
  const auto format = make_answer_format("coord_tokens", tokenizer, "x");

  Sample sample = dataset_.samples()[0];  // an outline and two boxes
  std::vector<int> order{0, 1, 2};
  ASSERT_EQ(sample.objects.size(), order.size());
  int longest = 0, shortest = 1 << 20;
  const Prompt prompt = make_prompt(sample, 0, files_.prompts.get(), files_.patches);
  do {
    std::vector<SceneObject> objects;
    for (const int i : order) objects.push_back(sample.objects[static_cast<size_t>(i)]);
    const int length = build_ground_truth_segment(prompt, objects, *format).encoded_len();
    longest = std::max(longest, length);
    shortest = std::min(shortest, length);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_GT(longest, shortest) << "the order matters";
  for (const uint64_t seed : {1u, 2u, 3u, 4u, 5u, 6u}) {
    const MeasureOptions options{.ordering = ObjectOrdering::kRandom,
                                 .seed = seed,
                                 .any_order = true,
                                 .patches = files_.patches};
    EXPECT_EQ(
        measure_samples(dataset_, *files_.prompts, *format, options, [](int64_t) {})[0].total(),
        longest)
        << seed;
  }
}

TEST_F(LongSamplesTest, AreListedTogetherWithALengthThatHoldsThemAll) {
  const int cap = totals_[totals_.size() - 3] - 1;
  const auto num_long =
      std::count_if(totals_.begin(), totals_.end(), [&](int total) { return total > cap; });
  const UserError error = test::catch_user_error([&] { settle(cap); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  const Problem& problem = error.problems()[0];
  EXPECT_NE(problem.error.find(std::to_string(num_long) + " of " + std::to_string(totals_.size())),
            std::string::npos)
      << problem.error;
  for (size_t i = 0; i < lengths_.size(); ++i) {
    const bool is_listed =
        problem.what.find("line " + std::to_string(dataset_.samples()[i].sample_id + 1) + " (" +
                          std::to_string(lengths_[i].total())) != std::string::npos;
    EXPECT_EQ(is_listed, lengths_[i].total() > cap) << i;
  }
  EXPECT_NE(problem.fix.find(std::to_string(totals_.back())), std::string::npos) << problem.fix;
  EXPECT_NE(problem.fix.find("truncation_strategy: delete"), std::string::npos);
}

TEST_F(LongSamplesTest, AreDroppedAndCountedOnRequest) {
  const auto num_samples = dataset_.size();
  const int cap = totals_[totals_.size() - 3] - 1;
  const int64_t num_dropped = settle(cap, LongSamples::kDelete);
  EXPECT_GE(num_dropped, 3);
  EXPECT_EQ(dataset_.size(), num_samples - num_dropped);
  EXPECT_NE(err_.str().find("dropped " + std::to_string(num_dropped)), std::string::npos)
      << err_.str();
  for (const SampleLength& length : measure(1)) EXPECT_LE(length.total(), cap);
  EXPECT_EQ(settle(cap), 0) << "what is left fits";
}

TEST_F(LongSamplesTest, CannotAllBeDropped) {
  EXPECT_NE(test::catch_user_error([&] { settle(5, LongSamples::kDelete); })
                .problems()[0]
                .fix.find("global_max_length"),
            std::string::npos);
}

TEST_F(LongSamplesTest, AreNotMeasuredWithoutACap) {
  EXPECT_EQ(settle(0), 0);
  EXPECT_TRUE(err_.str().empty());
}

TEST_F(LongSamplesTest, MayGrowWithARolloutInStage2) {
  settle(totals_.back());
  EXPECT_EQ(err_.str().find("warning"), std::string::npos) << "stage 1 has no rollouts";
  variant_ = TrainerVariant::kRolloutMatching;
  settle(totals_.back());
  EXPECT_NE(err_.str().find("up to " + std::to_string(totals_.back() + 40) +
                            " tokens; such a segment is an error"),
            std::string::npos)
      << err_.str();
  err_.str("");
  on_bad_sample_ = OnBadSample::kSkip;
  settle(totals_.back());
  EXPECT_NE(err_.str().find("such a segment is left out"), std::string::npos) << err_.str();
}

TEST_F(LongSamplesTest, DoNotGrowWhenTheSegmentExcludesTheRollout) {
  variant_ = TrainerVariant::kRolloutMatching;
  policy_ = "rewrite";
  settle(totals_.back());
  EXPECT_EQ(err_.str().find("warning"), std::string::npos) << err_.str();
}

}  // namespace rematch
