#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/flow/answer_place.h"
#include "base/json_fields.h"
#include "base/out_of_resources.h"
#include "base/text.h"
#include "tools/import/answer_reader.h"
#include "tools/import/chat_record.h"
#include "tools/import/directory_format.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/placeholders.h"
#include "tools/import/prompt_name.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr double kMostShare = 2;  // a larger value cannot be a normalized coordinate
constexpr const char* kFix =
    "write {\"messages\": [{\"role\": \"user\", \"content\": \"<image>…\"}, {\"role\": "
    "\"assistant\", \"content\": \"[{\\\"bbox_2d\\\": [x1, y1, x2, y2], \\\"label\\\": "
    "\\\"cat\\\"}]\"}], \"images\": [path]}";

/// Thrown for a record that is left out.
struct LeftOut {
  const char* reason;
  std::string what = "";
};

/// Reads the answers of one conversation.
class RecordReader {
 public:
  /// @param image  that of the record
  RecordReader(ForeignImage image, Placeholders filled, const ImportOptions& options,
               Ledger& ledger, std::vector<ForeignImage>& images)
      : image_(std::move(image)),
        filled_(std::move(filled)),
        options_(options),
        ledger_(ledger),
        images_(images) {}

  /// @throws LeftOut
  void read(const std::vector<ChatTurn>& turns) {
    int num_answers = 0, num_questions = 0;
    for (const ChatTurn& turn : turns) {
      if (turn.role == ChatTurn::Role::kSystem) {
        filled_.fill(turn.text, /*as_json=*/false);
        filled_.forget_used_names();
        ledger_.note("system messages, which records cannot hold: set template.system");
      } else if (turn.role == ChatTurn::Role::kUser) {
        question_ = filled_.fill(turn.text, /*as_json=*/false);
        marked_name_ = unmark_names(question_);
        ++num_questions;
      } else {
        ++num_answers;
        read_answer_turn(turn);
      }
    }
    if (num_answers == 0) {
      if (!filled_.has_boxes()) throw LeftOut{reason::kNoAnswer};
      if (num_questions > 1) throw LeftOut{reason::kNotPaired, "several questions without answers"};
      add_pairs(0, filled_.boxes().size());
    } else if (filled_.next_box() > 0 && filled_.next_box() != filled_.boxes().size()) {
      throw LeftOut{reason::kNotPaired, fmt::format("{} boxes for {} <bbox>",
                                                    filled_.boxes().size(), filled_.next_box())};
    }
    if (num_answers > 1)
      ledger_.note("answers written as separate records, from conversations with several answers",
                   num_answers);
  }

 private:
  void read_answer_turn(const ChatTurn& turn) {
    const AnswerPlace place = find_written_answer(turn.text);
    if (place.in_think) throw LeftOut{reason::kNotAList, "it ends inside a think block"};
    filled_.fill(turn.text.substr(0, place.start), /*as_json=*/false);  // a draft uses up its boxes
    const std::string text = turn.text.substr(place.start);
    if (!turn.is_learned) {
      filled_.fill(text, /*as_json=*/false);
      return start().leave_out(reason::kNotLearned, image_.where);
    }
    const size_t first_name = filled_.next_name(), first_box = filled_.next_box();
    const std::string json = filled_.fill(text, /*as_json=*/true);
    const size_t num_boxes = filled_.next_box() - first_box;
    if (filled_.next_name() > first_name && filled_.next_name() > filled_.names().size())
      throw LeftOut{reason::kNotPaired, fmt::format("{} names for {} <ref-object>",
                                                    filled_.names().size(), filled_.next_name())};
    if (num_boxes > 0 && has_old_marks(text))
      return add_captions(text, first_name, first_box, num_boxes);
    const std::vector<std::string>& words = options_.empty_answers;
    ImportedAnswer answer{.is_list = std::find(words.begin(), words.end(), python_strip(text)) !=
                                     words.end()};
    if (!answer.is_list)
      answer = read_answer(
          json, image_.where, options_, [&](const Json& value) { return filled_.box_of(value); },
          ledger_);
    const bool has_unplaced =
        filled_.has_boxes() && !filled_.boxes().empty() && filled_.next_box() == 0;
    if (!answer.is_list && (num_boxes > 0 || has_unplaced))
      return add_captions(text, first_name, first_box,
                          num_boxes > 0 ? num_boxes : filled_.boxes().size());
    if (!answer.is_list)
      return start().leave_out(reason::kNotAList, image_.where + ": " + answer.problem);
    if (has_unplaced)
      throw LeftOut{reason::kNotPaired,
                    "\"objects\" has boxes, and the answer has no <bbox> for them"};
    if (num_boxes > 0 && num_boxes != answer.objects.size() + answer.lost.size())
      throw LeftOut{reason::kNotPaired, "only some boxes of the answer are <bbox>"};
    ForeignImage& record = start();
    record.objects = std::move(answer.objects);
    for (ForeignObject& object : record.objects) {
      if (object.desc.empty()) object.desc = marked_name_;
    }
    record.lost = std::move(answer.lost);
    if (num_boxes > 0) {
      scale(record);
    } else {
      record.unit = CoordUnit::kAnswer;
    }
  }

