// Answers of the stage pack, also to wrong lines.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "support/capture.h"
#include "tools/stages/stage.h"

namespace rematch {
namespace {

Json run_pack(const std::string& input) {
  return make_pack_stage({})->run(parse_json(input, "input"));
}

// The kind of error a line gives; its text must name every one of `mentions`.
ErrorKind refused_pack(const std::string& input, const std::vector<std::string>& mentions) {
  const UserError error = test::catch_user_error([&] { run_pack(input); });
  for (const std::string& mention : mentions) {
    EXPECT_NE(std::string(error.what()).find(mention), std::string::npos) << input << "\n"
                                                                          << error.what();
  }
  EXPECT_FALSE(error.problems()[0].fix.empty());
  return error.kind();
}

}  // namespace

TEST(PackStage, ReportsTheSegmentsAndFillOfTheRow) {
  const Json answer = run_pack(
      R"({"encoded_lens": [30, 20, 41, 9], "packing_length": 80, "packing_selector": "optimal"})");
  EXPECT_EQ(answer["selected"], Json::parse("[0, 2, 3]"));
  EXPECT_EQ(answer["total"], 80);
  EXPECT_EQ(answer["fill"].get<double>(), 1.0);
}

TEST(PackStage, UsesBinpackingByDefault) {
  const std::string line = R"({"encoded_lens": [1, 6, 5, 4], "packing_length": 10)";
  EXPECT_EQ(run_pack(line + "}")["selected"], Json::parse("[0, 2, 3]"));
  EXPECT_EQ(run_pack(line + R"(, "packing_selector": "fifo"})")["selected"], Json::parse("[0, 1]"));
}

TEST(PackStage, NothingWaitingGivesAnEmptyRow) {
  const Json answer = run_pack(R"({"encoded_lens": [], "packing_length": 80})");
  EXPECT_EQ(answer["selected"], Json::array());
  EXPECT_EQ(answer["total"], 0);
  EXPECT_EQ(answer["fill"].get<double>(), 0.0);
}

TEST(PackStage, ABufferMayBeFullButNotOverflow) {
  EXPECT_EQ(
      run_pack(R"({"encoded_lens": [3, 4], "packing_length": 9, "packing_buffer": 2})")["total"],
      7);
  EXPECT_EQ(refused_pack(R"({"encoded_lens": [3, 4, 5], "packing_length": 9, "packing_buffer": 2})",
                         {"packing_buffer 2", "3", "raise `training.packing_buffer`"}),
            ErrorKind::kConfig);
}

TEST(PackStage, RefusesASegmentLongerThanTheRowBeforeItCountsTheBuffer) {
  EXPECT_EQ(
      refused_pack(R"({"encoded_lens": [3, 4, 10], "packing_length": 9, "packing_buffer": 2})",
                   {"encoded_lens[2]", "10", "9", "global_max_length", "max_new_tokens",
                    "training.packing: false"}),
      ErrorKind::kData);
}

TEST(PackStage, NamesWhatIsWrongWithALine) {
  EXPECT_EQ(refused_pack(R"({"encoded_lens": [3, 0], "packing_length": 9})",
                         {"encoded_lens[1]", "at least one token"}),
            ErrorKind::kData);
  EXPECT_EQ(refused_pack(R"({"encoded_lens": [3, -2], "packing_length": 9})", {"-2"}),
            ErrorKind::kData);
  EXPECT_EQ(refused_pack(R"({"encoded_lens": [3.5], "packing_length": 9})", {"3.5", "integers"}),
            ErrorKind::kData);
  EXPECT_EQ(refused_pack(R"({"encoded_lens": 3, "packing_length": 9})", {"integers"}),
            ErrorKind::kData);
  EXPECT_EQ(refused_pack(R"({"encoded_lens": [3]})", {"packing_length"}), ErrorKind::kData);
  EXPECT_EQ(refused_pack(R"({"packing_length": 9})", {"encoded_lens"}), ErrorKind::kData);
  EXPECT_EQ(refused_pack(R"({"encoded_lens": [3], "packing_length": 0})",
                         {"packing_length must be at least 1"}),
            ErrorKind::kConfig);
  EXPECT_EQ(refused_pack(R"({"encoded_lens": [3], "packing_length": 9, "packing_buffer": 0})",
                         {"packing_buffer must be at least 1"}),
            ErrorKind::kConfig);
  EXPECT_EQ(refused_pack(R"({"encoded_lens": [3], "packing_length": 9, "packing_buffr": 3})",
                         {"did you mean \"packing_buffer\""}),
            ErrorKind::kConfig);
  EXPECT_EQ(
      refused_pack(R"({"encoded_lens": [3], "packing_length": 9, "packing_selector": "best"})",
                   {"best", "binpacking", "optimal", "fifo", "training.packing: false"}),
      ErrorKind::kConfig);
}

TEST(PackStage, ContinuesAfterAWrongLine) {
  std::istringstream in(R"({"id": "a", "encoded_lens": [9], "packing_length": 4}
{"id": "b", "encoded_lens": [3], "packing_length": 4}
)");
  std::ostringstream out;
  const auto stage = make_pack_stage({});
  EXPECT_EQ(run_stage(*stage, 1, in, out), 3);
  EXPECT_NE(out.str().find(R"({"id":"b","selected":[0],"total":3,"fill":0.75})"), std::string::npos)
      << out.str();
}

}  // namespace rematch
