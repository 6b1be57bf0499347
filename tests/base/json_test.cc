#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {

TEST(ParseJson, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": [true, null, "x"]})", "t").dump(), R"({"b":1,"a":[true,null,"x"]})");
}

TEST(ParseJson, RefusesADuplicateKey) {
  const UserError error = test::catch_user_error([] { parse_json(R"({"a": 1, "a": 2})", "t.json"); });
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
  const Json value = parse_json("{\"é\\u0001\": [1, 2.0, 1e-05, 1e+20, 0.1], \"e\": {}, \"l\": []}", "t");
  EXPECT_EQ(python_json(value), "{\"é\\u0001\": [1, 2.0, 1e-05, 1e+20, 0.1], \"e\": {}, \"l\": []}");
  EXPECT_EQ(python_json(value, 2),
            "{\n  \"é\\u0001\": [\n    1,\n    2.0,\n    1e-05,\n    1e+20,\n    0.1\n  ],\n  \"e\": {},\n  \"l\": []\n}");
}

}  // namespace rematch
