// Files of other programs are recognised by their first bytes.
#include <gtest/gtest.h>

#include "learn/data/foreign_format.h"

namespace rematch {
namespace {

std::string name_of(const std::string& text) {
  const auto format = find_foreign_format("in.json", text);
  return format ? format->name : "";
}

}  // namespace

TEST(ForeignFormat, IsNamedByItsMembers) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"items": [{"annotations": [{"label_id": 0}]}], "categories": {}})", "Datumaro"},
      {R"({"type": "dataset", "task": "detect", "class_names": {"0": "cat"}})", "Ultralytics"},
      {R"([{"instruction": "Find", "input": "", "output": "[]"}])", "question and an answer"},
      {R"({"conversation": [{"human": "Find", "assistant": "[]"}]})", "question and an answer"},
      {R"({"prompt": "Find", "completion": "[]", "images": ["a.png"]})", "question and an answer"},
      {R"({"problem": "Find", "solution": "[]", "images": ["a.png"]})", "question and an answer"},
      {R"({"messages": [], "objects": {"ref": [], "bbox": []}})", "ms-swift"},
      {R"({"images": [], "annotations": [], "categories": []})", "COCO annotations"},
      {R"({"file_name": "a.png", "objects": {"bbox": [], "category": []}})", "Hugging Face"},
      {R"({"classTitle": "cat", "points": {}})", "Supervisely"},
      {"a.png,1,2,3,4,cat\n", "a CSV"}};
  for (const auto& [text, name] : cases)
    EXPECT_NE(name_of(text).find(name), std::string::npos) << text << "\n" << name_of(text);
  EXPECT_EQ(name_of(R"({"images": ["a.png"], "objects": [{"desc": "cat", "bbox_2d": []}]})"), "");
}

}  // namespace rematch