  /// Captions such as `<ref-object><bbox>`: a box has the last name before it; without names in the
  /// text, names and boxes pair one to one, or one name stands for all.
  void add_captions(const std::string& text, size_t name, size_t box, size_t num_boxes) {
    if (text.find(kNamePlaceholder) == text.npos) return add_pairs(box, num_boxes);
    ForeignImage& record = start();
    bool has_name = false;
    for (size_t at = 0; at < text.size(); ++at) {
      const std::string_view rest = std::string_view(text).substr(at);
      if (rest.starts_with(kNamePlaceholder)) {
        ++name;
        has_name = true;
      } else if (rest.starts_with(kBoxPlaceholder)) {
        if (!has_name) throw LeftOut{reason::kNotPaired, "a <bbox> before its name"};
        add_box(record, box++, filled_.names()[name - 1]);
      }
    }
    scale(record);
  }

  void add_pairs(size_t first, size_t count) {
    const std::vector<std::string>& names = filled_.names();
    const size_t num_boxes = filled_.boxes().size();
    const bool is_named = names.size() == num_boxes || names.size() == 1 || names.empty();
    if (!is_named || first + count > num_boxes)
      throw LeftOut{reason::kNotPaired,
                    fmt::format("{} names for {} boxes", names.size(), num_boxes)};
    ForeignImage& record = start();
    for (size_t i = first; i < first + count; ++i)
      add_box(record, i, names.empty() ? "" : names[names.size() == 1 ? 0 : i]);
    scale(record);
  }

  void add_box(ForeignImage& record, size_t index, const std::string& name) {
    const std::string what = fmt::format("objects.bbox[{}]", index);
    if (index >= filled_.boxes().size()) throw LeftOut{reason::kNotPaired, what};
    const Json& box = filled_.boxes()[index];
    const Outline points = read_points(box);
    ForeignObject object;
    const bool is_nested = box.is_array() && !box.empty() && box.front().is_array();
    const char* reason = is_nested && box.front().size() == 4 ? reason::kSeveralBoxes
                         : is_nested && points.size() == 2
                             ? "two corners in lists in place of [x1, y1, x2, y2]"
                             : make_shape(points, options_, object, ledger_);
    if (reason != nullptr) return record.lose(reason, image_.where + ": " + what);
    object.desc = name;
    record.objects.push_back(std::move(object));
  }

  /// Sets the unit of `objects`, and divides numbers by it.
  void scale(ForeignImage& record) const {
    const double divisor = filled_.divisor();
    if (divisor == 0) return;
    record.unit = CoordUnit::kShares;
    for (ForeignObject& object : record.objects) {
      for (double* side : {&object.x0, &object.y0, &object.x1, &object.y1}) {
        *side /= divisor;
        if (std::abs(*side) > kMostShare)
          throw LeftOut{"a box far outside its image",
                        "if these are pixels, write \"bbox_type\": \"real\""};
      }
      for (auto& [x, y] : object.ring) {
        x /= divisor;
        y /= divisor;
      }
    }
  }

  /// Begins a record with its question.
  ForeignImage& start() {
    if (question_.find("<bbox#") != question_.npos) throw LeftOut{reason::kBoxInPrompt};
    ForeignImage& record = images_.emplace_back(image_);
    if (question_ != options_.usual_text) record.prompt = question_;
    return record;
  }

  ForeignImage image_;
  Placeholders filled_;
  const ImportOptions& options_;
  Ledger& ledger_;
  std::vector<ForeignImage>& images_;
  std::string question_;
  std::string marked_name_;  ///< name that the question has in marks
};

/// Reads the conversations of one file.
class ChatReader {
 public:
  ChatReader(const std::string& path, const ImportOptions& options, ForeignSet& set)
      : path_(path),
        options_(options),
        ledger_(set.ledger),
        images_(set.splits[options.split_name(path)]) {}

  void read() {
    const std::string bytes = read_file(path_);
    refuse_other(bytes);
    read_json_records(
        path_, bytes, [this](const Json& record, const std::string& where) { add(record, where); },
        ledger_);
  }

