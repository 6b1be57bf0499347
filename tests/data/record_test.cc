#include "learn/data/record.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {
namespace {

const ForbiddenTexts kForbidden({"<|im_end|>", "<|coord_5|>", "<think>", ""});

Sample read(const std::string& line, bool require_single_image = true) {
  return read_record(line, {.where = "d.jsonl:7",
                            .directory = "dir",
                            .require_single_image = require_single_image,
                            .forbidden = &kForbidden});
}

std::string record(const std::string& objects) {
  return fmt::format(R"({{"images": ["a.png"], "width": 64, "height": 32, "objects": {}}})",
                     objects);
}

std::vector<int> bins_of(const std::string& object) {
  return read(record("[" + object + "]")).objects.at(0).geometry.bins;
}

// Expects a data error whose text has every word of `words`.
void expect_refused(const std::string& line, const std::vector<std::string>& words) {
  const UserError error = test::catch_user_error([&] { read(line); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  const std::string text = error.what();
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  EXPECT_EQ(error.problems()[0].where.rfind("d.jsonl:7", 0), 0u) << error.what();
}

void expect_object_refused(const std::string& object, const std::vector<std::string>& words) {
  std::vector<std::string> all = words;
  all.push_back("object 2 (objects[1])");
  expect_refused(record(R"([{"desc": "good", "bbox_2d": [1, 2, 3, 4]}, )" + object + "]"), all);
}

}  // namespace

TEST(ReadRecord, ReadsEveryField) {
  const Sample sample = read(
      R"({"images": ["sub/a.png"], "objects": [
    {"desc": " a cat ", "bbox_2d": [1, 2.0, "<|coord_999|>", 3]},
    {"desc": "Schild \u00e9", "poly": [[1, 2], [3, 4], [5, 6]], "poly_points": 3}],
    "width": 64, "height": 32,
    "summary": "s", "metadata": {"k": 1}, "poly_points": null})");
  EXPECT_EQ(sample.image_paths, std::vector<std::string>{"dir/sub/a.png"});
  EXPECT_EQ(sample.width_px, 64);
  EXPECT_EQ(sample.height_px, 32);
  EXPECT_EQ(sample.where, "d.jsonl:7");
  ASSERT_EQ(sample.objects.size(), 2u);
  EXPECT_EQ(sample.objects[0], (SceneObject{"a cat", {GeometryKind::kBbox2d, {1, 2, 999, 3}}}));
  EXPECT_EQ(sample.objects[1],
            (SceneObject{"Schild é", {GeometryKind::kPoly, {1, 2, 3, 4, 5, 6}}}));
}

TEST(ReadRecord, AnEmptySceneIsLegal) { EXPECT_TRUE(read(record("[]")).objects.empty()); }

TEST(ReadRecord, KeepsAnAbsoluteImagePath) {
  EXPECT_EQ(
      read(R"({"images": ["/x/a.png"], "objects": [], "width": 1, "height": 1})").image_paths[0],
      "/x/a.png");
}

TEST(ReadRecord, ReadsFlatAndNestedPolygonsAlike) {
  EXPECT_EQ(bins_of(R"({"desc": "a", "poly": [1, 2, 3, 4, 5, 6]})"),
            bins_of(R"({"desc": "a", "poly": [[1, 2], [3, "<|coord_4|>"], [5.0, 6]]})"));
}

