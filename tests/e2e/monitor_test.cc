// Pictures and texts that a training writes as it runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "e2e/program.h"

namespace rematch {
namespace {

constexpr const char* kMonitor =
    "custom: {extra: {rollout_matching: {monitor_dump: {enabled: true, every_steps: 2, "
    "dump_first_step: true, max_samples: 3}}}}\n";

int64_t files_in(const std::string& directory) {
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    count += entry.is_regular_file();
  return count;
}

}  // namespace

TEST(Monitor, DumpsPicturesAndTextsWithoutChangingTheRun) {
  test::Program program;
  ASSERT_EQ(program.run("train " + program.config("training: {max_steps: 3}\n")).exit_code, 0);
  const std::string plain = read_file(program.run_dir() + "/checkpoint-3/model.safetensors");
  std::filesystem::remove_all(program.run_dir());
  const test::ProcessResult result =
      program.run("train " + program.config(std::string("training: {max_steps: 3}\n") + kMonitor));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_file(program.run_dir() + "/checkpoint-3/model.safetensors"), plain);
  const std::string monitor = program.run_dir() + "/monitor";
  EXPECT_EQ(files_in(monitor), 4);  // steps 1 and 2, a picture and a text each
  EXPECT_EQ(read_file(monitor + "/step_000001.png").substr(1, 3), "PNG");
  const std::string text = read_file(monitor + "/step_000002.md");
  for (const char* part : {"step_000002.png", "```diff", "+ ", "line "})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(files_in(program.run_dir() + "/completions"), 2);
  EXPECT_NE(result.err.find("pictures: steps waited"), std::string::npos) << result.err;
}

TEST(Monitor, CompletionsAreJsonLinesWithTheColumnsOfTrl) {
  test::Program program;
  const test::ProcessResult result =
      program.run("train " + program.config(std::string("training: {max_steps: 1}\n") + kMonitor));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string path = program.run_dir() + "/completions/step_000001.jsonl";
  std::vector<std::string> lines = split(read_file(path), '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  EXPECT_EQ(lines.size(), 3u);
  for (const std::string& line : lines) {
    const Json answer = parse_json(line, path);
    std::vector<std::string> columns;
    for (const auto& item : answer.items()) columns.push_back(item.key());
    EXPECT_EQ(columns, (std::vector<std::string>{"step", "prompt", "completion", "f1", "f1_labels",
                                                 "advantage"}));
    EXPECT_EQ(answer["step"], 1);
    EXPECT_TRUE(answer["prompt"].is_string() && answer["completion"].is_string());
    EXPECT_TRUE(answer["f1"].is_number_float() && answer["advantage"].is_number_float())
        << "a column has one type in every file";
  }
}

// Skipped where the Python of the oracles lacks a reader.
TEST(Monitor, PandasAndTensorboardReadWhatItWrites) {
  test::Program program;
  const test::ProcessResult result = program.run(
      "train " +
      program.config(std::string("training: {max_steps: 3, report_to: tensorboard}\n") + kMonitor));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const test::ProcessResult read =
      test::run_command(test::source_path(".venv/bin/python") + " " +
                        test::source_path("tests/e2e/read_monitor.py") + " " + program.run_dir());
  if (read.exit_code == 77) GTEST_SKIP() << read.out;
  EXPECT_EQ(read.exit_code, 0) << read.out << read.err;
}

TEST(Monitor, StopsAtItsLimitAndWritesToTheGivenDirectory) {
  test::Program program;
  const test::ProcessResult result =
      program.run("train " + program.config("custom: {extra: {rollout_matching: {monitor_dump: "
                                            "{enabled: true, every_steps: 1, max_events: "
                                            "1, out_dir: shots, write_markdown: false}}}}\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(files_in(program.dir().file("shots")), 1);
}

}  // namespace rematch
