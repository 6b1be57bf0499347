#include "model/checkpoint/state_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "model/checkpoint/safetensors.h"
#include "support/capture.h"
#include "support/paths.h"
#include "support/state_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

StateFiles small_state() {
  return {.run = std::string("run\0\xff", 5),
          .optimizer = {{"a.exp_avg", at::arange(6, at::kFloat).reshape({2, 3})},
                        {"a.num_steps", at::full({}, 7, at::kLong)}}};
}

/// A checkpoint with weights and a training state.
std::string write_checkpoint(const test::TempDir& dir, const std::string& name = "checkpoint-3") {
  const std::string path = dir.file(name);
  fs::create_directories(path);
  write_safetensors(path + "/model.safetensors", {{"w", at::full({4}, 0.5)}});
  write_file_atomic(path + "/config.json", "{}");
  for (const char* name : {"/README.md", "/rematch_scores.json"})
    write_file_atomic(path + name, "hello");
  test::write_state_files(path, small_state());
  write_file_atomic(path + "/trainer_state.json", "{}");
  return path;
}

void flip_a_bit(const std::string& path) {
  std::string content = read_file(path);
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  write_file_atomic(path, content);
}

Problem problem_of_state(const std::string& checkpoint) {
  const UserError error = test::catch_user_error([&] { read_state_shards(checkpoint); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].fix.find("model.model"), std::string::npos) << error.what();
  return error.problems()[0];
}

}  // namespace

