// `rematch explain`: keys, metrics, words of tables, and searches.
#include <gtest/gtest.h>

#include <algorithm>

#include "e2e/program.h"

namespace rematch {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(Explain, KnowsKeysEndsSectionsAndMetrics) {
  test::Program program;
  EXPECT_TRUE(has(program.run("explain training.learning_rate").out, "number, default"));
  EXPECT_TRUE(has(program.run("explain max_new_tokens").out,
                  "custom.extra.rollout_matching.max_new_tokens"));
  EXPECT_TRUE(has(program.run("explain tuner").out, "lora_rank"));
  EXPECT_TRUE(has(program.run("explain rollout/f1").out, "metric"));
  EXPECT_TRUE(has(program.run("explain f1").out, "rollout/f1 (metric)"));
  EXPECT_TRUE(has(program.run("explain offload").out, "custom.extra.rollout_matching.offload:"));
  const test::ProcessResult both = program.run("explain learning_rate");
  EXPECT_TRUE(has(both.out, "learning_rate (metric)") && has(both.out, "training.learning_rate\n"))
      << both.out;
  const test::ProcessResult unknown = program.run("explain training.learning_rte");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(has(unknown.err, "learning_rate")) << unknown.err;
  EXPECT_EQ(program.run("explain").exit_code, 2);
  EXPECT_FALSE(has(program.run("explain mAP").out, "answer_format")) << "a word of the field";
  const test::ProcessResult image_only = program.run("predict photo.jpg");
  EXPECT_TRUE(has(image_only.err, "see `rematch predict --help`")) << image_only.err;
}

TEST(Explain, KnowsTheWordsThatTablesPrint) {
  test::Program program;
  const auto first_line = [&](const std::string& words) {
    const std::string out = program.run("explain " + words).out;
    return out.substr(0, out.find('\n'));
  };
  for (const char* words :
       {"neighbours in sorted order", "found by 8 samples", "of these found by samples"})
    EXPECT_EQ(first_line(words), words);
  EXPECT_EQ(first_line("label F1@.5"), "rollout/f1_labels (metric)");
  const std::string f1 = program.run("explain F1").out;
  EXPECT_TRUE(has(f1, "IoU")) << f1;
  EXPECT_TRUE(has(f1, "rollout/f1 (metric)")) << f1;
  EXPECT_FALSE(has(f1, "bf16")) << f1;
  EXPECT_TRUE(has(program.run("explain weights").out, "`model.model`"));
}

TEST(Explain, SearchesNamesAndMeanings) {
  test::Program program;
  for (const auto& [query, first] : std::vector<std::pair<std::string, std::string>>{
           {"lr", "lr: use `training.learning_rate`\n\ntraining.learning_rate\n"},
           {"mAP", "coco_ap (metric)\n"},
           {"epochs", "epochs: use `training.num_train_epochs`\n\ntraining.num_train_epochs\n"},
           {"early", "training.early_stopping_patience\n"},
           {"batch size", "batch size: use `training.effective_batch_size`"},
           {"repeated", ""},
           {"malformed answers", "rollout/parse_malformed_rate (metric)\n"},
           {"'F1 @ IoU 0.5'", "rollout/f1 (metric)\n"},
           {"COCO AR", "coco_ar_100 (metric)\n"},
           {"tuner", "tuner:\n  train_type\n    full fine-tuning"},
           {"load_in_4bit", "model.load_in_4bit\n"},
           {"mosaic", "mosaic: Rematch never joins"},
           {"load_in_8bit", "load_in_8bit: "}}) {
    const test::ProcessResult result = program.run("explain " + query);
    EXPECT_EQ(result.exit_code, 0) << query << result.err;
    EXPECT_TRUE(result.out.starts_with(first)) << query << "\n" << result.out;
  }
  EXPECT_TRUE(has(program.run("explain qqqqqqqqq").err, "try a word such as batch"));
}

TEST(Explain, ASentenceAnswersWordsOfHeadsAndPages) {
  test::Program program;
  for (const auto& [word, part] : std::vector<std::pair<std::string, std::string>>{
           {"malformed", "rollout/parse_malformed_rate"},
           {"conf", "--min-score"},
           {"calibration", "rematch eval"},
           {"probe", "docs/probe.md"},
           {"neighbours", "0.5 is chance"},
           {"score", "share of boxes"},
           {"stage 2", "rollout_matching_sft"}}) {
    const std::string out = program.run("explain " + word).out;
    EXPECT_TRUE(has(out, part)) << word << "\n" << out;
    EXPECT_LT(std::count(out.begin(), out.end(), '\n'), 12) << out;
  }
}

}  // namespace rematch
