// Answers in plain digits: what is written, and what is read of whatever a model writes.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "learn/estep/answer/answer_format.h"
#include "parse/vocab.h"
#include "support/capture.h"

namespace rematch {
namespace {

using test::vocab;

const AnswerFormat& digits() {
  static const auto format = make_answer_format("qwen_json", vocab().tokenizer, "golden");
  return *format;
}

const AnswerFormat& pixels() {
  static const auto format = make_answer_format("qwen2_5_json", vocab().tokenizer, "golden");
  return *format;
}

Prompt prompt_of(int width_px, int height_px) {
  Prompt prompt;
  prompt.resized_px = {width_px, height_px};
  prompt.where = "here";
  return prompt;
}

ParsedRollout read(const std::string& text, const AnswerFormat& format = digits(),
                   const Prompt& prompt = {}) {
  return format.parse(vocab().encode(text), vocab().stop_ids, prompt);
}

std::string write(const std::vector<SceneObject>& objects, const AnswerFormat& format = digits(),
                  const Prompt& prompt = {}) {
  std::vector<AnswerEntry> entries;
  for (const SceneObject& object : objects)
    entries.push_back({.shown = object, .taught_bins = object.geometry.bins});
  return format.teach(entries, prompt).text;
}

SceneObject box(const std::string& label, std::vector<int> bins) {
  return {label, {GeometryKind::kBbox2d, std::move(bins)}};
}

std::string fenced(const std::string& entries) { return "```json\n[" + entries + "]\n```"; }

constexpr const char* kCat = R"({"bbox_2d": [1, 2, 3, 4], "label": "cat"})";

}  // namespace

TEST(DigitAnswers, AreByteExact) {
  EXPECT_EQ(write({}), "```json\n[]\n```");
  EXPECT_EQ(write({box("cat", {0, 10, 500, 999}), box("a \"b\"\n飞", {1, 2, 3, 4})}),
            "```json\n[\n\t{\"bbox_2d\": [0, 10, 501, 1000], \"label\": \"cat\"},\n"
            "\t{\"bbox_2d\": [1, 2, 3, 4], \"label\": \"a \\\"b\\\"\\n飞\"}\n]\n```");
}

TEST(DigitAnswers, KeepEveryBin) {
  for (int bin = 0; bin < kNumBins; ++bin) {
    const std::vector<SceneObject> objects{box("x", {bin, bin, bin, bin})};
    EXPECT_EQ(to_scene(read(write(objects)).objects), objects) << bin;
  }
}

RC_GTEST_PROP(DigitAnswers, AreReadAsTheyAreWritten, ()) {
  const auto boxes = *rc::gen::container<std::vector<std::vector<int>>>(
      rc::gen::container<std::vector<int>>(4, rc::gen::inRange(0, kNumBins)));
  std::vector<SceneObject> objects;
  for (size_t i = 0; i < boxes.size(); ++i)
    objects.push_back(box("label " + std::to_string(i), boxes[i]));
  const ParsedRollout parsed = read(write(objects) + "<|im_end|>");
  RC_ASSERT(parsed.status == ParseStatus::kComplete);
  RC_ASSERT(parsed.dropped_invalid == 0);
  RC_ASSERT(to_scene(parsed.objects) == objects);
}

TEST(DigitAnswers, MayCountPixelsOfTheResizedImage) {
  const Prompt prompt = prompt_of(640, 448);
  EXPECT_EQ(write({box("cat", {0, 0, 999, 999})}, pixels(), prompt),
            "```json\n[\n\t{\"bbox_2d\": [0, 0, 640, 448], \"label\": \"cat\"}\n]\n```");
  const ParsedRollout parsed = read(fenced(R"({"bbox_2d": [320, 112, 640, 449], "label": "out"},
                     {"bbox_2d": [320, 112, 640, 448], "label": "in"})"),
                                    pixels(), prompt);
  ASSERT_EQ(parsed.objects.size(), 1u) << "449 is outside";
  EXPECT_EQ(parsed.objects[0].geometry.bins, (std::vector<int>{500, 250, 999, 999}));
  EXPECT_EQ(parsed.objects[0].written, (std::vector<int>{320, 112, 640, 448}));
  EXPECT_EQ(parsed.dropped_invalid, 1);
  EXPECT_EQ(test::catch_user_error([&] { read(fenced(kCat), pixels()); }).kind(), ErrorKind::kData);
}

TEST(DigitAnswers, AreFoundBehindProseAndBare) {
  const std::string two = std::string(kCat) + ",\n" + kCat;
  for (const std::string& text :
       {fenced(two), "Here they are:\n" + fenced(two) + "\nDone.", "[" + two + "] and more",
        " \n[ " + two + " ]", "```json\r\n[" + two + "]"}) {
    const ParsedRollout parsed = read(text);
    EXPECT_EQ(parsed.objects.size(), 2u) << text;
    EXPECT_EQ(parsed.status, ParseStatus::kComplete) << text;
  }
  EXPECT_EQ(read(kCat).objects.size(), 1u) << "one object stands for a list of one";
  EXPECT_EQ(read("There is a cat.").status, ParseStatus::kMalformed);
  EXPECT_EQ(read("").status, ParseStatus::kTruncated);
}

TEST(DigitAnswers, AreFoundInAllWrappers) {
  const std::string list = "[" + std::string(kCat) + "]",
                    draft = "```json\n[{\"bbox_2d\": [5, 6, 7, 8], \"label\": \"dog\"}]\n```";
  for (const std::string& text :
       {"<answer>" + list + "</answer>", "<think></think>\n" + list,
        "<think>\n" + draft + " no.\n</think>\n\n" + fenced(kCat),
        "a draft: " + draft + "</think><answer>\n" + fenced(kCat) + "\n</answer>"}) {
    const ParsedRollout parsed = read(text);
    ASSERT_EQ(parsed.objects.size(), 1u) << text;
    EXPECT_EQ(parsed.objects[0].desc, "cat") << text;
    EXPECT_EQ(parsed.status, ParseStatus::kComplete) << text;
  }
  for (const std::string& text :
       {"```\n" + list + "\n```", "```JSON\n" + list + "\n```", "Found: " + list})
    EXPECT_EQ(read(text).status, ParseStatus::kMalformed) << text;
  const ParsedRollout thought = read("<think>\nlong\n</think>" + list);
  EXPECT_GT(thought.objects[0].entry.begin, 0) << "the think block is not part of the entry";
}

TEST(DigitAnswers, AreTruncatedInsideAThinkBlock) {
  for (const char* text :
       {"<think>", "<think>\nmaybe [{\"bbox_2d\": [1, 2, 3, 4], \"label\": \"a\"}]"}) {
    EXPECT_EQ(read(text).status, ParseStatus::kTruncated) << text;
    EXPECT_TRUE(read(text).objects.empty()) << text;
  }
  Prompt prompt;
  prompt.token_ids = vocab().encode("<think>\n");
  const std::string list = "[" + std::string(kCat) + "]";
  EXPECT_EQ(read(list, digits(), prompt).status, ParseStatus::kTruncated);
  EXPECT_EQ(read("x</think>" + list, digits(), prompt).objects.size(), 1u);
  EXPECT_EQ(read("no json here ```").status, ParseStatus::kMalformed);
}

TEST(DigitAnswers, DropWhatIsNoEntry) {
  for (const char* entry :
       {R"({"bbox_2d": [1, 2, 3], "label": "a"})", R"({"bbox_2d": [1, 2, 3, 4, 5], "label": "a"})",
        R"({"bbox_2d": [1, 2, 3, 4.0], "label": "a"})",
        R"({"bbox_2d": [1, 2, 3, 1e2], "label": "a"})",
        R"({"bbox_2d": [1, 2, 3, 1001], "label": "a"})",
        R"({"bbox_2d": [-1, 2, 3, 4], "label": "a"})",
        R"({"bbox_2d": [1, 2, 3, 99999999999999999999], "label": "a"})",
        R"({"bbox_2d": ["1", 2, 3, 4], "label": "a"})",
        R"({"bbox_2d": [[1, 2], [3, 4]], "label": "a"})", R"({"bbox_2d": [1, 2, 3, 4]})",
        R"({"label": "a"})", R"({"bbox_2d": [1, 2, 3, 4], "label": 7})",
        R"({"bbox_2d": [1, 2, 3, 4], "label": " \t"})",
        R"({"bbox_2d": [1, 2, 3, 4], "label": "a", "label": "b"})",
        R"({"bbox_2d": [1, 2, 3, 4], "bbox_2d": [1, 2, 3, 4], "label": "a"})", "7", "null", "\"a\"",
        "[1, 2, 3, 4]"}) {
    const ParsedRollout parsed = read(fenced(fmt::format("{0}, {1}, {0}", kCat, entry)));
    EXPECT_EQ(parsed.objects.size(), 2u) << entry;
    EXPECT_EQ(parsed.dropped_invalid, 1) << entry;
    EXPECT_EQ(parsed.status, ParseStatus::kComplete) << entry;
  }
  const ParsedRollout kept = read(fenced(
      R"({"score": 0.5, "label": " dog ", "bbox_2d": [9, 8, -0, 6], "more": {"label": 1}})"));
  ASSERT_EQ(kept.objects.size(), 1u) << "other keys are ignored, inverted boxes kept";
  EXPECT_EQ(kept.objects[0].desc, "dog");
  EXPECT_EQ(kept.objects[0].geometry.bins, (std::vector<int>{9, 8, 0, 6}));
}

TEST(DigitAnswers, CountAnEntryThatWasBegun) {
  const struct {
    const char* rest;
    ParseStatus status;
    int dropped;
  } kCases[] = {{"", ParseStatus::kTruncated, 0},
                {", ", ParseStatus::kTruncated, 0},
                {", {", ParseStatus::kTruncated, 1},
                {", {\"bbox_2d\": [1, 2, 3, 4", ParseStatus::kTruncated, 1},
                {", 12", ParseStatus::kTruncated, 1},
                {", tru", ParseStatus::kTruncated, 1},
                {", {]", ParseStatus::kMalformed, 1},
                {", ]", ParseStatus::kMalformed, 0},
                {", x", ParseStatus::kMalformed, 0},
                {" {", ParseStatus::kMalformed, 0}};
  for (const auto& one : kCases) {
    const ParsedRollout parsed = read("```json\n[" + std::string(kCat) + one.rest);
    EXPECT_EQ(parsed.objects.size(), 1u) << one.rest;
    EXPECT_EQ(parsed.status, one.status) << one.rest;
    EXPECT_EQ(parsed.dropped_invalid, one.dropped) << one.rest;
  }
  EXPECT_EQ(read("```json\n{\"label\": ").dropped_invalid, 1);
}

TEST(DigitAnswers, MayHaveTenThousandEntries) {
  std::string text = "[" + std::string(kCat);
  for (int i = 1; i < 10'000; ++i) text += std::string(",\n") + kCat;
  const ParsedRollout parsed = read(text + "]");
  EXPECT_EQ(parsed.objects.size(), 10'000u);
  EXPECT_EQ(parsed.status, ParseStatus::kComplete);
}

TEST(DigitAnswers, KnowTheTokensOfEntriesAndNumbers) {
  const ParsedRollout parsed = read(fenced(std::string("\n\t") + kCat + ",\n\t{\"x\": 1},\n\t" +
                                           R"({"bbox_2d": [10, 200, 999, 1000], "label": "dog"})"));
  ASSERT_EQ(parsed.objects.size(), 2u);
  const auto text_of = [&](const TokenSpan& span) {
    return vocab().tokenizer->decode_bytes({parsed.response_token_ids.begin() + span.begin,
                                            parsed.response_token_ids.begin() + span.end});
  };
  EXPECT_EQ(parsed.objects[0].entry.begin, 0) << "the first has what is before it";
  EXPECT_TRUE(text_of(parsed.objects[0].entry).starts_with("```json"));
  for (const ParsedObject& object : parsed.objects) {
    EXPECT_NE(text_of(object.entry).find(object.desc), std::string::npos);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NE(text_of(object.coord_tokens[i]).find(std::to_string(object.written[i])),
                std::string::npos);
    }
  }
  EXPECT_EQ(text_of(parsed.objects[1].entry).find("\"x\""), std::string::npos)
      << "the entry that was dropped has its own";
}

TEST(DigitAnswers, MayHaveNoNames) {
  const auto boxes = make_answer_format("qwen_boxes", vocab().tokenizer, "golden");
  EXPECT_EQ(write({box("cat", {0, 10, 500, 999}), box("dog", {1, 2, 3, 4})}, *boxes),
            "```json\n[\n\t{\"bbox_2d\": [0, 10, 501, 1000]},\n"
            "\t{\"bbox_2d\": [1, 2, 3, 4]}\n]\n```");
  // An answered name is ignored, whatever it is.
  const ParsedRollout parsed = read(
      R"([{"bbox_2d": [1, 2, 3, 4]}, {"label": 7, "bbox_2d": [5, 6, 7, 8]}, {"label": "cat"}])",
      *boxes);
  ASSERT_EQ(parsed.objects.size(), 2u);
  EXPECT_EQ(parsed.objects[0].desc, kNameless);
  EXPECT_EQ(parsed.objects[1].geometry.bins, (std::vector<int>{5, 6, 7, 8}));
  EXPECT_EQ(parsed.dropped_invalid, 1);

  const auto pixels_only = make_answer_format("qwen2_5_boxes", vocab().tokenizer, "golden");
  EXPECT_EQ(write({box("cat", {100, 200, 300, 999})}, *pixels_only, prompt_of(640, 480)),
            "```json\n[\n\t{\"bbox_2d\": [64, 96, 192, 480]}\n]\n```");
}

TEST(DigitAnswers, CannotWritePolygons) {
  const SceneObject outline{"sign", {GeometryKind::kPoly, {1, 2, 3, 4, 5, 6}}};
  const UserError error =
      test::catch_user_error([&] { write({outline}, digits(), prompt_of(1, 1)); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems().front().where, "here");
  EXPECT_NE(error.problems().front().fix.find("rematch data boxes"), std::string::npos);
}

TEST(DigitAnswers, CannotBeAppendedTo) {
  EXPECT_EQ(test::catch_user_error([&] { digits().teach_rest({}, {}); }).kind(),
            ErrorKind::kConfig);
}

}  // namespace rematch
