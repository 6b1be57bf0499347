// Prompts and units of ms-swift's records.
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/dataset.h"
#include "draw/canvas.h"
#include "draw/encode.h"
#include "import/foreign.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

class SwiftTest : public testing::Test {
 protected:
  SwiftTest() { directory_.write("a.png", encode_png(Canvas(200, 100, kWhite).image())); }

  static std::string record(const std::string& messages, const std::string& objects) {
    return R"({"images": ["a.png"], "messages": [)" + messages + R"(], "objects": {)" + objects +
           "}}\n";
  }
  static std::string user(const std::string& text) {
    return R"({"role": "user", "content": ")" + text + R"("})";
  }
  ForeignSet read(const std::string& lines) const {
    return read_swift_files({directory_.write("train.jsonl", lines)}, {});
  }
  std::string prompt(const std::string& messages) const {
    const ForeignSet set =
        read(record(messages, R"("ref": ["cat", "dog"], "bbox": [[2, 2, 9, 9], [3, 3, 8, 8]])"));
    return set.splits.at("train").at(0).prompt;
  }
  std::string refused(const std::string& lines) const {
    const UserError error = test::catch_user_error([&] { read(lines); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }

  test::TempDir directory_;
};

}  // namespace

TEST_F(SwiftTest, TheUsersTextIsTheRecordsPrompt) {
  EXPECT_EQ(prompt(user("<image>Find the animals.")), "Find the animals.");
  EXPECT_EQ(prompt(user("<image>Find <ref-object> and <ref-object>.")), "Find cat and dog.");
  EXPECT_EQ(prompt(R"({"role": "system", "content": "S"}, )" + user("Where?")), "Where?");
  EXPECT_EQ(prompt(user("<image>")), "");
  EXPECT_EQ(prompt(user("List every object.")), "List every object.");
  EXPECT_EQ(prompt(""), "");
  const ForeignSet set =
      read(record(user("<image>Find."), R"("ref": ["cat"], "bbox": [[20, 10, 120, 60]])"));
  write_records(set, directory_.file("out"));
  EXPECT_EQ(Dataset::load(directory_.file("out/train.jsonl"), {}).samples()[0].prompt, "Find.");
}

TEST_F(SwiftTest, APromptThatCannotStandAloneIsCounted) {
  const std::string objects = R"("ref": ["cat"], "bbox": [[20, 10, 120, 60]])";
  const ForeignSet set = read(record(user("<image>What is at <bbox>?"), objects) +
                              record(user("One?") + ", " + user("Two?"), objects) +
                              record(R"({"role": "tool", "content": "x"})", objects));
  for (const ForeignImage& image : set.splits.at("train")) EXPECT_EQ(image.prompt, "");
  EXPECT_EQ(set.notes.at("prompts with <bbox>, not kept"), 1);
  EXPECT_EQ(set.notes.at("prompts of conversations with several questions, not kept"), 1);
  EXPECT_EQ(set.notes.at("prompts of messages that cannot be read, not kept"), 1);
}

TEST_F(SwiftTest, SharesWithoutTheirTypeAreRefused) {
  const std::string shares = record("", R"("ref": ["cat"], "bbox": [[0.1, 0.1, 0.5, 0.5]])");
  EXPECT_NE(refused(shares).find("norm1"), std::string::npos);
  const std::string pixels = record("", R"("ref": ["cat"], "bbox": [[20, 10, 120, 60]])");
  EXPECT_EQ(read(shares + pixels).splits.at("train").size(), 2u) << "a file with pixels";
}

TEST_F(SwiftTest, TwoCornersInListsAreNoPoint) {
  const std::string text = refused(record("", R"("ref": ["cat"], "bbox": [[[10, 10], [50, 50]]])"));
  EXPECT_NE(text.find("[x1, y1, x2, y2]"), std::string::npos) << text;
}

TEST_F(SwiftTest, AFileWithoutBoxesSaysSoAndDoesNotBlameTheImages) {
  const std::string text = refused(R"({"images": ["a.png"], "messages": []})");
  EXPECT_NE(text.find("left out: records without boxes (1)"), std::string::npos) << text;
  EXPECT_EQ(text.find("--images"), std::string::npos) << text;
}

}  // namespace rematch
