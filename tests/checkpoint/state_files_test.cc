#include "checkpoint/state_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

StateFiles small_state() {
  return {
      .document = "{\"num_steps\": 3}\n",
      .optimizer = {{"a.exp_avg", at::arange(6, at::kFloat).reshape({2, 3})},
                    {"a.num_steps", at::full({}, 7, at::kLong)}},
      .segments = {{"token_ids", at::arange(5, at::kInt)}, {"is_label", at::ones({5}, at::kBool)}}};
}

/// A checkpoint with weights and a training state.
std::string write_checkpoint(const test::TempDir& dir, const std::string& name = "checkpoint-3") {
  const std::string path = dir.file(name);
  fs::create_directories(path);
  write_safetensors(path + "/model.safetensors", {{"w", at::full({4}, 0.5)}});
  write_file_atomic(path + "/config.json", "{}");
  write_file_atomic(path + "/README.md", "hello");
  write_state_files(path, small_state());
  write_file_atomic(path + "/trainer_state.json", "{}");
  return path;
}

void flip_a_bit(const std::string& path) {
  std::string content = read_file(path);
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  write_file_atomic(path, content);
}

Problem problem_of(const std::string& checkpoint) {
  const UserError error = test::catch_user_error([&] { read_state_files(checkpoint); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].fix.find("model.model"), std::string::npos) << error.what();
  return error.problems()[0];
}

}  // namespace

TEST(StateFiles, RoundTrips) {
  const test::TempDir dir;
  const StateFiles expected = small_state();
  const StateFiles state = read_state_files(write_checkpoint(dir));
  EXPECT_EQ(state.document, expected.document);
  for (const auto& [written, read] : {std::pair(&expected.optimizer, &state.optimizer),
                                      std::pair(&expected.segments, &state.segments)}) {
    ASSERT_EQ(read->size(), written->size());
    for (const auto& [name, tensor] : *written) {
      const auto found = std::find_if(read->begin(), read->end(), [&name = name](const auto& item) {
        return item.first == name;
      });
      ASSERT_NE(found, read->end()) << name;
      EXPECT_EQ(found->second.scalar_type(), tensor.scalar_type());
      EXPECT_TRUE(at::equal(found->second, tensor)) << name;
    }
  }
}

TEST(StateFiles, NoTensorsAtAllIsFine) {
  const test::TempDir dir;
  fs::create_directories(dir.file("c"));
  write_state_files(dir.file("c"), {.document = "{}", .optimizer = {}, .segments = {}});
  EXPECT_TRUE(read_state_files(dir.file("c")).optimizer.empty());
}

TEST(StateFiles, ATruncatedFileIsNamedWithBothSizes) {
  for (const char* file : {"training_state/state.json", "training_state/optimizer.safetensors",
                           "training_state/segments.safetensors", "model.safetensors"}) {
    const test::TempDir dir;
    const std::string checkpoint = write_checkpoint(dir);
    const auto size = fs::file_size(checkpoint + "/" + file);
    fs::resize_file(checkpoint + "/" + file, size - 1);
    const Problem problem = problem_of(checkpoint);
    EXPECT_EQ(problem.error, "a file of a checkpoint is truncated");
    EXPECT_EQ(problem.where, checkpoint + "/" + file);
    EXPECT_EQ(problem.what,
              "expected " + std::to_string(size) + " bytes, found " + std::to_string(size - 1));
  }
}

TEST(StateFiles, AMissingFileIsNamed) {
  for (const char* file : {"training_state/state.json", "training_state/optimizer.safetensors",
                           "training_state/segments.safetensors", "training_state/manifest.json",
                           "model.safetensors", "config.json"}) {
    const test::TempDir dir;
    const std::string checkpoint = write_checkpoint(dir);
    fs::remove(checkpoint + "/" + file);
    const Problem problem = problem_of(checkpoint);
    EXPECT_EQ(problem.where, checkpoint + "/" + file);
  }
}