TEST(StateFiles, RoundTrips) {
  const test::TempDir dir;
  const StateFiles expected = small_state();
  const StateFiles state = read_state_shards(write_checkpoint(dir)).front();
  EXPECT_EQ(state.run, expected.run);
  ASSERT_EQ(state.optimizer.size(), expected.optimizer.size());
  for (const auto& [name, tensor] : expected.optimizer) {
    const auto found =
        std::find_if(state.optimizer.begin(), state.optimizer.end(),
                     [&name = name](const auto& item) { return item.first == name; });
    ASSERT_NE(found, state.optimizer.end()) << name;
    EXPECT_EQ(found->second.scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(at::equal(found->second, tensor)) << name;
  }
}

TEST(StateFiles, NoTensorsAtAllIsFine) {
  const test::TempDir dir;
  fs::create_directories(dir.file("c"));
  test::write_state_files(dir.file("c"), {});
  EXPECT_TRUE(read_state_shards(dir.file("c")).front().optimizer.empty());
}

TEST(StateFiles, ATruncatedFileIsNamedWithBothSizes) {
  for (const char* file :
       {"training_state/state.bin", "training_state/optimizer.safetensors", "model.safetensors"}) {
    const test::TempDir dir;
    const std::string checkpoint = write_checkpoint(dir);
    const auto size = fs::file_size(checkpoint + "/" + file);
    fs::resize_file(checkpoint + "/" + file, size - 1);
    const Problem problem = problem_of_state(checkpoint);
    EXPECT_EQ(problem.error, "a file of a checkpoint is truncated");
    EXPECT_EQ(problem.where, checkpoint + "/" + file);
    EXPECT_EQ(problem.what,
              "expected " + std::to_string(size) + " bytes, found " + std::to_string(size - 1));
  }
}

TEST(StateFiles, AMissingFileIsNamed) {
  for (const char* file : {"training_state/state.bin", "training_state/optimizer.safetensors",
                           "training_state/manifest.json", "model.safetensors", "config.json"}) {
    const test::TempDir dir;
    const std::string checkpoint = write_checkpoint(dir);
    fs::remove(checkpoint + "/" + file);
    const Problem problem = problem_of_state(checkpoint);
    EXPECT_EQ(problem.where, checkpoint + "/" + file);
  }
}

TEST(StateFiles, AChangedBitIsFoundInEveryFile) {
  for (const char* file :
       {"training_state/state.bin", "training_state/optimizer.safetensors", "model.safetensors"}) {
    const test::TempDir dir;
    const std::string checkpoint = write_checkpoint(dir);
    flip_a_bit(checkpoint + "/" + file);
    const Problem problem = problem_of_state(checkpoint);
    EXPECT_EQ(problem.where, checkpoint + "/" + file);
    EXPECT_NE(problem.what.find("hash "), std::string::npos);
  }
}

TEST(StateFiles, AFileOfAnotherCheckpointIsFound) {
  const test::TempDir dir;
  const std::string checkpoint = write_checkpoint(dir);
  StateFiles other = small_state();
  other.optimizer[0].second.add_(1);
  fs::create_directories(dir.file("other"));
  test::write_state_files(dir.file("other"), other);
  fs::copy_file(dir.file("other/training_state/optimizer.safetensors"),
                checkpoint + "/training_state/optimizer.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(problem_of_state(checkpoint).error,
            "a file of a checkpoint was changed or belongs to another checkpoint");
}

TEST(StateFiles, AFileThatDoesNotBelongThereIsFound) {
  const test::TempDir dir;
  const std::string checkpoint = write_checkpoint(dir);
  write_file_atomic(checkpoint + "/training_state/.nfs0001", "");
  EXPECT_NO_THROW(verify_state_files(checkpoint));
  write_file_atomic(checkpoint + "/training_state/segments.safetensors", "");
  EXPECT_EQ(problem_of_state(checkpoint).where,
            checkpoint + "/training_state/segments.safetensors");
}

TEST(StateFiles, DocumentsAndMeasuredScoresMayChange) {
  const test::TempDir dir;
  const std::string checkpoint = write_checkpoint(dir);
  for (const char* name : {"/README.md", "/rematch_scores.json"})
    write_file_atomic(checkpoint + name, "edited");
  EXPECT_NO_THROW(verify_state_files(checkpoint));
}

TEST(StateFiles, ADamagedManifestIsRefusedAndNeverLeadsOutOfTheCheckpoint) {
  const std::string mark = R"({"size_bytes": 0, "xxh3": "2d06800538d394c2"})";
  for (const std::string& text :
       {std::string("{\"version\": 3, \"fil"), std::string("[]"), std::string("{}"),
        std::string(R"({"version": "3", "files": {}})"), std::string(R"({"version": 3})"),
        std::string(R"({"version": 3, "files": {}})"),
        std::string(R"({"version": 3, "files": []})"),
        std::string(R"({"version": 3, "files": [3]})"),
        std::string(R"({"version": 3, "files": "x"})"),
        std::string(R"({"version": 3, "files": {"training_state/state.bin": 3}})"),
        R"({"version": 3, "parts": 0, "files": {"config.json": )" + mark + "}}",
        R"({"version": 3, "parts": 4294967297, "files": {"config.json": )" + mark + "}}",
        R"({"version": 3, "files": {"../x": )" + mark + "}}",
        R"({"version": 3, "files": {"/dev/null": )" + mark + "}}",
        R"({"version": 3, "files": {"": )" + mark + "}}"}) {
    const test::TempDir dir;
    const std::string checkpoint = write_checkpoint(dir);
    write_file_atomic(checkpoint + "/training_state/manifest.json", text);
    const Problem problem = problem_of_state(checkpoint);
    EXPECT_EQ(problem.error, "the manifest of a training state is damaged") << text;
    EXPECT_TRUE(problem.where.starts_with(checkpoint + "/training_state/manifest.json")) << text;
  }
}

TEST(StateFiles, AnotherVersionIsRefusedByNumberAndItsWeightsAreOffered) {
  for (const char* version : {"1", "2"}) {
    const test::TempDir dir;
    const std::string checkpoint = write_checkpoint(dir);
    const std::string manifest = checkpoint + "/training_state/manifest.json";
    std::string text = read_file(manifest);
    const std::string ours = "\"version\": 3";
    text.replace(text.find(ours), ours.size(), std::string("\"version\": ") + version);
    write_file_atomic(manifest, text);
    const Problem problem = problem_of_state(checkpoint);
    EXPECT_EQ(problem.error, "another version of Rematch wrote the training state of a checkpoint");
    EXPECT_EQ(problem.where, manifest);
    EXPECT_EQ(problem.what,
              std::string("the state has version ") + version + ", this program reads version 3");
    EXPECT_EQ(problem.fix, "its weights still load: start a new run with `model.model: " +
                               checkpoint + "` and without resume_from_checkpoint");
    write_file_atomic(checkpoint + "/adapter_config.json", "{}");
    EXPECT_NE(problem_of_state(checkpoint).fix.find("rematch merge " + checkpoint),
              std::string::npos);
  }
}

TEST(StateFiles, ACheckpointWithoutStateSaysWhatWroteIt) {
  const test::TempDir dir;
  dir.write("checkpoint-1/trainer_state.json", "{}");
  dir.write("model/config.json", "{}");
  const Problem saved_only_model = problem_of_state(dir.file("checkpoint-1"));
  EXPECT_EQ(saved_only_model.where, dir.file("checkpoint-1"));
  EXPECT_NE(saved_only_model.what.find("save_only_model: true"), std::string::npos);
  EXPECT_NE(saved_only_model.fix.find("save_only_model: false"), std::string::npos);
  EXPECT_EQ(problem_of_state(dir.file("model")).what.find("save_only_model"), std::string::npos);
  EXPECT_EQ(problem_of_state(dir.file("nowhere")).what, "no such directory");
}

TEST(StateFiles, AFullDiskIsAnEnvironmentError) {
  const test::TempDir dir;
  fs::create_directories(dir.file("c/training_state"));
  fs::create_symlink("/dev/full", dir.file("c/training_state/optimizer.safetensors"));
  const UserError error =
      test::catch_user_error([&] { test::write_state_files(dir.file("c"), small_state()); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problems()[0].what, "No space left on device");
}

}  // namespace rematch
