// `qwen_json` and `qwen2_5_json`: the stock answers of two model families, a fenced JSON list with
// coordinates in plain digits (BEHAVIOUR 19). `qwen_boxes` and `qwen2_5_boxes` are the same lists
// without names.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/flow/answer_place.h"
#include "base/flow/bins.h"
#include "base/json.h"
#include "base/text.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/answer/teach_digits.h"
#include "learn/estep/parse/add_entries.h"
#include "learn/estep/parse/json_reader.h"
#include "learn/estep/parse/token_bytes.h"

namespace rematch {
namespace {

constexpr std::string_view kFence = "```json", kThink = "<think>";
constexpr size_t kPromptTail = 16;  // enough tokens for the opening of a think block

constexpr const char* kUserPrompt =
    "Locate every object in this image. Report the label and the bbox coordinates of each in JSON "
    "format.";

constexpr const char* kBoxesUserPrompt =
    "Locate every object in this image. Report the bbox coordinates of each in JSON format.";

// Stock checkpoints expect no system message.
PromptTexts built_in_prompt(ObjectOrdering) { return {"", kUserPrompt}; }
PromptTexts boxes_prompt(ObjectOrdering) { return {"", kBoxesUserPrompt}; }

// An integer in 0..max, written as `-?` digits.
std::optional<int> read_number(const JsonNode& node, std::string_view bytes, int max) {
  if (node.kind != JsonNode::Kind::kScalar) return std::nullopt;
  const std::string_view text = bytes.substr(node.begin, node.end - node.begin);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_integer = error == std::errc() && end == text.data() + text.size();
  return is_integer && value >= 0 && value <= max ? std::optional<int>(value) : std::nullopt;
}

// The value of a key; null unless it occurs exactly once.
const JsonNode* only_value(const JsonNode& object, std::string_view key) {
  if (std::ranges::count(object.keys, key) != 1) return nullptr;
  const auto found = std::ranges::find(object.keys, key);
  return &object.items[found - object.keys.begin()];
}

// The name of an entry; nullopt unless it is valid.
std::optional<std::string> read_label(const JsonNode& element) {
  const JsonNode* label = only_value(element, "label");
  if (label == nullptr || label->kind != JsonNode::Kind::kString) return std::nullopt;
  std::string text = python_strip(label->text);
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

// Reads a complete element; nullopt unless it is a valid entry (BEHAVIOUR 19.5).
std::optional<ParsedObject> read_entry(const JsonNode& element, const TokenBytes& tokens,
                                       const NumberScale& scale, bool has_names) {
  const JsonNode* box = only_value(element, "bbox_2d");
  const std::optional<std::string> name = has_names ? read_label(element) : kNameless;
  if (box == nullptr || !name || box->kind != JsonNode::Kind::kArray || box->items.size() != 4)
    return std::nullopt;
  ParsedObject object;
  object.desc = *name;
  for (size_t i = 0; i < 4; ++i) {
    const JsonNode& node = box->items[i];
    const std::optional<int> number = read_number(node, tokens.bytes, scale.limit(i));
    if (!number) return std::nullopt;
    object.written.push_back(*number);
    object.geometry.bins.push_back(scale.bin(*number, i));
    object.coord_tokens.push_back(tokens.overlapping(node.begin, node.end));
  }
  return object;
}

// Writes an entry up to the end of its box.
void write_box(const AnswerEntry& entry, const NumberScale& scale, AnswerText& answer,
               Strings& truth) {
  answer.text += "\t{\"bbox_2d\": [";
  for (size_t i = 0; i < entry.shown.geometry.bins.size(); ++i) {
    if (i > 0) answer.text += ", ";
    const int number =
        entry.written.empty() ? scale.number(entry.shown.geometry.bins[i], i) : entry.written[i];
    const size_t begin = answer.text.size();
    answer.text += fmt::format("{}", number);
    answer.marks.push_back({begin, answer.text.size()});
    truth.push_back(fmt::format("{}", scale.number(entry.taught_bins[i], i)));
  }
  answer.text += ']';
}

struct ListForm {
  bool in_pixels = false;  ///< pixels of the resized image, not thousandths of its sides
  bool has_names = true;   ///< entries have a label
};

class DigitList : public AnswerFormat {
 public:
  DigitList(std::shared_ptr<const Tokenizer> tokenizer, const std::string& where, ListForm form)
      : AnswerFormat(std::move(tokenizer), where), form_(form) {}

  TaughtAnswer teach(const std::vector<AnswerEntry>& entries, const Prompt& prompt) const override {
    const NumberScale scale = scale_for(prompt);
    AnswerText answer{std::string(kFence) + "\n[", {}};
    Strings truth;
    for (const AnswerEntry& entry : entries) {
      check_geometry(entry.shown.geometry.kind, prompt.where);
      answer.text += &entry == &entries.front() ? "\n" : ",\n";
      write_box(entry, scale, answer, truth);
      if (form_.has_names) answer.text += ", \"label\": " + python_json_string(entry.shown.desc);
      answer.text += '}';
    }
    answer.text += entries.empty() ? "]\n```" : "\n]\n```";
    return teach_digits(answer, truth, tokenizer());
  }

  void check_geometry(GeometryKind kind, const std::string& where) const override {
    if (kind == GeometryKind::kBbox2d) return;
    throw data_error({.error = "this answer format cannot write polygons",
                      .where = where,
                      .what = "the record has an object with `poly`",
                      .fix = "run `rematch data boxes FILE --out NEW` to replace polygons by their "
                             "bounding boxes"});
  }

  bool lengths_vary_with_coords() const override { return true; }

 private:
  ParsedRollout read(std::vector<TokenId> token_ids, const Prompt& prompt) const override {
    const NumberScale scale = scale_for(prompt);
    ParsedRollout parsed;
    parsed.response_token_ids = std::move(token_ids);
    const TokenBytes tokens = TokenBytes::of_response(parsed.response_token_ids, tokenizer());
    const bool has_unknown_id = tokens.ends.size() < parsed.response_token_ids.size();
    const AnswerPlace place = find_answer(tokens.bytes, opens_think(prompt));
    if (place.in_think) {
      parsed.status = has_unknown_id ? ParseStatus::kMalformed : ParseStatus::kTruncated;
      return parsed;
    }
    const JsonDocument document = read_json_list(tokens.bytes, has_unknown_id, place.begin);
    add_entries(
        document, tokens, parsed,
        [&](size_t i) { return read_entry(document.top.items[i], tokens, scale, form_.has_names); },
        place.start);
    return parsed;
  }

  /// True if the prompt ends with an open think block.
  bool opens_think(const Prompt& prompt) const {
    std::string tail;
    const size_t num_ids = prompt.token_ids.size();
    for (size_t i = num_ids - std::min(num_ids, kPromptTail); i < num_ids; ++i) {
      const TokenId id = prompt.token_ids[i];
      if (tokenizer().has_token(id)) tail += tokenizer().token_bytes(id);
    }
    tail.erase(tail.find_last_not_of(" \n") + 1);
    return tail.ends_with(kThink);
  }

  NumberScale scale_for(const Prompt& prompt) const {
    if (!form_.in_pixels) return {};
    const auto [width, height] = prompt.resized_px;
    if (width > 0 && height > 0) return {.x = width, .y = height, .in_pixels = true};
    throw data_error(
        {.error = "this answer format writes pixels, and the image's size is not known",
         .where = prompt.where,
         .what = "the prompt has no image",
         .fix = "give the size of the resized image (`resized_px` of a stage's input)"});
  }

  ListForm form_;
};

template <bool kInPixels, bool kHasNames>
AnswerFormatRow list_format(const char* name, const char* meaning) {
  return {.name = name,
          .meaning = meaning,
          .has_names = kHasNames,
          .entry_key = "bbox_2d",
          .built_in_prompt = kHasNames ? built_in_prompt : boxes_prompt,
          .make = [](std::shared_ptr<const Tokenizer> tokenizer,
                     const std::string& where) -> std::unique_ptr<const AnswerFormat> {
            const ListForm form{.in_pixels = kInPixels, .has_names = kHasNames};
            return std::make_unique<DigitList>(std::move(tokenizer), where, form);
          }};
}

}  // namespace

AnswerFormatRow relative_digits_format() {
  return list_format<false, true>(
      "qwen_json", "the stock answer of Qwen3-VL: a list with digits, 0 to 1000 across the image");
}

AnswerFormatRow pixel_digits_format() {
  return list_format<true, true>(
      "qwen2_5_json",
      "the stock answer of Qwen2.5-VL: the same list in pixels of the resized image");
}

AnswerFormatRow relative_boxes_format() {
  return list_format<false, false>("qwen_boxes", "`qwen_json` without names");
}

AnswerFormatRow pixel_boxes_format() {
  return list_format<true, false>("qwen2_5_boxes", "`qwen2_5_json` without names");
}

bool answers_in_pixels(const std::string& format) {
  return format == pixel_digits_format().name || format == pixel_boxes_format().name;
}

}  // namespace rematch
