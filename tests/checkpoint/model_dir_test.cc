#include "model/checkpoint/model_dir.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

bool refuses(const InputFiles& inputs, const std::string& path) {
  try {
    inputs.refuse(path);
  } catch (const UserError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST(AddModel, KnowsTheFilesOfAnAdapterAndOfItsBase) {
  const test::TempDir directory;
  const std::string config = directory.write("base/config.json", "{}"),
                    weights = directory.write("base/model.safetensors", "x"),
                    processor = directory.write("base/preprocessor_config.json", "{}"),
                    answers = directory.write("base/answers.jsonl", "{}");
  const std::string adapter =
      directory.write("adapter/adapter_config.json",
                      "{\"base_model_name_or_path\": \"" + directory.file("base") + "\"}");
  InputFiles inputs;
  add_model(inputs, directory.file("adapter"));
  for (const std::string& path : {adapter, config, weights, processor})
    EXPECT_TRUE(refuses(inputs, path)) << path;
  EXPECT_FALSE(refuses(inputs, answers));
}

TEST(AddModel, LeavesErrorsToTheReaderOfTheModel) {
  const test::TempDir directory;
  InputFiles inputs;
  for (const char* text : {"{", "[]", "{\"base_model_name_or_path\": 3}", "{}"}) {
    const std::string adapter = directory.write("adapter/adapter_config.json", text);
    add_model(inputs, directory.file("adapter"));
    EXPECT_TRUE(refuses(inputs, adapter)) << text;
  }
  EXPECT_NO_THROW(add_model(inputs, directory.file("nowhere")));
  EXPECT_NO_THROW(add_model(inputs, ""));
}

TEST(RequireEmptyOutput, SaysWhatIsInTheWay) {
  const test::TempDir dir;
  EXPECT_NO_THROW(require_empty_output(dir.file("new")));
  std::filesystem::create_directory(dir.file("empty"));
  std::filesystem::create_directory_symlink(dir.file("empty"), dir.file("link"));
  EXPECT_NO_THROW(require_empty_output(dir.file("link")));
  const auto refused = [&](const std::string& name) {
    return test::catch_user_error([&] { require_empty_output(dir.file(name)); }).problems()[0].what;
  };
  dir.write("full/file", "");
  EXPECT_EQ(refused("full"), "the directory is not empty");
  EXPECT_EQ(refused("full/file"), "it is a file");
  std::filesystem::create_directory_symlink("gone", dir.file("dangling"));
  EXPECT_EQ(refused("dangling"), "nothing is there; it is a link to gone, which does not exist");
}

TEST(RequireModelDir, NamesWhatAMissingCheckpointMayBeNow) {
  const test::TempDir dir;
  dir.write("run/checkpoint-150/config.json", "{}");
  const auto fix_for = [&](const char* name) {
    return test::catch_user_error([&] { require_model_dir(dir.file("run/") + name); })
        .problems()[0]
        .fix;
  };
  EXPECT_EQ(fix_for("checkpoint-149"), "there are: " + dir.file("run/checkpoint-150"));
  dir.write("run/abandoned-1/checkpoint-149/config.json", "{}");
  EXPECT_EQ(fix_for("checkpoint-149"),
            "a later run moved it: use " + dir.file("run/abandoned-1/checkpoint-149"));
}

}  // namespace rematch
