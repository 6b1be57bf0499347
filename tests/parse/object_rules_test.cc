#include "learn/estep/parse/object_rules.h"

#include <gtest/gtest.h>

#include "parse/vocab.h"

namespace rematch {
namespace {

using test::coords;
using test::vocab;

// Objects and dropped entries of an answer with one entry `"object_1": <value>`.
size_t num_valid(const std::string& value) {
  const ParsedRollout parsed = vocab().parse("{\"object_1\": " + value + "}");
  EXPECT_EQ(parsed.status, ParseStatus::kComplete) << value;
  EXPECT_EQ(parsed.objects.size() + static_cast<size_t>(parsed.dropped_invalid), 1u) << value;
  return parsed.objects.size();
}
std::string with_box(const std::string& geometry) {
  return R"({"desc": "a", "bbox_2d": )" + geometry + "}";
}
std::string with_poly(const std::string& geometry) {
  return R"({"desc": "a", "poly": )" + geometry + "}";
}
std::string with_desc(const std::string& desc) {
  return "{\"desc\": " + desc + ", \"bbox_2d\": [" + coords({1, 2, 3, 4}) + "]}";
}

}  // namespace

TEST(ObjectIndex, ReadsDigitsAfterTheStem) {
  EXPECT_EQ(object_index("object_0"), 0);
  EXPECT_EQ(object_index("object_17"), 17);
  EXPECT_EQ(object_index("object_007"), 7);
  EXPECT_EQ(object_index("object_999999999"), 999'999'999);
  EXPECT_EQ(object_index("object_00000000000000000000000999999999"), 999'999'999);
}

TEST(ObjectIndex, RefusesEverythingElse) {
  for (const char* key :
       {"", "object_", "object", "object_1a", "object_-1", "object_+1", "object_ 1", "object_1 ",
        " object_1", "Object_1", "object_1.0", "object_1000000000",
        "object_99999999999999999999999999", "object_１", "object-1", "xobject_1"}) {
    EXPECT_FALSE(object_index(key).has_value()) << key;
  }
  EXPECT_FALSE(object_index(std::string("object_1\0", 9)).has_value());
}

TEST(ValidObject, TakesABoxOfFourCoordTokens) {
  EXPECT_EQ(num_valid(with_box("[" + coords({1, 2, 3, 4}) + "]")), 1u);
  EXPECT_EQ(num_valid(with_box("[" + coords({1, 2, 3}) + "]")), 0u);
  EXPECT_EQ(num_valid(with_box("[" + coords({1, 2, 3, 4, 5}) + "]")), 0u);
  EXPECT_EQ(num_valid(with_box("[" + coords({1, 2, 3, 4, 5, 6}) + "]")), 0u);
  EXPECT_EQ(num_valid(with_box("[]")), 0u);
}

TEST(ValidObject, TakesAPolygonOfAnEvenNumberOfCoordTokensFromSixOn) {
  EXPECT_EQ(num_valid(with_poly("[" + coords({1, 2, 3, 4}) + "]")), 0u);
  EXPECT_EQ(num_valid(with_poly("[" + coords({1, 2, 3, 4, 5}) + "]")), 0u);
  EXPECT_EQ(num_valid(with_poly("[" + coords({1, 2, 3, 4, 5, 6}) + "]")), 1u);
  EXPECT_EQ(num_valid(with_poly("[" + coords({1, 2, 3, 4, 5, 6, 7}) + "]")), 0u);
  EXPECT_EQ(num_valid(with_poly("[" + coords({1, 2, 3, 4, 5, 6, 7, 8}) + "]")), 1u);
}

TEST(ValidObject, TakesFlatListsAndListsOfPairsForBoth) {
  EXPECT_EQ(num_valid(with_poly("[[" + coords({1, 2}) + "], [" + coords({3, 4}) + "], [" +
                                coords({5, 6}) + "]]")),
            1u);
  EXPECT_EQ(num_valid(with_box("[[" + coords({1, 2}) + "], [" + coords({3, 4}) + "]]")), 1u);
  EXPECT_EQ(num_valid(with_poly("[[" + coords({1, 2, 3}) + "], [" + coords({4, 5, 6}) + "]]")), 0u);
  EXPECT_EQ(num_valid(with_poly("[[" + coords({1, 2}) + "], " + coords({3, 4}) + ", [" +
                                coords({5, 6}) + "]]")),
            0u);
  EXPECT_EQ(num_valid(with_poly("[" + coords({1, 2, 3, 4}) + ", [" + coords({5, 6}) + "]]")), 0u);
  EXPECT_EQ(num_valid(with_poly("[[[" + coords({1, 2}) + "]], [[" + coords({3, 4}) + "]], [[" +
                                coords({5, 6}) + "]]]")),
            0u);
}

TEST(ValidObject, NeedsStringsThatAreExactlyOneCoordToken) {
  EXPECT_EQ(num_valid(with_box("[1, 2, 3, 4]")), 0u);
  EXPECT_EQ(num_valid(with_box("[" + coords({1, 2, 3}) + ", null]")), 0u);
  for (const char* string : {"", "5", " <|coord_5|>", "<|coord_5|> ", "<|coord_5|><|coord_5|>",
                             "<|coord_1000|>", "<|coord_05|>", "<|coord_|>", "<|im_start|>", "x"}) {
    EXPECT_EQ(num_valid(with_box("[" + coords({1, 2, 3}) + ", \"" + string + "\"]")), 0u) << string;
  }
  EXPECT_EQ(num_valid(with_box("[" + coords({1, 2, 3}) + R"(, "\u003c|coord_5|>"])")), 0u);
}

TEST(ValidObject, RefusesACoordTokenThatIsSpeltOut) {
  const std::vector<int> head = vocab().encode("{\"object_1\": {\"desc\": \"a\", \"bbox_2d\": [" +
                                               coords({1, 2, 3}) + ", \"");
  const std::vector<int> tail = vocab().encode("\"]}}");
  const auto answer = [&](std::vector<int> middle) {
    std::vector<int> ids = head;
    ids.insert(ids.end(), middle.begin(), middle.end());
    ids.insert(ids.end(), tail.begin(), tail.end());
    return vocab().parse(ids);
  };
  EXPECT_EQ(answer({vocab().coord.id_of(4)}).objects.size(), 1u);
  const ParsedRollout spelt = answer(vocab().spell("<|coord_4|>"));
  EXPECT_EQ(spelt.status, ParseStatus::kComplete);
  EXPECT_EQ(spelt.objects.size(), 0u);
  EXPECT_EQ(spelt.dropped_invalid, 1);
}

TEST(ValidObject, NeedsExactlyTwoDistinctKeys) {
  const std::string box = "\"bbox_2d\": [" + coords({1, 2, 3, 4}) + "]",
                    poly = "\"poly\": [" + coords({1, 2, 3, 4, 5, 6}) + "]",
                    desc = "\"desc\": \"a\"";
  EXPECT_EQ(num_valid("{" + desc + ", " + box + "}"), 1u);
  EXPECT_EQ(num_valid("{" + box + ", " + desc + "}"), 1u);
  EXPECT_EQ(num_valid("{" + desc + "}"), 0u);
  EXPECT_EQ(num_valid("{" + box + "}"), 0u);
  EXPECT_EQ(num_valid("{}"), 0u);
  EXPECT_EQ(num_valid("{" + box + ", " + poly + "}"), 0u);
  EXPECT_EQ(num_valid("{" + desc + ", " + box + ", " + poly + "}"), 0u);
  EXPECT_EQ(num_valid("{" + desc + ", " + box + ", \"x\": 1}"), 0u);
  EXPECT_EQ(num_valid("{" + desc + ", " + desc + "}"), 0u);
  EXPECT_EQ(num_valid("{" + desc + ", " + desc + ", " + box + "}"), 0u);
  EXPECT_EQ(num_valid("{" + desc + ", " + box + ", " + box + "}"), 0u);
  EXPECT_EQ(num_valid("{\"Desc\": \"a\", " + box + "}"), 0u);
}

TEST(ValidObject, NeedsAnObjectAsValue) {
  for (const char* value : {"1", "\"x\"", "[]", "null", "true", "[{}]"})
    EXPECT_EQ(num_valid(value), 0u) << value;
}

TEST(ValidObject, NeedsADescThatIsAStringAndNotBlank) {
  EXPECT_EQ(num_valid(with_desc("\"a\"")), 1u);
  EXPECT_EQ(num_valid(with_desc("1")), 0u);
  EXPECT_EQ(num_valid(with_desc("null")), 0u);
  EXPECT_EQ(num_valid(with_desc("[\"a\"]")), 0u);
  for (const char* blank : {"\"\"", "\" \"", "\"\\n\\t\"", "\"\\u00a0\"", "\"\\u001c\"",
                            "\"\\u3000\\u2028\"", "\"　\""})
    EXPECT_EQ(num_valid(with_desc(blank)), 0u) << blank;
  EXPECT_EQ(num_valid(with_desc("\"\\u200b\"")), 1u);  // zero-width space: Python keeps it
  EXPECT_EQ(num_valid(with_desc("\"\\u0000\"")), 1u);
}

TEST(ValidObject, ReportsTheDescTrimmedAsPythonDoes) {
  const ParsedRollout parsed =
      vocab().parse("{\"object_1\": " + with_desc("\"\\u001c\\u00a0 a  b\\u0085\\n\"") + "}");
  ASSERT_EQ(parsed.objects.size(), 1u);
  EXPECT_EQ(parsed.objects[0].desc, "a  b");
}

TEST(ValidObject, ComparesKeysAfterUnescaping) {
  const ParsedRollout parsed = vocab().parse(
      R"({"\u006fbject_3": {"d\u0065sc": "a", "bbox\u005f2d": [)" + coords({1, 2, 3, 4}) + "]}}");
  ASSERT_EQ(parsed.objects.size(), 1u);
  EXPECT_EQ(parsed.objects[0].key, "object_3");
  EXPECT_EQ(parsed.objects[0].index, 3);
}

TEST(ValidObject, AllowsInvertedAndDegenerateBoxes) {
  const ParsedRollout parsed =
      vocab().parse("{\"object_1\": " + with_box("[" + coords({9, 9, 3, 3}) + "]") +
                    ", \"object_2\": " + with_box("[" + coords({5, 5, 5, 5}) + "]") + "}");
  ASSERT_EQ(parsed.objects.size(), 2u);
  EXPECT_EQ(parsed.objects[0].geometry.bins, (std::vector<int>{9, 9, 3, 3}));
}

TEST(ValidObject, SaysWhichTokensHoldTheBins) {
  const ParsedRollout parsed =
      vocab().parse("{" + test::box_entry("object_1", "near <|coord_9|>") + "}");
  ASSERT_EQ(parsed.objects.size(), 1u);
  const ParsedObject& object = parsed.objects[0];
  ASSERT_EQ(object.coord_tokens.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(vocab().coord.bin_of(
                  parsed.response_token_ids[static_cast<size_t>(object.coord_tokens[i].begin)]),
              object.geometry.bins[i]);
  }
}

}  // namespace rematch
