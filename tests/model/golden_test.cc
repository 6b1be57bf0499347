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

}  // namespace rematch
