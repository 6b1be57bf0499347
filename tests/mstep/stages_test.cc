// `rematch-stages stage loss` and `grad`, through the same door as the command line.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/flow/sample.h"
#include "base/json.h"
#include "model/checkpoint/safetensors.h"
#include "support/paths.h"
#include "tool_stages.h"

namespace rematch {
namespace {

constexpr int kVocab = 1100;

struct Answered {
  std::vector<Json> lines;
  int exit_code = 0;
};

Answered answer(Stage& stage, const std::vector<Json>& inputs) {
  std::string text;
  for (const Json& input : inputs) text += input.dump() + "\n";
  std::istringstream in(text);
  std::ostringstream out;
  Answered answered;
  answered.exit_code = run_stage(stage, 1, in, out);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);)
    answered.lines.push_back(parse_json(line, "answer"));
  return answered;
}

std::vector<int> coord_ids() {
  std::vector<int> ids;
  for (int bin = 0; bin < kNumBins; ++bin) ids.push_back(bin + 100);
  return ids;
}

std::string write_logits(const test::TempDir& directory, const at::Tensor& logits_TV) {
  const std::string path = directory.file("logits.safetensors");
  write_safetensors(path, {{"logits", logits_TV}});
  return path;
}

Json loss_input(const std::string& path) {
  return {{"id", "a"},
          {"logits", path},
          {"labels", {-100, 5, -100}},
          {"coord_slots", {{2, 999, "append"}}},
          {"coord_token_ids", coord_ids()}};
}

std::string error_kind(const Json& line) {
  return line.contains("error") ? line["error"]["kind"].get<std::string>() : "none";
}

}  // namespace

TEST(LossStage, GivesTheMeansOfUniformLogits) {
  const test::TempDir directory;
  const auto stage = make_loss_stage({});
  const Answered answered =
      answer(*stage, {loss_input(write_logits(directory, at::zeros({3, kVocab})))});
  ASSERT_EQ(answered.exit_code, 0);
  const Json& line = answered.lines[0];
  EXPECT_EQ(line["id"], "a");
  EXPECT_EQ(line["ce_count"], 1);
  EXPECT_EQ(line["coord_count"], 1);
  EXPECT_NEAR(line["ce"].get<double>(), std::log(kVocab), 1e-6);
  EXPECT_NEAR(line["soft_ce"].get<double>(), std::log(1000.0), 1e-6);
  EXPECT_NEAR(line["gate"].get<double>(), std::log(1.1), 1e-6);
  EXPECT_NEAR(line["coord"].get<double>(),
              line["soft_ce"].get<double>() + line["w1"].get<double>() + line["gate"].get<double>(),
              1e-12);
  EXPECT_NEAR(line["loss"].get<double>(), line["ce"].get<double>() + line["coord"].get<double>(),
              1e-12);
}

TEST(LossStage, TakesTheOptionsAndNoSupervisionIsZero) {
  const test::TempDir directory;
  const auto stage = make_loss_stage({});
  const std::string path = write_logits(directory, at::zeros({3, kVocab}));
  Json weighted = loss_input(path);
  weighted["options"] = {{"soft_ce_weight", 0}, {"w1_weight", 0},
                         {"gate_weight", 2},    {"temperature_coord", 0.5},
                         {"target_sigma", 3},   {"target_truncate", nullptr}};
  const Json masked = {{"logits", path},
                       {"labels", {-100, -100, -100}},
                       {"coord_slots", Json::array()},
                       {"coord_token_ids", coord_ids()}};
  const Answered answered = answer(*stage, {weighted, masked});
  ASSERT_EQ(answered.exit_code, 0);
  EXPECT_NEAR(answered.lines[0]["coord"].get<double>(), 2 * std::log(1.1), 1e-6);
  EXPECT_EQ(answered.lines[1]["loss"], 0.0);
  EXPECT_EQ(answered.lines[1]["ce_count"], 0);
}

TEST(LossStage, ShowsANonFiniteLossAsNull) {
  const test::TempDir directory;
  const auto stage = make_loss_stage({});
  const Answered answered =
      answer(*stage, {loss_input(write_logits(directory, at::full({3, kVocab}, std::nan(""))))});
  EXPECT_TRUE(answered.lines[0]["ce"].is_null());
  // slots are sanitised
  EXPECT_NEAR(answered.lines[0]["soft_ce"].get<double>(), std::log(1000.0), 1e-6);
}

