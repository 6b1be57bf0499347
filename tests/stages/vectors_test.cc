// The contract's example vectors through the stage objects, in process; numbers agree within 1e-9.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "support/paths.h"
#include "tools/stages/stage.h"

namespace rematch {
namespace {

bool same(const Json& expected, const Json& found) {
  if (expected.is_number() && found.is_number() &&
      (expected.is_number_float() || found.is_number_float())) {
    const double a = expected.get<double>(), b = found.get<double>();
    return std::abs(a - b) <= std::max(1e-9, 1e-9 * std::max(std::abs(a), std::abs(b)));
  }
  if (expected.is_object()) {
    if (!found.is_object()) return false;
    for (const auto& member : expected.items()) {
      if (!found.contains(member.key()) || !same(member.value(), found[member.key()])) return false;
    }
    return true;
  }
  if (expected.is_array()) {
    if (!found.is_array() || expected.size() != found.size()) return false;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!same(expected[i], found[i])) return false;
    }
    return true;
  }
  return expected == found;
}

void expect_all_lines_agree(const std::string& name, Stage& stage) {
  std::istringstream lines(read_file(test::source_path("tests/golden/vectors/" + name + ".jsonl")));
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    const Json row = parse_json(line, name);
    Json found;
    try {
      found = stage.run(row["input"]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << " '" << row["id"] << "': " << error.what();
      continue;
    }
    for (const auto& member : row["expect"].items()) {
      EXPECT_TRUE(found.contains(member.key()) && same(member.value(), found[member.key()]))
          << name << " '" << row["id"] << "' " << member.key() << ": expected " << member.value()
          << ", got " << (found.contains(member.key()) ? found[member.key()] : Json());
    }
  }
  EXPECT_GT(count, 0) << name;
}

StageOptions with_golden_tokenizer() {
  StageOptions options;
  options.model_dir = test::source_path("tests/golden/tokenizer");
  return options;
}

/// @param tokenizer  directory in tests/golden
StageOptions digits_with(const std::string& tokenizer) {
  return {.model_dir = test::source_path("tests/golden/" + tokenizer),
          .answer_format = "qwen_json"};
}

}  // namespace

TEST(Vectors, SecondImplementationOfParseAgrees) {
  expect_all_lines_agree("random_parse", *make_parse_stage(with_golden_tokenizer()));
}

TEST(Vectors, SecondImplementationOfTargetsAgrees) {
  expect_all_lines_agree("random_segment", *make_segment_stage(with_golden_tokenizer()));
}

TEST(Vectors, ParseAgrees) {
  expect_all_lines_agree("parse", *make_parse_stage(with_golden_tokenizer()));
}

TEST(Vectors, MatchAgrees) { expect_all_lines_agree("match", *make_match_stage({})); }

TEST(Vectors, SegmentAgrees) {
  expect_all_lines_agree("segment", *make_segment_stage(with_golden_tokenizer()));
}

TEST(Vectors, RewrittenSegmentsAgree) {
  expect_all_lines_agree("segment_rewrite", *make_segment_stage(with_golden_tokenizer()));
}

TEST(Vectors, DigitAnswersAgree) {
  expect_all_lines_agree("parse_qwen", *make_parse_stage(digits_with("tokenizer")));
  expect_all_lines_agree("segment_qwen", *make_segment_stage(digits_with("tokenizer")));
}

TEST(Vectors, DigitAnswersAgreeForTokensWithPunctuation) {
  expect_all_lines_agree("segment_qwen_merged",
                         *make_segment_stage(digits_with("tokenizer_merged")));
}

TEST(Vectors, PackAgrees) { expect_all_lines_agree("pack", *make_pack_stage({})); }

}  // namespace rematch
