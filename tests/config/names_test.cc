// Rules for the names of the template, the run and its directory.
#include "config/support.h"

namespace rematch {

using test::load_set;
using test::problem_of_set;

TEST(Template, AnotherFamilysHasNoEffect) {
  const test::TempDir dir;
  dir.write("config.json", "{\"model_type\": \"qwen3_5\"}");
  const auto warnings = [&](const std::string& name) {
    return load_set({"template.template=" + name, "model.model=" + dir.path()}).warnings;
  };
  EXPECT_TRUE(warnings("qwen3_5").empty());
  ASSERT_EQ(warnings("qwen3_vl").size(), 1u);
  EXPECT_EQ(warnings("qwen3_vl").front().text,
            "`template.template` has no effect: config.json says model_type qwen3_5");
  EXPECT_TRUE(load_set({"model.model=" + dir.path()}).warnings.empty()) << "the default";
}

TEST(RunName, LeavesRoomForTheNamesOfItsFiles) {
  const std::string longest(200, 'n');
  EXPECT_NO_THROW(load_set({"training.run_name=" + longest + "/" + longest}));
  EXPECT_THAT(load_set({"training.run_name=null"}).warnings,
              testing::Contains(testing::Field(
                  &Warning::text, testing::HasSubstr("into `training.output_dir` itself"))));
  for (const char* name : {"''", "' '", ".", "../"}) {
    const Problem nameless = problem_of_set({std::string("training.run_name=") + name});
    EXPECT_EQ(nameless.error, "`training.run_name` names no directory") << name;
    EXPECT_EQ(nameless.where, "--set training.run_name");
  }
  EXPECT_EQ(problem_of_set({"training.run_name=a/../../x"}).error,
            "`training.run_name` leaves `training.output_dir`");
  const UserError error =
      test::catch_user_error([&] { load_set({"training.run_name=a/" + longest + "n"}); });
  EXPECT_EQ(error.problems()[0].what, "201 bytes, of at most 200");
}

TEST(OutputDir, IsAPathThatNothingExpands) {
  for (const char* path : {"~/runs", "$HOME/runs", "s3://bucket/runs", "file:///runs"})
    EXPECT_EQ(problem_of_set({std::string("training.output_dir=") + path}).error,
              "`training.output_dir` is not a path");
  EXPECT_NO_THROW(load_set({"training.output_dir=../a~b/./c d"}));
}

}  // namespace rematch
