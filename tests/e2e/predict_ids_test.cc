// `rematch predict --format coco --ids FILE`.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "support/paths.h"

namespace rematch {

TEST(Predict, WritesResultsWithTheIdsOfACocoFile) {
  test::Program program;
  std::filesystem::copy_file(test::Program::golden("images/0.png"), program.dir().file("0.png"));
  const std::string model = test::source_path("demo/model");
  program.dir().write("ids.json",
                      R"({"images": [{"id": 77, "file_name": "0.png"}, {"id": 78, "file_name": )"
                      R"("1.png"}], "categories": [{"id": 5, "name": "none of them"}]})");
  const std::string predict = "predict " + model + " 0.png --max-new-tokens 60 --out r.json --ids ";
  EXPECT_EQ(program.run(predict + "ids.json").exit_code, 2) << "lines have no ids";
  const test::ProcessResult left_out = program.run(predict + "ids.json --format coco");
  ASSERT_EQ(left_out.exit_code, 0) << left_out.err;
  EXPECT_EQ(read_file(program.dir().file("r.json")), "[]\n");
  ASSERT_NE(left_out.err.find("objects with names that ids.json does not have"), std::string::npos)
      << left_out.err;
  const Json own = parse_json(
      program.run("predict " + model + " 0.png --max-new-tokens 60 --format coco").out, "own");
  std::string categories;
  for (const Json& category : own["categories"]) {
    categories += categories.empty() ? "" : ", ";
    categories += Json{{"id", 40 + category["id"].get<int>()},
                       {"name", category["name"].get<std::string>() + " "}}
                      .dump();
  }
  program.dir().write(
      "all.json",
      R"({"images": [{"id": 77, "file_name": "0.png"}], "categories": [)" + categories + "]}");
  ASSERT_EQ(program.run(predict + "all.json --format coco").exit_code, 0);
  const Json results = read_json_file(program.dir().file("r.json"));
  ASSERT_EQ(results.size(), own["annotations"].size());
  ASSERT_GT(results.size(), 0u);
  for (size_t i = 0; i < results.size(); ++i) {
    const Json& annotation = own["annotations"][i];
    EXPECT_EQ(results[i]["image_id"], 77);
    EXPECT_EQ(results[i]["category_id"], 40 + annotation["category_id"].get<int>());
    EXPECT_EQ(results[i]["bbox"], annotation["bbox"]);
    EXPECT_EQ(results[i]["score"], annotation["score"]);
  }
  for (const auto& [images, error] : std::vector<std::pair<std::string, std::string>>{
           {R"({"id": 77, "file_name": "0.png", "width": 999})", "another size"},
           {R"({"id": 77, "file_name": "0.png", "height": "9"})", "another size"},
           {R"({"id": 77, "file_name": "0.png"}, {"id": 8, "file_name": "0.png"})", "two entries"},
           {R"({"id": 77, "file_name": "0.png"}, {"id": 77, "file_name": "b"})", "two entries"}}) {
    program.dir().write(
        "bad.json", R"({"images": [)" + images + R"(], "categories": [{"id": 1, "name": "a"}]})");
    const test::ProcessResult refused = program.run(predict + "bad.json --format coco");
    EXPECT_EQ(refused.exit_code, 3) << images;
    EXPECT_NE(refused.err.find(error), std::string::npos) << refused.err;
  }
  program.dir().write("dir/0.png", read_file(program.dir().file("0.png")));
  EXPECT_NE(program.run("predict " + model + " 0.png dir --format coco --ids all.json")
                .err.find("two images have one id"),
            std::string::npos);
  program.dir().write("other.json",
                      R"({"images": [{"id": 1, "file_name": "x.png"}], "categories": )"
                      R"([{"id": 1, "name": "a"}]})");
  const test::ProcessResult other = program.run(predict + "other.json --format coco");
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_NE(other.err.find("an image is not in the file of --ids"), std::string::npos) << other.err;
}

}  // namespace rematch
