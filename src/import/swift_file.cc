#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "import/chat_record.h"
#include "import/foreign.h"

namespace rematch {
namespace {

constexpr double kNorm1000 = 1000;
constexpr double kMostNormalized = 2;  // a larger value cannot be a normalized coordinate

/// Reads the divisor of a record's coordinates: 0 for pixels, 1 for normalized coordinates, 1000.
double read_divisor(JsonFields& objects) {
  const std::string type = objects.text_or("bbox_type", "real");
  if (type == "real") return 0;
  if (type == "norm1") return 1;
  if (type == "norm1000") return kNorm1000;
  objects.fail("bbox_type", "expected real, norm1 or norm1000");
}

/// Replaces each `<ref-object>` in a user's text with a name, in order.
std::string insert_names(std::string text, const std::vector<std::string>& refs) {
  constexpr std::string_view kName = "<ref-object>";
  size_t at = 0;
  for (const std::string& ref : refs) {
    at = text.find(kName, at);
    if (at == std::string::npos) break;
    text.replace(at, kName.size(), ref);
    at += ref.size();
  }
  return text;
}

/// The text of a record's only user turn; empty if it cannot be used as a prompt.
std::string read_prompt(const Json& record, const JsonOrigin& origin,
                        const std::vector<std::string>& refs, ForeignSet& set) {
  if (!record.contains("messages") || record["messages"].empty()) return "";
  ChatRecord chat;
  try {
    chat = read_chat(record, origin);
  } catch (const UserError&) {
    ++set.notes["prompts of messages that cannot be read, not kept"];
    return "";
  }
  std::vector<std::string> questions;
  for (ChatTurn& turn : chat.turns) {
    if (turn.role == ChatTurn::Role::kUser) questions.push_back(std::move(turn.text));
    if (turn.role == ChatTurn::Role::kSystem)
      ++set.notes["system messages, which records cannot hold: set template.system"];
  }
  if (questions.size() > 1) {
    ++set.notes["prompts of conversations with several questions, not kept"];
    return "";
  }
  std::string text = questions.empty() ? "" : insert_names(questions.front(), refs);
  if (text.find("<bbox>") != std::string::npos) {
    ++set.notes["prompts with <bbox>, not kept"];
    return "";
  }
  return text;
}

/// Counts over the boxes in pixels, to check their unit.
struct PixelCount {
  int64_t num_boxes = 0;
  double largest = 0;
};

/// Reads an entry of `bbox`; nullopt for a point.
std::optional<ForeignObject> read_box(const Json& box, size_t index, double divisor,
                                      JsonFields& objects, PixelCount& pixels) {
  const auto is_number = [](const Json& value) { return value.is_number(); };
  const bool has_numbers = box.is_array() && std::all_of(box.begin(), box.end(), is_number);
  if (has_numbers && box.size() == 2) return std::nullopt;
  if (!has_numbers || box.size() != 4) {
    objects.fail("bbox", fmt::format("entry {} is not [x1, y1, x2, y2] in numbers: {}", index,
                                     show_json(box)));
  }
  std::array<double, 4> sides{};
  for (size_t k = 0; k < 4; ++k) {
    sides[k] = divisor > 0 ? box[k].get<double>() / divisor : box[k].get<double>();
    if (divisor > 0 && !(std::abs(sides[k]) <= kMostNormalized)) {
      objects.fail("bbox", fmt::format("entry {} is far outside its image: if these are pixels, "
                                       "write \"bbox_type\": \"real\"",
                                       index));
    }
    if (divisor == 0) pixels.largest = std::max(pixels.largest, sides[k]);
  }
  if (divisor == 0) ++pixels.num_boxes;
  return ForeignObject{
      .desc = "", .x0 = sides[0], .y0 = sides[1], .x1 = sides[2], .y1 = sides[3], .ring = {}};
}

/// True if a record without `objects` has boxes in the text of its answers.
bool has_stock_answer(const Json& record) {
  return is_chat(record) && !record.contains("objects") &&
         record.dump(-1, ' ', false, Json::error_handler_t::replace).find("bbox_2d") !=
             std::string::npos;
}

constexpr const char* kTextAnswers = "left out: records whose boxes are in the text of the answer";

/// Reads the image of a record; nullopt for a record without boxes.
std::optional<ForeignImage> read_line(const std::string& line, const JsonOrigin& origin,
                                      const std::string& directory, ForeignSet& set,
                                      PixelCount& pixels) {
  const Json record = parse_document(line, origin);
  JsonFields fields(record, origin);
  if (has_stock_answer(record)) {
    ++set.notes[kTextAnswers];
    return std::nullopt;
  }
  JsonFields objects = fields.object_or_empty("objects");
  const std::vector<std::string> refs = objects.texts("ref");
  const double divisor = read_divisor(objects);
  const Json* boxes = objects.find("bbox");
  const bool has_boxes = boxes != nullptr && !boxes->is_null();
  const std::vector<std::string> images = fields.texts("images");
  if (images.size() != 1 && (has_boxes || !is_chat(record)))
    fields.fail("images", fmt::format("expected one image, found {}", images.size()));
  if (!has_boxes) {
    ++set.notes["left out: records without boxes"];
    return std::nullopt;
  }
  if (!boxes->is_array()) objects.fail("bbox", "expected a list of boxes");
  if (refs.size() != boxes->size() && refs.size() != 1)
    objects.fail("ref", fmt::format("{} names for {} boxes: expected one per box, or one for all",
                                    refs.size(), boxes->size()));
  ForeignImage image{.path = join_path(directory, images[0]),
                     .is_relative = divisor > 0,
                     .prompt = read_prompt(record, origin, refs, set),
                     .objects = {}};
  for (size_t i = 0; i < boxes->size(); ++i) {
    std::optional<ForeignObject> object = read_box((*boxes)[i], i, divisor, objects, pixels);
    if (!object) {
      ++set.notes["left out: points"];
      continue;
    }
    object->desc = refs.size() == 1 ? refs[0] : refs[i];
    image.objects.push_back(*std::move(object));
  }
  if (image.objects.empty() && !boxes->empty()) {
    ++set.notes["left out: records without boxes"];  // only points
    return std::nullopt;
  }
  return image;
}

/// @throws UserError (data) for a file with normalized coordinates declared as pixels
void check_unit(const PixelCount& pixels, const std::string& path) {
  if (pixels.num_boxes == 0 || pixels.largest > 1) return;
  throw UserError(
      ErrorKind::kData,
      {.error = "the boxes are normalized (0 to 1), not in pixels",
       .where = path,
       .what =
           fmt::format("no coordinate of {} exceeds 1", counted(pixels.num_boxes, "box", "boxes")),
       .fix = "write \"bbox_type\": \"norm1\" into the objects; nothing has been written"});
}

/// @throws UserError (data) if no record was read
void check_set(const ForeignSet& set, const std::string& path) {
  if (!set.is_empty()) return;
  std::vector<std::string> counts;
  for (const auto& [note, count] : set.notes) counts.push_back(fmt::format("{} ({})", note, count));
  const bool has_text_answers = set.notes.contains(kTextAnswers);
  throw UserError(
      ErrorKind::kData,
      {.error = "no record has boxes in \"objects\"",
       .where = path,
       .what = counts.empty() ? "the file has no records" : join(counts, "; "),
       .fix = has_text_answers
                  ? fmt::format("run `rematch data from-qwen {} --out DIR`, which reads answers "
                                "in text",
                                shell_word(path))
                  : "write \"objects\": {\"ref\": […], \"bbox\": [[x1, y1, x2, y2], …]}"});
}

}  // namespace

ForeignSet read_swift_files(const std::vector<std::string>& paths, const ImportOptions& options) {
  ForeignSet set{.splits = {}, .notes = {}, .examples = {}, .sources = paths};
  for (const std::string& path : paths) {
    PixelCount pixels;
    const std::string directory = options.image_directory(path);
    auto& images = set.splits[options.split_name(path)];
    int line_number = 0;
    for (const std::string& line : split(read_file(path), '\n')) {
      ++line_number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const JsonOrigin origin{.path = fmt::format("{}:{}", path, line_number),
                              .error = "this is not an ms-swift grounding record",
                              .fix =
                                  "write {\"messages\": […], \"images\": [path], \"objects\": "
                                  "{\"ref\": […], \"bbox\": [[x1, y1, x2, y2], …]}}"};
      std::optional<ForeignImage> image = read_line(line, origin, directory, set, pixels);
      if (image) images.push_back(*std::move(image));
    }
    check_unit(pixels, path);
  }
  check_set(set, paths.front());
  return set;
}

}  // namespace rematch
