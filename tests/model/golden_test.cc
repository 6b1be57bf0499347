#include <gtest/gtest.h>

#include "model/oracle_cases.h"
#include "support/paths.h"

namespace rematch {

TEST(Qwen3VLGolden, TiedCheckpointGivesTransformersLogitsAndGradients) {
  test::expect_equals_transformers(test::source_path("tests/golden/model/tiny_tied"));
}

TEST(Qwen3VLGolden, UntiedCheckpointGivesTransformersLogitsAndGradients) {
  test::expect_equals_transformers(test::source_path("tests/golden/model/tiny_untied"));
}

TEST(Qwen25VLGolden, TiedCheckpointGivesTransformersLogitsAndGradients) {
  test::expect_equals_transformers(test::source_path("tests/golden/model/windows_tied"));
}

TEST(Qwen25VLGolden, UntiedCheckpointGivesTransformersLogitsAndGradients) {
  test::expect_equals_transformers(test::source_path("tests/golden/model/windows_untied"));
}

// Acceptance (a), (d) and (e) of Qwen3.5. Also texts of 1, 3, 4, 63, 64, 65 and 200 tokens, stored
// in bfloat16 with some tensors in float32.
TEST(Qwen35Golden, TiedCheckpointGivesTransformersLogitsAndGradients) {
  ASSERT_EQ(
      test::OracleAnswers(test::source_path("tests/golden/model/delta_tied")).length_cases().size(),
      7u);
  test::expect_equals_transformers(test::source_path("tests/golden/model/delta_tied"));
}

TEST(Qwen35Golden, UntiedCheckpointGivesTransformersLogitsAndGradients) {
  test::expect_equals_transformers(test::source_path("tests/golden/model/delta_untied"));
}

}  // namespace rematch
