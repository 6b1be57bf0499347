#include "model/checkpoint/model_dir.h"

#include <gtest/gtest.h>

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
