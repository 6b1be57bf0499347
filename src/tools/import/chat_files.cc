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
#include "tools/import/old_marks.h"
#include "tools/import/placeholders.h"
#include "tools/import/prompt_name.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

constexpr double kMostShare = 2;  // a larger value cannot be a normalized coordinate
constexpr const char* kFix =
    "write {\"messages\": [{\"role\": \"user\", \"content\": \"<image>…\"}, {\"role\": "
    "\"assistant\", \"content\": \"[{\\\"bbox_2d\\\": [x1, y1, x2, y2], \\\"label\\\": "
    "\\\"cat\\\"}]\"}], \"images\": [path]}";

/// Thrown for a record that is left out.
struct LeftOut {
  std::string reason, place;
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
        [this](const std::string& where, const std::string& what) {
          ledger_.lose_record(reason::kDamagedRecord, where + ": " + what);
        });
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
  /// Refuses a file of another format than conversations.
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
      ledger_.lose_record(left_out.reason, left_out.place);
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
    if (const Json* verdict = find_member(record, "label"); verdict != nullptr && *verdict == false)
      throw LeftOut{reason::kMarkedBad, where};
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
      throw LeftOut{reason::kSeveralImages,
                    fmt::format("{}: {} images", where, chat.images.size())};
    image_ = ForeignImage{.name = chat.images.front(),
                          .directory = ImportOptions::directory_of(path_),
                          .stem = "",
                          .where = where,
                          .width_px = read_side_px(find_member(record, "width")),
                          .height_px = read_side_px(find_member(record, "height")),
                          .extra = read_extra(record)};
    read_turns(chat, filled, where);
  }

  /// The members of a record that training ignores and a round trip keeps.
  static std::string read_extra(const Json& record) {
    Json extra;
    for (const char* key : {"summary", "metadata"}) {
      if (const auto value = record.find(key); value != record.end()) extra[key] = *value;
    }
    return extra.is_null() ? "" : extra.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void read_turns(const ChatRecord& chat, Placeholders& filled, const std::string& where) {
    std::string question;
    int num_answers = 0, num_questions = 0;
    for (const ChatTurn& turn : chat.turns) {
      if (turn.role == ChatTurn::Role::kSystem) {
        filled.fill(turn.text, /*as_json=*/false);
        filled.forget_used_names();
        ledger_.note("system messages, which records cannot hold: set template.system");
      }
      if (turn.role == ChatTurn::Role::kUser) {
        question = filled.fill(turn.text, /*as_json=*/false);
        marked_name_ = unmark_names(question);
        ++num_questions;
      }
      if (turn.role != ChatTurn::Role::kAssistant) continue;
      ++num_answers;
      read_answer_turn(turn.text, question, filled, where);
    }
    if (num_answers == 0) {
      if (!filled.has_boxes()) throw LeftOut{reason::kNoAnswer, where};
      if (num_questions > 1)
        throw LeftOut{reason::kNotPaired, where + ": several questions without answers"};
      add_pairs(question, filled, 0, filled.boxes().size(), where);
    } else if (filled.next_box() > 0 && filled.next_box() != filled.boxes().size()) {
      throw LeftOut{reason::kNotPaired, fmt::format("{}: {} boxes for {} <bbox>", where,
                                                    filled.boxes().size(), filled.next_box())};
    }
    if (num_answers > 1)
      ledger_.note("answers written as separate records, from conversations with several answers",
                   num_answers);
  }

  void read_answer_turn(const std::string& turn, const std::string& question, Placeholders& filled,
                        const std::string& where) {
    const AnswerPlace place = find_written_answer(turn);
    if (place.in_think) throw LeftOut{reason::kNotAList, where + ": it ends inside a think block"};
    filled.fill(turn.substr(0, place.start), /*as_json=*/false);  // a draft uses up its boxes
    const std::string text = turn.substr(place.start);
    const size_t first_name = filled.next_name(), first_box = filled.next_box();
    const std::string json = filled.fill(text, /*as_json=*/true);
    const size_t num_boxes = filled.next_box() - first_box;
    if (filled.next_name() > first_name && filled.next_name() > filled.names().size())
      throw LeftOut{reason::kNotPaired, fmt::format("{}: {} names for {} <ref-object>", where,
                                                    filled.names().size(), filled.next_name())};
    const bool is_word = std::find(options_.empty_answers.begin(), options_.empty_answers.end(),
                                   python_strip(text)) != options_.empty_answers.end();
    if (num_boxes > 0 && has_old_marks(text))
      return add_captions(text, question, filled, first_name, first_box, num_boxes, where);
    ImportedAnswer answer;
    if (is_word) {
      answer.is_list = true;
    } else {
      answer = read_answer(
          json, where, options_.polygons, [&](const Json& value) { return filled.box_of(value); },
          ledger_);
    }
    const bool has_unplaced =
        filled.has_boxes() && !filled.boxes().empty() && filled.next_box() == 0;
    if (!answer.is_list && (num_boxes > 0 || has_unplaced)) {
      const size_t count = num_boxes > 0 ? num_boxes : filled.boxes().size();
      return add_captions(text, question, filled, first_name, first_box, count, where);
    }
    if (!answer.is_list) throw LeftOut{reason::kNotAList, where + ": " + answer.problem};
    if (has_unplaced)
      throw LeftOut{reason::kNotPaired,
                    where + ": \"objects\" has boxes, and the answer has no <bbox> for them"};
    const size_t num_read = answer.objects.size() + answer.lost.size();
    if (num_boxes > 0 && num_boxes != num_read)
      throw LeftOut{reason::kNotPaired, where + ": only some boxes of the answer are <bbox>"};
    ForeignImage& record =
        start(question, num_boxes > 0 ? unit_of(filled) : CoordUnit::kAnswer, where);
    record.objects = std::move(answer.objects);
    for (ForeignObject& object : record.objects) {
      if (object.desc.empty()) object.desc = marked_name_;
    }
    record.lost = std::move(answer.lost);
    if (num_boxes > 0) scale(record, filled, where);
  }

  /// Captions such as `<ref-object><bbox>`: a box has the last name before it; without names in the
  /// text, names and boxes pair one to one, or one name stands for all.
  void add_captions(const std::string& text, const std::string& question,
                    const Placeholders& filled, size_t first_name, size_t first_box, size_t count,
                    const std::string& where) {
    if (text.find(kNamePlaceholder) == text.npos)
      return add_pairs(question, filled, first_box, count, where);
    ForeignImage& record = start(question, unit_of(filled), where);
    size_t name = first_name, box = first_box;
    bool has_name = false;
    for (size_t at = 0; at < text.size();) {
      const std::string_view rest = std::string_view(text).substr(at);
      if (rest.starts_with(kNamePlaceholder)) {
        ++name;
        has_name = true;
        at += kNamePlaceholder.size();
      } else if (rest.starts_with(kBoxPlaceholder)) {
        if (!has_name) throw LeftOut{reason::kNotPaired, where + ": a <bbox> before its name"};
        add_box(record, filled, box++, filled.names()[name - 1], where);
        at += kBoxPlaceholder.size();
      } else {
        ++at;
      }
    }
    scale(record, filled, where);
  }

  void add_pairs(const std::string& question, const Placeholders& filled, size_t first,
                 size_t count, const std::string& where) {
    const std::vector<std::string>& names = filled.names();
    const size_t num_boxes = filled.boxes().size();
    const bool is_named = names.size() == num_boxes || names.size() == 1 || names.empty();
    if (!is_named || first + count > num_boxes)
      throw LeftOut{reason::kNotPaired,
                    fmt::format("{}: {} names for {} boxes", where, names.size(), num_boxes)};
    ForeignImage& record = start(question, unit_of(filled), where);
    for (size_t i = first; i < first + count; ++i)
      add_box(record, filled, i,
              names.empty()       ? ""
              : names.size() == 1 ? names.front()
                                  : names[i],
              where);
    scale(record, filled, where);
  }

  static CoordUnit unit_of(const Placeholders& filled) {
    return filled.divisor() > 0 ? CoordUnit::kShares : CoordUnit::kPixels;
  }

  void add_box(ForeignImage& record, const Placeholders& filled, size_t index,
               const std::string& name, const std::string& where) {
    const std::string place = fmt::format("{}: objects.bbox[{}]", where, index);
    if (index >= filled.boxes().size()) throw LeftOut{reason::kNotPaired, place};
    const Json& box = filled.boxes()[index];
    const Outline points = read_points(box);
    const bool is_nested = box.is_array() && !box.empty() && box.front().is_array();
    if (points.size() == 1) return record.lose(reason::kPoint, place);
    if (points.size() != 2 && points.size() < 4) return record.lose(reason::kNoBox, place);
    if (is_nested && points.size() == 2)
      return record.lose("two corners in lists in place of [x1, y1, x2, y2]", place);
    ForeignObject object =
        points.size() == 2
            ? make_box({points[0][0], points[0][1], points[1][0], points[1][1]}, BoxForm::kCorners)
            : make_outline(points, options_.polygons, "outlines", ledger_);
    object.desc = name;
    record.objects.push_back(std::move(object));
  }

  /// Divides the numbers of `objects` by their unit.
  static void scale(ForeignImage& record, const Placeholders& filled, const std::string& where) {
    const double divisor = filled.divisor();
    if (divisor == 0) return;
    for (ForeignObject& object : record.objects) {
      for (double* side : {&object.x0, &object.y0, &object.x1, &object.y1}) *side /= divisor;
      for (auto& [x, y] : object.ring) {
        x /= divisor;
        y /= divisor;
      }
      if (std::max({std::abs(object.x0), std::abs(object.y0), std::abs(object.x1),
                    std::abs(object.y1)}) > kMostShare)
        throw LeftOut{"a box far outside its image",
                      where + ": if these are pixels, write \"bbox_type\": \"real\""};
    }
  }

  /// Begins a record with its question.
  ForeignImage& start(const std::string& question, CoordUnit unit, const std::string& where) {
    if (question.find("<bbox#") != question.npos) throw LeftOut{reason::kBoxInPrompt, where};
    ForeignImage& record = images_.emplace_back(image_);
    record.unit = unit;
    if (question != options_.usual_text) record.prompt = question;
    return record;
  }

  const std::string& path_;
  const ImportOptions& options_;
  Ledger& ledger_;
  std::vector<ForeignImage>& images_;
  ForeignImage image_;
  std::string marked_name_;  ///< name that the last question has in marks
};

}  // namespace

ForeignSet read_chat_files(const std::vector<std::string>& paths, const ImportOptions& options) {
  check_one_file_per_split(paths, options);
  ForeignSet set{.sources = paths, .repeats_images = true};
  for (const std::string& path : paths) {
    ChatReader reader(path, options, set);
    reader.read();
    if (!options.label_from_prompt.empty()) reader.name_objects();
  }
  if (!set.is_empty()) return set;
  const std::vector<std::string> places = set.ledger.places();
  throw UserError(
      ErrorKind::kData,
      {.error = "no conversation has an answer with boxes",
       .where = places.empty() ? paths.front() : places.front(),
       .what = places.empty() ? "the file has no records" : set.ledger.summary(0),
       .fix = Ledger::fix_of(set.ledger.records(), kFix) + "; nothing has been written"});
}

}  // namespace rematch
