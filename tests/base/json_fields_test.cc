#include "base/json_fields.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "support/capture.h"

namespace rematch {
namespace {

const JsonOrigin kOrigin{
    .path = "a.json", .error = "{} in a.json is not usable", .fix = "write it again"};
const JsonOrigin kNullIsAbsent{
    .path = "a.json", .error = "a.json", .fix = "write it again", .null_is_absent = true};

using Read = std::function<void(JsonFields&)>;

UserError refused(const char* text, const Read& read) {
  const Json value = parse_json(text, "");
  return test::catch_user_error([&] {
    JsonFields fields(value, kOrigin, "top");
    read(fields);
  });
}

Problem problem(const char* text, const Read& read) { return refused(text, read).problems()[0]; }

}  // namespace

TEST(JsonFields, NamesThePlaceWhatWasExpectedAndWhatWasFound) {
  const Problem wrong =
      problem(R"({"n": "five"})", [](JsonFields& fields) { fields.integer("n", 1, 9); });
  EXPECT_EQ(wrong.error, "top.n in a.json is not usable");
  EXPECT_EQ(wrong.where, "a.json: top.n");
  EXPECT_EQ(wrong.what, "expected an integer from 1 to 9, found \"five\"");
  EXPECT_EQ(wrong.fix, "write it again");
  EXPECT_EQ(problem("{}", [](JsonFields& fields) { fields.text("n"); }).what, "it is missing");
  EXPECT_EQ(problem("[1]", [](JsonFields&) {}).what, "expected an object, found [1]");
}

TEST(JsonFields, ADocumentThatIsNotJsonIsNamedAsAWhole) {
  const Problem problem =
      test::catch_user_error([] { parse_document("no JSON", kOrigin); }).problems()[0];
  EXPECT_EQ(problem.error, "the whole file in a.json is not usable");
  EXPECT_EQ(problem.fix, "write it again");
}

TEST(JsonFields, AnIntegerMayBeWrittenWithAPoint) {
  const Json value = parse_json(R"({"a": 3, "b": 3.0, "c": 3e0, "d": [-1.0, 2]})", "");
  JsonFields fields(value, kOrigin);
  for (const char* key : {"a", "b", "c"}) EXPECT_EQ(fields.integer(key), 3) << key;
  EXPECT_EQ(fields.integers("d"), (std::vector<int>{-1, 2}));
}

TEST(JsonFields, RefusesNumbersThatNoIntegerOfTheRangeHolds) {
  for (const char* text : {R"({"n": 3.5})", R"({"n": 1e300})", R"({"n": 18446744073709551615})",
                           R"({"n": true})", R"({"n": null})"}) {
    EXPECT_EQ(refused(text, [](JsonFields& fields) { fields.integer("n"); }).kind(),
              ErrorKind::kData)
        << text;
  }
  EXPECT_EQ(
      problem(R"({"n": 2147483648})", [](JsonFields& fields) { fields.integer_or("n", 0); }).where,
      "a.json: top.n");
  EXPECT_EQ(
      problem(R"({"n": [1, 2147483648]})", [](JsonFields& fields) { fields.integers("n"); }).where,
      "a.json: top.n[1]");
}

TEST(JsonFields, FallsBackOnlyWhereTheKeyIsAbsent) {
  const Json value = parse_json(R"({"null": null})", "");
  JsonFields strict(value, kOrigin), lenient(value, kNullIsAbsent);
  EXPECT_EQ(strict.integer_or("n", 7), 7);
  EXPECT_EQ(strict.text_or("n", "x"), "x");
  EXPECT_TRUE(strict.boolean_or("n", true));
  EXPECT_TRUE(strict.texts("null").empty());
  EXPECT_FALSE(strict.object_or_empty("null").has("x"));
  EXPECT_EQ(test::catch_user_error([&] { strict.number_or("null", 1); }).kind(), ErrorKind::kData);
  EXPECT_EQ(lenient.number_or("null", 1), 1);
}

TEST(JsonFields, PlacesGoDownIntoObjects) {
  const Read read = [](JsonFields& fields) {
    fields.object("a").object_or_empty("b").boolean("c");
  };
  EXPECT_EQ(problem(R"({"a": {"b": {"c": 0}}})", read).where, "a.json: top.a.b.c");
  EXPECT_EQ(problem(R"({"a": {"b": 1}})", read).where, "a.json: top.a.b");
}

TEST(JsonFields, AnUnknownKeyIsRefusedWithTheNearestKnownOne) {
  const Problem unknown = problem(R"({"width": 1, "heigth": 2})", [](JsonFields& fields) {
    fields.has("width");
    fields.has("height");
    fields.finish();
  });
  EXPECT_EQ(unknown.error, "unknown field \"heigth\"");
  EXPECT_EQ(unknown.where, "a.json: top");
  EXPECT_EQ(unknown.what, "known: width, height");
  EXPECT_EQ(unknown.fix, "did you mean \"height\"?");
}

TEST(ShownJson, IsCutBetweenCharacters) {
  EXPECT_EQ(show_json(Json("short")), "\"short\"");
  EXPECT_EQ(show_json(Json("ääää"), 4), "\"ä…");
}

}  // namespace rematch
