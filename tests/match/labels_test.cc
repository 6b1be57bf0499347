#include "learn/estep/match/labels.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

TEST(LabelMatch, NormalizedIgnoresCaseFormAndWhiteSpace) {
  const LabelMatch labels = LabelMatch::from("normalized");
  const auto same = [&](const char* a, const char* b) {
    return labels.canonical(a) == labels.canonical(b);
  };
  EXPECT_TRUE(same("Red  Dog", "red dog"));
  EXPECT_TRUE(same(" red\u00A0dog\u3000", "red dog"));
  EXPECT_TRUE(same("e\u0301clair", "\u00C9CLAIR"));
  EXPECT_TRUE(same("Stra\u00DFe", "STRASSE"));
  EXPECT_TRUE(same("\uFF23\uFF41\uFF54", "cat"));
  EXPECT_TRUE(same("\uFB01sh", "fish"));
  EXPECT_FALSE(same("eclair", "\u00E9clair"));
  EXPECT_FALSE(same("reddog", "red dog"));
}

TEST(LabelMatch, ExactComparesBytes) {
  const LabelMatch labels = LabelMatch::from("exact");
  EXPECT_NE(labels.canonical("Cat"), labels.canonical("cat"));
  EXPECT_EQ(labels.canonical("Cat"), "Cat");
}

TEST(LabelMatch, ExactComparesInTheFormOfTheTokenizer) {
  const LabelMatch labels =
      LabelMatch::from("exact", [](std::string_view text) { return normalize_nfc(text); });
  EXPECT_TRUE(labels.same("e\u0301clair", "\u00E9clair")) << "what the tokenizer composes";
  EXPECT_FALSE(labels.same("\u00C9clair", "\u00E9clair"));
  EXPECT_FALSE(labels.same("\uFB01sh", "fish")) << "not what it keeps";
  EXPECT_FALSE(LabelMatch::from("exact").same("e\u0301clair", "\u00E9clair"))
      << "without a tokenizer";
}

TEST(LabelMatch, ClassesAreNormalisedLabelsUnderEveryRule) {
  EXPECT_EQ(LabelMatch::from("exact").class_name(" Red  CAR"), "red car");
  EXPECT_EQ(LabelMatch::from("normalized").class_name(" Red  CAR"), "red car");
}

TEST(LabelMatch, SynonymsComeFromAFile) {
  const test::TempDir dir;
  const LabelMatch labels = LabelMatch::from(
      dir.write("synonyms.json", R"({"Person": ["man", "Young  Woman"], "cat": []})"));
  EXPECT_EQ(labels.canonical("MAN"), labels.canonical("person"));
  EXPECT_EQ(labels.canonical("young woman"), labels.canonical("man"));
  EXPECT_NE(labels.canonical("cat"), labels.canonical("man"));
  EXPECT_EQ(labels.canonical("dog"), "dog");
}

TEST(LabelMatch, RefusesOtherJson) {
  const test::TempDir dir;
  for (const char* text :
       {"[]", R"({"a": "b"})", R"({"a": [1]})", R"({"a": ["c"], "b": ["C"]})", "nonsense"}) {
    EXPECT_EQ(
        test::catch_user_error([&] { LabelMatch::from(dir.write("synonyms.json", text)); }).kind(),
        ErrorKind::kData)
        << text;
  }
  EXPECT_NE(std::string(test::catch_user_error([] { LabelMatch::from("normalised"); }).what())
                .find("normalised"),
            std::string::npos);
}

}  // namespace rematch