TEST(ReadRecord, AcceptsDegenerateBoxesAndRefusesInvertedOnes) {
  EXPECT_EQ(bins_of(R"({"desc": "a", "bbox_2d": [9, 9, 9, 9]})"), (std::vector<int>{9, 9, 9, 9}));
  expect_object_refused(R"({"desc": "a", "bbox_2d": [9, 9, 1, 9]})",
                        {"inverted", "x1 > x2", "[9,9,1,9]"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": [1, 9, 9, 2]})", {"inverted", "y1 > y2"});
  const std::string line = record(R"([{"desc": "a", "bbox_2d": [9, 9, 1, 9]}])");
  EXPECT_NO_THROW(
      read_record(line, {.where = "d.jsonl:7", .directory = "dir", .allow_inverted = true}));
}

TEST(ReadRecord, SaysWhatToDoAboutTheFieldsOfOtherPrograms) {
  const std::vector<std::string> advice = {"`rematch data check FILE --fix OUT`",
                                           "`rematch data from-coco"};
  for (const std::string key : {"bbox", "segmentation", "label"})
    expect_object_refused("{\"" + key + "\": [1, 2, 3, 4]}",
                          {"unknown field \"" + key + "\"", advice[0], advice[1]});
  for (const std::string key : {"messages", "image"})
    expect_refused("{\"" + key + "\": []}",
                   {"unknown field \"" + key + "\"", advice[0], advice[1]});
}

TEST(ReadRecord, SaysHowJsonIsWritten) {
  for (const char* line : {"{'images': ['a.png']}", R"({"images": ["a.png"], "metadata": None})",
                           R"({"images": ["a.png"], "width": NaN})", R"({"images": ["a.png"],})"})
    expect_refused(line, {"json.dumps"});
}

TEST(ReadRecord, RefusesWhatIsNoRecord) {
  expect_refused("{", {"not valid JSON"});
  expect_refused("[1]", {"not a JSON object"});
  expect_refused("{\"a\": \"\xff\"}", {"the text is not UTF-8", "iconv"});
  expect_refused(R"({"images": ["a"], "images": ["b"], "objects": [], "width": 1, "height": 1})",
                 {"appears twice"});
}

TEST(ReadRecord, RefusesUnknownFieldsWithASuggestion) {
  expect_refused(R"({"images": ["a"], "objects": [], "width": 1, "heigth": 1})",
                 {"unknown field \"heigth\"", "did you mean \"height\"?"});
  expect_object_refused(
      R"({"desc": "a", "bbox_2d": [1, 2, 3, 4], "confidence_of_the_annotator": 1})",
      {"unknown field", "metadata"});
}

TEST(ReadRecord, RefusesMissingFields) {
  expect_refused(R"({"objects": [], "width": 1, "height": 1})", {"\"images\" is missing"});
  expect_refused(R"({"images": ["a"], "width": 1, "height": 1})", {"\"objects\" is missing"});
  expect_refused(R"({"images": ["a"], "objects": [], "height": 1})", {"\"width\" is missing"});
  expect_refused(R"({"images": ["a"], "objects": [], "width": 1})", {"\"height\" is missing"});
  expect_object_refused(R"({"bbox_2d": [1, 2, 3, 4]})", {"\"desc\" is missing"});
}

TEST(ReadRecord, RefusesWrongImagesAndSizes) {
  expect_refused(R"({"images": "a.png", "objects": [], "width": 1, "height": 1})",
                 {"\"images\" is not a list"});
  expect_refused(R"({"images": [], "objects": [], "width": 1, "height": 1})",
                 {"\"images\" is not a list"});
  expect_refused(R"({"images": [3], "objects": [], "width": 1, "height": 1})", {"not a path"});
  expect_refused(R"({"images": ["a\u0000b"], "objects": [], "width": 1, "height": 1})",
                 {"not a path"});
  expect_refused(R"({"images": ["a", "b"], "objects": [], "width": 1, "height": 1})",
                 {"more than one path"});
  EXPECT_EQ(read(R"({"images": ["a", "b"], "objects": [], "width": 1, "height": 1})", false)
                .image_paths.size(),
            2u);
  for (const char* width : {"0", "-32", "32.5", "\"32\"", "true", "null", "1e10"}) {
    const std::string line =
        fmt::format(R"({{"images": ["a"], "objects": [], "width": {}, "height": 1}})", width);
    expect_refused(line, {"\"width\" is not a positive integer"});
  }
  expect_refused(R"({"images": ["a"], "objects": {}, "width": 1, "height": 1})",
                 {"\"objects\" is not a list"});
}

TEST(ReadRecord, RefusesWrongDescriptions) {
  expect_object_refused(R"({"desc": 3, "bbox_2d": [1, 2, 3, 4]})", {"not a string"});
  expect_object_refused(R"({"desc": " \u00a0\t", "bbox_2d": [1, 2, 3, 4]})", {"blank"});
  for (const char* desc : {"a\\nb", "a\\tb", "a\\rb"}) {
    expect_object_refused(fmt::format(R"({{"desc": "{}", "bbox_2d": [1, 2, 3, 4]}})", desc),
                          {"line break or a tab"});
  }
  for (const char* desc : {"a\\b\u0307x", "a\\u001b[31m", "a\\u0000b"}) {
    expect_object_refused(fmt::format(R"({{"desc": "{}", "bbox_2d": [1, 2, 3, 4]}})", desc),
                          {"control character"});
  }
  for (const char* desc : {"<|im_end|>", "a <|coord_5|> b", "<<think>"}) {
    expect_object_refused(fmt::format(R"({{"desc": "{}", "bbox_2d": [1, 2, 3, 4]}})", desc),
                          {"added token"});
  }
  expect_refused(record(R"([{"desc": "\ud800", "bbox_2d": [1, 2, 3, 4]}])"), {"not valid JSON"});
  EXPECT_EQ(read(record(R"([{"desc": "<|im_en", "bbox_2d": [1, 2, 3, 4]}])")).objects[0].desc,
            "<|im_en");
}

TEST(ReadRecord, TellsOfEveryObjectAndOfTheColumnWhereALineIsNoJson) {
  const std::string inverted = R"({"desc": "a", "bbox_2d": [9, 1, 2, 3]})";
  const UserError two = test::catch_user_error([&] {
    read(record(fmt::format(R"([{}, {{"desc": "", "poly": 3}}, {}])", inverted, inverted)));
  });
  ASSERT_EQ(two.problems().size(), 3u);
  EXPECT_EQ(two.problems()[2].where, "d.jsonl:7, object 3 (objects[2])");
  EXPECT_EQ(test::catch_user_error([&] { read(R"({"images": ])"); }).problems()[0].where,
            "d.jsonl:7:12");
}

TEST(ReadRecord, RefusesAnyButOneGeometry) {
  expect_object_refused(R"({"desc": "a"})", {"no geometry"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": [1, 2, 3, 4], "poly": [1, 2, 3, 4, 5, 6]})",
                        {"two geometries"});
  expect_object_refused(R"({"desc": "a", "line": [1, 2, 3, 4]})", {"unknown field \"line\""});
  expect_object_refused("7", {"not a JSON object"});
}

TEST(ReadRecord, RefusesWrongCoordinates) {
  expect_object_refused(R"({"desc": "a", "bbox_2d": [1, 2, 3, 1000]})",
                        {"out of range", "1000", "convert pixels to bins", "width"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": [-1, 2, 3, 4]})", {"out of range"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": [10.5, 20.25, 30, 40]})",
                        {"not an integer", "10.5", "convert pixels to bins"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": [1e300, 2, 3, 4]})", {"out of range"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": [null, 2, 3, 4]})", {"not a number"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": [true, 2, 3, 4]})", {"not a number"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": ["5", 2, 3, 4]})", {"a number in quotes"});
  for (const char* token : {"", "<|coord_1000|>", "<|coord_05|>", "<|coord_|>", "<|coord_5|> ",
                            "<|coord_-1|>", "<|coord_5"}) {
    expect_object_refused(fmt::format(R"({{"desc": "a", "bbox_2d": ["{}", 2, 3, 4]}})", token),
                          {"not a coord token"});
  }
}

TEST(ReadRecord, RefusesWrongShapes) {
  expect_object_refused(R"({"desc": "a", "bbox_2d": [1, 2, 3]})", {"four coordinates"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": null})", {"four coordinates"});
  expect_object_refused(R"({"desc": "a", "bbox_2d": [[1, 2], [3, 4]]})", {"four coordinates"});
  expect_object_refused(R"({"desc": "a", "poly": "x"})", {"not a list"});
  expect_object_refused(R"({"desc": "a", "poly": []})", {"fewer than three"});
  expect_object_refused(R"({"desc": "a", "poly": [1, 2, 3, 4]})",
                        {"fewer than three", "2 vertices"});
  expect_object_refused(R"({"desc": "a", "poly": [1, 2, 3, 4, 5, 6, 7]})",
                        {"odd number", "7 values"});
  expect_object_refused(R"({"desc": "a", "poly": [[1, 2], [3, 4], 5, 6]})", {"mixes"});
  expect_object_refused(R"({"desc": "a", "poly": [[1, 2, 3, 4, 5, 6]]})", {"not a pair"});
}

TEST(ReadRecord, BoundsTheNumberOfObjectsAndOfVertices) {
  const auto repeated = [](const std::string& item, int count) {
    std::string text = item;
    for (int i = 1; i < count; ++i) text += ", " + item;
    return text;
  };
  const std::string object = R"({"desc": "a", "bbox_2d": [1, 2, 3, 4]})";
  EXPECT_EQ(read(record("[" + repeated(object, 16384) + "]")).objects.size(), 16384u);
  expect_refused(record("[" + repeated(object, 16385) + "]"),
                 {"too many objects", "16385; at most 16384", "cut the image"});
  expect_object_refused(fmt::format(R"({{"desc": "a", "poly": [{}]}})", repeated("[1, 2]", 16385)),
                        {"too many vertices", "16385"});
}

RC_GTEST_PROP(ReadRecord, AnyDamageIsADataErrorOrAValidSample, ()) {
  std::string line = record(R"([{"desc": "a cat", "bbox_2d": [1, 2.0, "<|coord_999|>", 3]},
    {"desc": "b", "poly": [[1, 2], [3, 4], [5, 6]]}])");
  const int num_edits = *rc::gen::inRange(1, 5);
  for (int i = 0; i < num_edits; ++i) {
    const auto position = *rc::gen::inRange<size_t>(0, line.size());
    line[position] = *rc::gen::oneOf(rc::gen::arbitrary<char>(),
                                     rc::gen::elementOf(std::string("{}[]\",:0123456789.-eE")));
  }
  try {
    for (const SceneObject& object : read(line).objects) {
      RC_ASSERT(!object.desc.empty());
      const size_t num_bins = object.geometry.bins.size();
      const bool is_poly = object.geometry.kind == GeometryKind::kPoly;
      RC_ASSERT((is_poly ? (num_bins >= 6 && num_bins % 2 == 0) : num_bins == 4));
      for (const int bin : object.geometry.bins) RC_ASSERT(bin >= 0 && bin < kNumBins);
    }
  } catch (const UserError& error) {
    RC_ASSERT(error.kind() == ErrorKind::kData);
  }
}

TEST(ReadRecord, KeepsItsOwnUserTextAsWritten) {
  const std::string start = R"({"images": ["a.png"], "width": 64, "height": 32, "objects": [])";
  EXPECT_EQ(read(start + "}").prompt, "");
  EXPECT_EQ(read(start + R"(, "prompt": " Find:\n cats "})").prompt, " Find:\n cats ");
}

TEST(ReadRecord, RefusesAPromptThatCannotBeUsed) {
  const std::string start =
      R"({"images": ["a.png"], "width": 64, "height": 32, "objects": [], "prompt": )";
  for (const char* value : {"5", "null", "[\"find cats\"]", "{}", "true"})
    expect_refused(start + value + "}", {"\"prompt\" is not a string", "custom.user_prompt"});
  for (const char* value : {R"("")", R"(" \n")", R"("\u3000")"})
    expect_refused(start + value + "}", {"\"prompt\" is blank", "custom.user_prompt"});
  expect_refused(start + R"("find <|coord_5|>"})", {"\"prompt\"", "added token", "<|coord_5|>"});
}

}  // namespace rematch