TEST(StateFiles, AChangedBitIsFoundInEveryFile) {
  for (const char* file : {"training_state/state.json", "training_state/optimizer.safetensors",
                           "training_state/segments.safetensors", "model.safetensors"}) {
    const test::TempDir dir;
    const std::string checkpoint = write_checkpoint(dir);
    flip_a_bit(checkpoint + "/" + file);
    const Problem problem = problem_of(checkpoint);
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
  write_state_files(dir.file("other"), other);
  fs::copy_file(dir.file("other/training_state/optimizer.safetensors"),
                checkpoint + "/training_state/optimizer.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(problem_of(checkpoint).error,
            "a file of a checkpoint was changed or belongs to another checkpoint");
}

TEST(StateFiles, AFileThatDoesNotBelongThereIsFound) {
  const test::TempDir dir;
  const std::string checkpoint = write_checkpoint(dir);
  write_file_atomic(checkpoint + "/training_state/.nfs0001", "");
  EXPECT_NO_THROW(verify_state_files(checkpoint));
  write_file_atomic(checkpoint + "/training_state/segments-2.safetensors", "");
  EXPECT_EQ(problem_of(checkpoint).where, checkpoint + "/training_state/segments-2.safetensors");
}

TEST(StateFiles, FilesThatNoResumedRunReadsMayChange) {
  const test::TempDir dir;
  const std::string checkpoint = write_checkpoint(dir);
  write_file_atomic(checkpoint + "/README.md", "edited");
  EXPECT_NO_THROW(verify_state_files(checkpoint));
}

TEST(StateFiles, ADamagedManifestIsRefusedAndNeverLeadsOutOfTheCheckpoint) {
  const std::string mark = R"({"size_bytes": 0, "xxh3": "2d06800538d394c2"})";
  for (const std::string& text :
       {std::string("{\"version\": 1, \"fil"), std::string("[]"), std::string("{}"),
        std::string(R"({"version": 2, "files": {}})"),
        std::string(R"({"version": 1, "files": {}})"),
        std::string(R"({"version": 1, "files": []})"),
        std::string(R"({"version": 1, "files": {"training_state/state.json": 3}})"),
        R"({"version": 1, "files": {"../x": )" + mark + "}}",
        R"({"version": 1, "files": {"/dev/null": )" + mark + "}}",
        R"({"version": 1, "files": {"": )" + mark + "}}"}) {
    const test::TempDir dir;
    const std::string checkpoint = write_checkpoint(dir);
    write_file_atomic(checkpoint + "/training_state/manifest.json", text);
    EXPECT_EQ(problem_of(checkpoint).where, checkpoint + "/training_state/manifest.json") << text;
  }
}

TEST(StateFiles, ACheckpointWithoutStateSaysWhatWroteIt) {
  const test::TempDir dir;
  dir.write("checkpoint-1/trainer_state.json", "{}");
  dir.write("model/config.json", "{}");
  const Problem saved_only_model = problem_of(dir.file("checkpoint-1"));
  EXPECT_EQ(saved_only_model.where, dir.file("checkpoint-1"));
  EXPECT_NE(saved_only_model.what.find("save_only_model: true"), std::string::npos);
  EXPECT_NE(saved_only_model.fix.find("save_only_model: false"), std::string::npos);
  EXPECT_EQ(problem_of(dir.file("model")).what.find("save_only_model"), std::string::npos);
  EXPECT_EQ(problem_of(dir.file("nowhere")).what, "no such directory");
}

TEST(StateFiles, AFullDiskIsAnEnvironmentError) {
  const test::TempDir dir;
  fs::create_directories(dir.file("c/training_state"));
  fs::create_symlink("/dev/full", dir.file("c/training_state/optimizer.safetensors"));
  const UserError error =
      test::catch_user_error([&] { write_state_files(dir.file("c"), small_state()); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problems()[0].what, "No space left on device");
}

}  // namespace rematch