TEST(LossStage, RefusesInvalidLinesAndContinues) {
  const test::TempDir directory;
  const auto stage = make_loss_stage({});
  const std::string path = write_logits(directory, at::zeros({3, kVocab}));
  const auto with = [&](const char* key, const Json& value) {
    Json input = loss_input(path);
    input[key] = value;
    return input;
  };
  std::vector<int> twice = coord_ids();
  twice[7] = twice[8];
  const std::vector<Json> bad = {with("labels", {-100, 5}),
                                 with("labels", {5, -100, -100}),
                                 with("labels", {-100, kVocab, -100}),
                                 with("labels", {-100, -1, -100}),
                                 with("coord_slots", {{0, 1, "append"}}),
                                 with("coord_slots", {{3, 1, "append"}}),
                                 with("coord_slots", {{1, 1000, "append"}}),
                                 with("coord_slots", {{1, -1, "append"}}),
                                 with("coord_slots", {{1, 1, "middle"}}),
                                 with("coord_slots", {{1, 1}}),
                                 with("coord_slots", {{1, 1, "append"}}),
                                 with("coord_slots", {{2, 1, "append"}, {2, 2, "append"}}),
                                 with("coord_slots", 3),
                                 with("coord_slots", {{18446744073709551615ull, 1, "append"}}),
                                 with("coord_token_ids", {1, 2}),
                                 with("coord_token_ids", twice),
                                 with("logits", directory.file("absent.safetensors")),
                                 with("options", {{"target_sigma", 0}}),
                                 with("options", {{"temperature_coord", -1}}),
                                 with("options", {{"target_truncate", -1}}),
                                 with("options", {{"sigma", 2}}),
                                 with("extra", 1)};
  for (const Json& input : bad) {
    const Answered answered = answer(*stage, {input, loss_input(path)});
    EXPECT_EQ(answered.exit_code, 3) << input.dump().substr(0, 120);
    ASSERT_EQ(answered.lines.size(), 2u);
    EXPECT_NE(error_kind(answered.lines[0]), "none") << input.dump().substr(0, 120);
    EXPECT_EQ(error_kind(answered.lines[1]), "none");
  }
  const test::TempDir other;
  write_safetensors(other.file("other.safetensors"), {{"hidden", at::zeros({3, kVocab})}});
  EXPECT_EQ(error_kind(answer(*stage, {with("logits", other.file("other.safetensors"))}).lines[0]),
            "data");
  write_safetensors(other.file("flat.safetensors"), {{"logits", at::zeros({kVocab})}});
  EXPECT_EQ(error_kind(answer(*stage, {with("logits", other.file("flat.safetensors"))}).lines[0]),
            "data");
}

TEST(GradStage, WritesAGradientForEveryParameterAndRepeatsItself) {
  const test::TempDir directory;
  StageOptions options;
  options.model_dir = test::source_path("tests/golden/model/tiny_tied");
  options.output_dir = directory.path();
  const auto stage = make_grad_stage(options);
  const auto segment = [](std::vector<int> ids, std::vector<int> labels, Json slots) {
    return Json{
        {"token_ids", ids}, {"images", Json::array()}, {"labels", labels}, {"coord_slots", slots}};
  };
  const Json one = segment({3, 4, 5, 6}, {-100, -100, 5, -100}, {{3, 12, "prefix"}});
  const Json two = segment({7, 8, 9}, {-100, 8, 9}, Json::array());
  const Answered answered = answer(
      *stage, {{{"id", "x"}, {"segments", {one, two}}}, {{"id", "y"}, {"segments", {two, one}}}});
  ASSERT_EQ(answered.exit_code, 0) << answered.lines[0].dump();
  const Json& x = answered.lines[0];
  EXPECT_NEAR(x["loss"].get<double>(), x["ce"].get<double>() + x["coord"].get<double>(), 1e-12);
  EXPECT_NEAR(x["loss"].get<double>(), answered.lines[1]["loss"].get<double>(), 1e-5);

  const auto model = SafetensorsFile::open(options.model_dir + "/model.safetensors");
  const auto gradients = SafetensorsFile::open(x["file"].get<std::string>());
  const auto swapped = SafetensorsFile::open(answered.lines[1]["file"].get<std::string>());
  double norm = 0;
  for (const std::string& name : gradients->names()) {
    EXPECT_TRUE(model->has(name)) << name;
    EXPECT_EQ(gradients->dtype(name), at::kFloat);
    const at::Tensor gradient = gradients->tensor(name);
    norm += gradient.norm().item<double>();
    // a line leaves nothing behind for the next
    EXPECT_TRUE(at::allclose(gradient, swapped->tensor(name), 1e-3, 1e-6)) << name;
  }
  EXPECT_GT(norm, 0.0);
  // text only
  EXPECT_EQ(
      gradients->tensor("model.visual.patch_embed.proj.weight").count_nonzero().item<int64_t>(), 0);
}

TEST(GradStage, RefusesSegmentsThatDoNotFit) {
  const test::TempDir directory;
  StageOptions options;
  options.model_dir = test::source_path("tests/golden/model/tiny_tied");
  options.output_dir = directory.path();
  const auto stage = make_grad_stage(options);
  const std::vector<Json> bad = {
      {{"segments", Json::array()}},
      {{"segments", 3}},
      {{"segments", {{{"token_ids", Json::array()}, {"labels", Json::array()}}}}},
      {{"segments", {{{"token_ids", {1, 2}}, {"labels", {-100, 99999}}}}}},
      {{"segments", {{{"token_ids", {1, 99999}}, {"labels", {-100, 1}}}}}},
      {{"segments", {{{"token_ids", {1, 2}}, {"labels", {-100, 1}}, {"images", "x.png"}}}}},
      {{"segments", {{{"token_ids", {1, 2}}, {"labels", {-100, 1}}, {"images", {"absent.png"}}}}}},
      {{"segments", {{{"token_ids", {1, 366}}, {"labels", {-100, 1}}}}}},  // a pad without an image
      {{"segments", {{{"token_ids", {1, 2}}, {"labels", {-100, 1}}, {"mask", 1}}}}},
  };
  for (const Json& input : bad)
    EXPECT_NE(error_kind(answer(*stage, {input}).lines.at(0)), "none") << input.dump();
}

}  // namespace rematch
