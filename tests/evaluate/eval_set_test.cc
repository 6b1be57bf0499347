#include "learn/evaluate/eval_set.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace rematch {

TEST(EvalSet, TextDependsOnEveryPart) {
  const EvalSet set{.num_records = 32,
                    .records = "9f3c",
                    .labels = "normalized",
                    .system_prompt = "a",
                    .user_prompt = "b"};
  EXPECT_EQ(eval_set_text(set).find("32 records 9f3c, labels normalized, prompts "), 0u);
  for (const auto& change : std::vector<std::function<void(EvalSet&)>>{
           [](EvalSet& one) { one.num_records = 4; }, [](EvalSet& one) { one.records = "1"; },
           [](EvalSet& one) { one.labels = "exact"; }, [](EvalSet& one) { one.user_prompt = "c"; },
           [](EvalSet& one) { one.system_prompt = "ab", one.user_prompt = ""; },
           [](EvalSet& one) { one.scoring = "temperature 0.9"; }}) {
    EvalSet other = set;
    change(other);
    EXPECT_NE(eval_set_text(other), eval_set_text(set));
  }
}

TEST(EvalSet, ShowsAReaderTheCountAndNamesWhatDiffers) {
  const std::string set = "32 records 9f3c, labels normalized, prompts 5d";
  EXPECT_EQ(shown_eval_set(set), "32 records");
  using Names = std::vector<std::string>;
  EXPECT_EQ(eval_set_differences(set, set), Names());
  EXPECT_EQ(eval_set_differences(set, "4 records 9f3c, labels normalized, prompts 5d"),
            Names{"records"});
  EXPECT_EQ(eval_set_differences(set, "32 records 9f3c, labels a, b, prompts 6d"),
            (Names{"label_match", "prompts"}));
  EXPECT_EQ(eval_set_differences(set, set + ", scoring 1b"), Names{"decoding or matching"});
}

}  // namespace rematch
