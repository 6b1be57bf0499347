#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "support/capture.h"
#include "support/paths.h"
#include "support/small_stack.h"

namespace rematch {

TEST(ParseJson, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": [true, null, "x"]})", "t").dump(),
            R"({"b":1,"a":[true,null,"x"]})");
}

TEST(ParseJson, RefusesADuplicateKey) {
  const UserError error =
      test::catch_user_error([] { parse_json(R"({"a": 1, "a": 2})", "t.json"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find("appears twice"), std::string::npos);
}

TEST(ParseJson, NamesLineAndColumnOfASyntaxError) {
  const UserError error = test::catch_user_error([] { parse_json("{\n  \"a\": 1,\n}", "t.json"); });
  EXPECT_EQ(error.problems()[0].where, "t.json:3:1");
}

TEST(ParseJson, RefusesDeepNestingInsteadOfOverflowing) {
  test::catch_user_error([] { parse_json(std::string(100000, '['), "t.json"); });
}

TEST(ParseJson, RefusesInvalidUtf8AndTrailingText) {
  test::catch_user_error([] { parse_json("\"\xff\"", "t.json"); });
  test::catch_user_error([] { parse_json("{} x", "t.json"); });
}

TEST(PythonJson, WritesWhatJsonDumpsWrites) {
  const Json value =
      parse_json("{\"é\\u0001\": [1, 2.0, 1e-05, 1e+20, 0.1], \"e\": {}, \"l\": []}", "t");
  EXPECT_EQ(python_json(value),
            "{\"é\\u0001\": [1, 2.0, 1e-05, 1e+20, 0.1], \"e\": {}, \"l\": []}");
  EXPECT_EQ(python_json(value, 2),
            "{\n  \"é\\u0001\": [\n    1,\n    2.0,\n    1e-05,\n    1e+20,\n    0.1\n  ],\n  "
            "\"e\": {},\n  \"l\": []\n}");
}

TEST(PythonJson, ALineHasNoLineEndWithinIt) {
  const Json value = {{"a", "x\u2028y\u2029z\u0085\u202Eü—"}};
  EXPECT_EQ(json_line(value), "{\"a\": \"x\\u2028y\\u2029z\\u0085\\u202eü—\"}\n");
  EXPECT_EQ(parse_json(json_line(value), "line"), value);
}

TEST(ParseJson, NamesUtf16InPlaceOfItsZeroBytes) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"\xFF\xFE{\0}\0"sv, "\xFE\xFF\0{\0}"sv}) {
    const UserError error = test::catch_user_error([&] { parse_json(text, "t.json"); });
    EXPECT_EQ(error.problems()[0].error, "the text is UTF-16, not UTF-8");
    EXPECT_NE(error.problems()[0].fix.find("iconv"), std::string::npos);
  }
}

TEST(ParseJson, RefusesAZeroByteWhereverItStands) {
  const auto where_of = [](std::string_view text) {
    const UserError error = test::catch_user_error([&] { parse_json(text, "t.json"); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problems()[0].what, "a zero byte");
    return error.problems()[0].where;
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(where_of("{\"a\": 1}\0{\"b\": 2}"sv), "t.json:1:9");
  EXPECT_EQ(where_of("{}\n\0"sv), "t.json:2:1");
  EXPECT_EQ(where_of("[1,\0 2]"sv), "t.json:1:4");
  EXPECT_EQ(where_of("\"a\0\""sv), "t.json:1:3");
  EXPECT_EQ(where_of("\0"sv), "t.json:1:1");
}

TEST(ParseJson, RefusesEverythingAfterACompleteValue) {
  for (const char* text :
       {"{} {}", "1 2", "[] ,", "null\xEF\xBB\xBF", "true false", "{}}", "\"a\"\"b\""}) {
    SCOPED_TRACE(text);
    test::catch_user_error([&] { parse_json(text, "t.json"); });
  }
  EXPECT_EQ(parse_json("{} \t\r\n", "t.json").dump(), "{}");
}

TEST(ParseJson, RefusesAByteOrderMarkAnywhereButAtTheStart) {
  EXPECT_EQ(parse_json("\xEF\xBB\xBF{}", "t.json").dump(), "{}");
  for (const char* text :
       {" \xEF\xBB\xBF{}", "{\xEF\xBB\xBF}", "{}\xEF\xBB\xBF", "\xEF\xBB\xBF\xEF\xBB\xBF{}"}) {
    SCOPED_TRACE(text);
    test::catch_user_error([&] { parse_json(text, "t.json"); });
  }
}

TEST(ParseJson, NeedsLittleStack) {
  const test::TempDir dir;
  const std::string path = dir.write("deep.json", std::string(512, '[') + std::string(512, ']'));
  size_t depth = 0;
  test::on_small_stack([&] {
    const Json root = read_json_file(path);
    depth = 1;
    for (const Json* level = &root; !level->empty(); level = &level->front()) ++depth;
  });
  EXPECT_EQ(depth, 512U);
}

}  // namespace rematch
