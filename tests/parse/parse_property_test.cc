// Properties of every rollout, whatever its tokens.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "parse/vocab.h"

namespace rematch {
namespace {

using test::vocab;

int pick(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
}

std::string any_entry(int index) {
  const std::string key = "object_" + std::to_string(index);
  const std::string desc = *rc::gen::element<std::string>(
      "cat", "飞机", "😀 sticker", "a \\\"b\\\"", "\\ud83d\\ude00", " ", "e\\u0301");
  switch (pick(0, 6)) {
    case 0:
      return "\"" + key + "\": " +
             *rc::gen::element<std::string>("1", "-0.5e3", "true", "null", "[]", "{\"a\": [1]}",
                                            "\"x\"");
    case 1:
      return "\"" + key + "\": {\"desc\": \"" + desc + "\", \"poly\": [" +
             test::coords({1, 2, 3, 4, 5, pick(0, 1000)}) + "]}";
    case 2: return "\"obj\": {\"desc\": \"" + desc + "\"}";
    default: return test::box_entry(key, desc);
  }
}

std::vector<int> any_answer() {
  std::string text = *rc::gen::element<std::string>("{", "{", "{", " {", "{\n");
  const int num_entries = pick(0, 5);
  for (int i = 0; i < num_entries; ++i)
    text += (i > 0 ? *rc::gen::element<std::string>(", ", ",", " , ") : "") + any_entry(i + 1);
  return vocab().encode(text + "}");
}

// An answer with a few tokens put in, taken out or exchanged, and perhaps cut.
std::vector<int> any_broken_answer() {
  std::vector<int> ids = any_answer();
  const int num_edits = pick(0, 4);
  for (int i = 0; i < num_edits && !ids.empty(); ++i) {
    const auto at = ids.begin() + pick(0, static_cast<int>(ids.size()));
    const int id = pick(0, 3) == 0
                       ? vocab().tokenizer->byte_token(static_cast<unsigned char>(pick(0, 256)))
                       : pick(-1, vocab().tokenizer->num_ids() + 3);
    switch (pick(0, 3)) {
      case 0: ids.insert(at, id); break;
      case 1: ids.erase(at); break;
      default: *at = id;
    }
  }
  if (pick(0, 3) == 0) ids.resize(static_cast<size_t>(pick(0, static_cast<int>(ids.size()) + 1)));
  return ids;
}

void check_invariants(const ParsedRollout& parsed) {
  RC_ASSERT(nlohmann::json::accept(parsed.prefix_text + "}"));
  RC_ASSERT(vocab().tokenizer->decode_bytes(parsed.prefix_token_ids) == parsed.prefix_text);
  RC_ASSERT(is_valid_utf8(parsed.prefix_text));
  for (const ParsedObject& object : parsed.objects) {
    RC_ASSERT(object.geometry.bins.size() == object.coord_tokens.size());
    RC_ASSERT(object.index <= parsed.max_object_index.value());
    for (size_t i = 0; i < object.geometry.bins.size(); ++i) {
      const auto at = static_cast<size_t>(object.coord_tokens[i].begin);
      RC_ASSERT(vocab().coord.bin_of(parsed.prefix_token_ids.at(at)) == object.geometry.bins[i]);
      RC_ASSERT(parsed.prefix_token_ids[at] == parsed.response_token_ids.at(at));
    }
  }
}

}  // namespace

RC_GTEST_PROP(ParseRollout, HoldsItsPromisesOnBrokenAnswers, ()) {
  check_invariants(vocab().parse(any_broken_answer()));
}

RC_GTEST_PROP(ParseRollout, HoldsItsPromisesOnArbitraryIds, ()) {
  const auto ids = *rc::gen::container<std::vector<int>>(
      rc::gen::resize(rc::kNominalSize, rc::gen::inRange(-3, 1400)));
  check_invariants(vocab().parse(ids));
}

RC_GTEST_PROP(ParseRollout, ReadsEveryUnbrokenAnswerToItsEnd, ()) {
  RC_ASSERT(vocab().parse(any_answer()).status == ParseStatus::kComplete);
}

RC_GTEST_PROP(ParseRollout, OfABeginningKeepsTheObjectsReadSoFar, ()) {
  const std::vector<int> ids = any_broken_answer();
  const ParsedRollout whole = vocab().parse(ids);
  for (size_t length = 0; length <= ids.size(); ++length) {
    const ParsedRollout part = vocab().parse(
        std::vector<int>(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length)));
    RC_ASSERT(part.objects.size() <= whole.objects.size());
    for (size_t i = 0; i < part.objects.size(); ++i)
      RC_ASSERT(part.objects[i].coord_tokens == whole.objects[i].coord_tokens);
    // (Before the opening brace is read, the prefix is a brace of our own.)
    if (part.prefix_text != "{")
      RC_ASSERT(whole.prefix_text.substr(0, part.prefix_text.size()) == part.prefix_text);
    if (part.status == ParseStatus::kMalformed) RC_ASSERT(whole.status == ParseStatus::kMalformed);
  }
}

}  // namespace rematch