  /// Gives boxes without a name the name in their question.
  void name_objects() {
    for (ForeignImage& image : images_) {
      const std::string& question = image.prompt.empty() ? options_.usual_text : image.prompt;
      const std::optional<std::string> name = find_name(options_.label_from_prompt, question);
      for (ForeignObject& object : image.objects) {
        if (object.desc.empty() && name) object.desc = *name;
      }
    }
  }

 private:
  void refuse_other(const std::string& bytes) const {
    for (const char* key : {"\"messages\"", "\"conversations\"", "\"query\"", "\"objects\""}) {
      if (bytes.find(key) != bytes.npos) return;
    }
    refuse_other_format(path_, bytes, "from-qwen", "these are no conversations");
  }

  void add(const Json& record, const std::string& where) {
    const size_t before = images_.size();
    try {
      read_record(record, where);
    } catch (const OutOfResources&) {
      throw;
    } catch (const LeftOut& left_out) {
      images_.resize(before);
      ledger_.lose_record(left_out.reason,
                          left_out.what.empty() ? where : where + ": " + left_out.what);
    } catch (const UserError& error) {
      images_.resize(before);
      const Problem& problem = error.problems().front();
      ledger_.lose_record(
          reason::kDamagedRecord,
          fmt::format("{}: {}", problem.where.starts_with(where) ? problem.where : where,
                      problem.what));
    }
  }

  void read_record(const Json& record, const std::string& where) {
    const JsonOrigin origin{.path = where, .error = "this is not a conversation", .fix = kFix};
    for (const char* key : {"label", "kto_tag"}) {
      const Json* verdict = find_member(record, key);
      if (verdict != nullptr && (*verdict == false || *verdict == 0))
        throw LeftOut{reason::kMarkedBad};
    }
    const Json* videos = find_member(record, {"videos", "video"});
    if (videos != nullptr && !videos->empty() && *videos != "") throw LeftOut{reason::kVideo};
    Placeholders filled(record, origin);
    ChatRecord chat;
    if (is_chat(record)) {
      chat = read_chat(record, origin);
    } else if (filled.has_boxes()) {
      chat.images = JsonFields(record, origin).texts("images");
    } else {
      throw_json_error(origin, "", "it has neither \"messages\" nor \"conversations\"");
    }
    if (chat.images.size() != 1)
      throw LeftOut{reason::kSeveralImages, fmt::format("{} images", chat.images.size())};
    check_texts(chat);
    if (chat.has_own_size && options_.scale.unit == StockScale::Unit::kResizedPixels)
      throw LeftOut{"an image resized by its message, in answers of --scale pixels",
                    "\"resized_height\", \"max_pixels\" and the like"};
    ForeignImage image = image_of_record(record, chat.images.front(), path_, where);
    image.extra = read_extra(record);
    RecordReader(std::move(image), std::move(filled), options_, ledger_, images_).read(chat.turns);
  }

  /// @throws LeftOut for texts with tools, videos, or images that the record does not name
  static void check_texts(const ChatRecord& chat) {
    if (chat.num_marks > 1)
      throw LeftOut{reason::kSeveralImages,
                    fmt::format("{} marks of images for one image", chat.num_marks)};
    for (const ChatTurn& turn : chat.turns) {
      const auto has = [&](std::string_view mark) {
        return turn.text.find(mark) != std::string::npos;
      };
      if (has("<tool_call>") || has("<tool_response>")) throw LeftOut{reason::kTools};
      if (turn.role != ChatTurn::Role::kUser) continue;
      if (has("<video>")) throw LeftOut{reason::kVideo};
      if (has("<img>")) throw LeftOut{reason::kSeveralImages, "an <img> in the question"};
    }
  }

  /// The members of a record that training ignores and a round trip keeps.
  static std::string read_extra(const Json& record) {
    Json extra;
    for (const char* key : {"summary", "metadata"}) {
      if (const auto value = record.find(key); value != record.end()) extra[key] = *value;
    }
    return extra.is_null() ? "" : extra.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const std::string& path_;
  const ImportOptions& options_;
  Ledger& ledger_;
  std::vector<ForeignImage>& images_;
};

}  // namespace

ForeignSet read_chat_files(const std::vector<std::string>& paths, const ImportOptions& options) {
  check_one_file_per_split(paths, options);
  ForeignSet set{.sources = paths, .repeats_images = true, .assumed_form = BoxForm::kCorners};
  for (const std::string& path : paths) {
    ChatReader reader(path, options, set);
    reader.read();
    if (!options.label_from_prompt.empty()) reader.name_objects();
  }
  require_images(set, "no conversation has an answer with boxes", kFix);
  return set;
}

}  // namespace rematch
