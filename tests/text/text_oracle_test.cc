#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "model/text/tokenizer.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

TEST(TokenizerOracle, AgreesOnFreshStrings) {
  const std::string python = test::source_path(".venv/bin/python");
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no .venv/bin/python (run scripts/setup)";
  if (test::run_command(python + " -c 'import tokenizers'").exit_code != 0) {
    GTEST_SKIP() << "the Python package tokenizers is not installed";
  }
  // Another day, other strings; the seed is in the message of a failure.
  const auto day = std::chrono::duration_cast<std::chrono::hours>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count() /
                   24;
  const auto result = test::run_command("cd " + test::source_path(".") + " && " + python +
                                        " dev/goldens/text_tokenizer.py " + std::to_string(day));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto first = Tokenizer::load(test::source_path("tests/golden/tokenizer"));
  const auto second = Tokenizer::load(test::source_path("tests/golden/text_tokenizer/second.json"));
  int num_rows = 0;
  for (const std::string& line : split(result.out, '\n')) {
    if (line.empty()) continue;
    const Json row = parse_json(line, "oracle");
    const std::string& text = row["text"].get_ref<const std::string&>();
    EXPECT_EQ(first->encode(text), row["first"].get<std::vector<int>>())
        << "seed " << day << ": " << row["text"].dump(-1, ' ', true);
    EXPECT_EQ(second->encode(text), row["second"].get<std::vector<int>>())
        << "seed " << day << ": " << row["text"].dump(-1, ' ', true);
    ++num_rows;
  }
  EXPECT_EQ(num_rows, 2000);
}

}  // namespace rematch
