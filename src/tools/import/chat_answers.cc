#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/flow/answer_place.h"
#include "base/text.h"
#include "tools/import/chat_steps.h"

namespace rematch {
namespace {

using Role = ChatTurn::Role;
constexpr std::string_view kHole = "{}";

constexpr std::string_view kBox = "<bbox>", kName = "<ref-object>";

[[noreturn]] void refuse(const std::string& what) { throw LeftOut{reason::kNotPaired, what}; }

/// A text with what `on_name` and `on_box` return in place of its placeholders.
template <typename OnName, typename OnBox>
std::string fill(const std::string& text, const OnName& on_name, const OnBox& on_box) {
  std::string filled;
  for (size_t at = 0;;) {
    const size_t name = text.find(kName, at), next = std::min(name, text.find(kBox, at));
    filled += text.substr(at, next - at);
    if (next == text.npos) return filled;
    filled += next == name ? on_name() : on_box();
    at = next + (next == name ? kName : kBox).size();
  }
}

/// The numbers of a flat list, which are shares unless they are pixels; "null" for another value.
/// @param divisor  0: pixels
std::string box_text(Json box, double divisor) {
  for (Json& value : box) {
    const std::optional<double> number = read_number(value);
    if (!number) return "null";
    value = divisor == 0 ? *number : *number / divisor;
  }
  return box.is_array() ? box.dump() : "null";
}

/// ms-swift's `objects` of a record: names and boxes, which fill the places `<ref-object>` and
/// `<bbox>` in the texts of the record, each in its own order. All functions throw LeftOut for
/// names and boxes that do not pair.
class Placeholders {
 public:
  /// Reads `ref`, `bbox` and `bbox_type` of `objects`.
  explicit Placeholders(const Json& record) {
    const Json &objects = member(record, {"objects"}), &boxes = member(objects, {"bbox"});
    if (objects.is_null()) return;
    const std::string type = text_member(objects, {"bbox_type"});
    if (!objects.is_object() || !(boxes.is_null() || boxes.is_array()) ||
        !(type.empty() || type == "real" || type == "norm1" || type == "norm1000"))
      refuse("\"objects\" has no list \"bbox\" of the bbox_type real, norm1 or norm1000");
    divisor_ = type == "norm1" ? 1 : type == "norm1000" ? 1000 : 0;
    has_boxes_ = !boxes.is_null();
    for (const Json& box : boxes) boxes_.push_back(box_text(box, divisor_));
    for (const Json& name : member(objects, {"ref"})) {
      if (!name.is_string()) refuse("objects.ref is not a list of texts");
      names_.push_back(name.get<std::string>());
    }
  }

  bool has_boxes() const { return has_boxes_; }
  size_t num_boxes() const { return boxes_.size(); }
  size_t num_used() const { return next_box_; }
  bool is_in_shares() const { return divisor_ != 0; }

  /// Fills the names of a question in, which has no boxes.
  std::string fill_question(const std::string& text) {
    return fill(
        text, [this] { return next_name(); },
        []() -> std::string { throw LeftOut{reason::kBoxInPrompt}; });
  }

  /// Fills the names of a system message in: they name no box.
  void use_up(const std::string& system) {
    fill_question(system);
    names_.erase(names_.begin(), names_.begin() + next_name_);
    next_name_ = 0;
  }

  /// Fills a text of the assistant in: JSON with its numbers, a caption as `<ref>…</ref><box>…
  /// </box>`. Without `<ref-object>` in a caption, names and boxes pair one to one, or one name
  /// stands for all.
  std::string fill_answer(const std::string& text) {
    const auto has = [&text](std::string_view part) { return text.find(part) != text.npos; };
    const bool is_json = has("{"), is_caption = !is_json && has(kBox), has_name = has(kName);
    if (is_caption && !has_name && names_.size() > 1 && names_.size() != boxes_.size())
      refuse(fmt::format("{} names for {} boxes", names_.size(), boxes_.size()));
    const auto marked = [](const std::string& name) { return "<ref>" + name + "</ref>"; };
    const auto on_name = [&] {
      const std::string& name = next_name();
      if (!is_json) return is_caption ? marked(name) : name;
      const std::string quoted = python_json_string(name);
      return quoted.substr(1, quoted.size() - 2);
    };
    const auto on_box = [&] {
      if (is_json) return next_box();
      const bool is_named = has_name || names_.empty();
      const std::string name =
          is_named ? "" : marked(names_[std::min(next_box_, names_.size() - 1)]);
      return name + "<box>" + next_box() + "</box>";
    };
    // Each name and box that is filled in has marks already.
    static const std::regex marks(R"(<(\|(object_ref|box)_(start|end)\||/?(ref|box))>)");
    const bool is_named = is_caption && (has_name || !names_.empty());
    return fill(is_named ? std::regex_replace(text, marks, "") : text, on_name, on_box);
  }

  /// All boxes, as a caption that mentions each.
  std::string fill_all() {
    std::string text;
    for (size_t i = 0; i < boxes_.size(); ++i) text += kBox;
    return boxes_.empty() ? "[]" : fill_answer(text);
  }

 private:
  const std::string& next_name() {
    if (next_name_ >= names_.size())
      refuse(fmt::format("{} names for more <ref-object>", names_.size()));
    return names_[next_name_++];
  }

  const std::string& next_box() {
    if (next_box_ >= boxes_.size()) refuse(fmt::format("{} boxes for more <bbox>", boxes_.size()));
    return boxes_[next_box_++];
  }

  Strings names_, boxes_;
  bool has_boxes_ = false;
  double divisor_ = 0;  ///< 0: pixels; else what makes the numbers shares of the sides
  size_t next_name_ = 0, next_box_ = 0;
};

class ConversationReader {
 public:
  ConversationReader(ForeignImage image, const Json& record, ForeignSet& set)
      : image_(std::move(image)), filled_(record), set_(set) {}

  /// @throws LeftOut
  ForeignImages read(const std::vector<ChatTurn>& turns) {
    int num_questions = 0;
    for (const ChatTurn& turn : turns) {
      if (turn.role == Role::kSystem) {
        filled_.use_up(turn.text);
        set_.ledger.note("system messages, which records cannot hold: set template.system");
      } else if (turn.role == Role::kUser) {
        question_ = filled_.fill_question(turn.text);
        marked_name_ = unmark_names(question_);
        ++num_questions;
      } else {
        add_answer(turn);
      }
    }
    if (records_.empty()) {
      if (!filled_.has_boxes()) throw LeftOut{reason::kNoAnswer};
      if (num_questions > 1) throw LeftOut{reason::kNotPaired, "several questions without answers"};
      add_objects(read_text(filled_.fill_all()), filled_.num_boxes());
    } else if (filled_.num_used() > 0 && filled_.num_used() != filled_.num_boxes()) {
      throw LeftOut{reason::kNotPaired,
                    fmt::format("{} boxes for {} <bbox>", filled_.num_boxes(), filled_.num_used())};
    }
    if (records_.size() > 1)
      set_.ledger.note(
          "answers written as separate records, from conversations with several answers",
          std::ssize(records_));
    return std::move(records_);
  }

 private:
  ImportedAnswer read_text(const std::string& text) { return read_answer(text, image_, set_); }

  void add_answer(const ChatTurn& turn) {
    const AnswerPlace place = find_written_answer(turn.text);
    if (place.in_think) throw LeftOut{reason::kNotAList, "it ends inside a think block"};
    filled_.fill_answer(turn.text.substr(0, place.start));  // a draft uses up its boxes
    const size_t before = filled_.num_used();
    const std::string text = filled_.fill_answer(turn.text.substr(place.start));
    size_t num_boxes = filled_.num_used() - before;
    if (!turn.is_learned) return start(image_).leave_out(reason::kOtherUse, image_.where);
    const size_t think = turn.text.find("<think>"), end = turn.text.rfind("</think>"),
                 begin = end == turn.text.npos ? 0 : end;
    if (mentions_geometry(turn.text.substr(begin, place.start - begin)) ||
        (think != turn.text.npos && mentions_geometry(turn.text.substr(0, think))))
      return start(image_).leave_out(reason::kSeveralLists,
                                     image_.where + ": boxes before the answer");
    const std::string word = python_strip(text.substr(0, text.find("</answer>")));
    ImportedAnswer answer = contains(set_.options.empty_answers, word)
                                ? ImportedAnswer{.image = image_, .is_list = true}
                                : read_text(text);
    if (filled_.num_boxes() > 0 && filled_.num_used() == 0) {
      if (answer.is_list)
        throw LeftOut{reason::kNotPaired,
                      "\"objects\" has boxes, and the answer has no <bbox> for them"};
      answer = read_text(filled_.fill_all());
      num_boxes = filled_.num_boxes();
    }
    if (num_boxes > 0 && num_boxes != answer.num_entries())
      throw LeftOut{reason::kNotPaired, "only some boxes of the answer are <bbox>"};
    add_objects(std::move(answer), num_boxes);
  }

  void add_objects(ImportedAnswer answer, size_t num_boxes) {
    ForeignImage& record = start(std::move(answer.image));
    if (!answer.is_list)
      return record.leave_out(answer.reason, image_.where + ": " + answer.problem);
    record.unit = num_boxes == 0           ? CoordUnit::kAnswer
                  : filled_.is_in_shares() ? CoordUnit::kShares
                                           : CoordUnit::kPixels;
    const std::string name =
        marked_name_.empty() ? find_name(set_.options.label_from_prompt, question_) : marked_name_;
    for (ForeignObject& object : record.objects) {
      if (object.desc.empty()) object.desc = name;
    }
  }

  /// Begins a record with its question.
  ForeignImage& start(ForeignImage image) {
    ForeignImage& record = records_.emplace_back(std::move(image));
    if (question_ != set_.options.usual_text) record.prompt = question_;
    return record;
  }

  ForeignImage image_;
  Placeholders filled_;
  ForeignSet& set_;
  ForeignImages records_;
  std::string question_;
  std::string marked_name_;  ///< name that the question has in marks
};

}  // namespace

ForeignImages read_conversation(const std::vector<ChatTurn>& turns, ForeignImage image,
                                const Json& record, ForeignSet& set) {
  return ConversationReader(std::move(image), record, set).read(turns);
}

std::string find_name(const std::string& pattern, const std::string& question) {
  const size_t hole = pattern.find(kHole);
  if (hole == pattern.npos) return "";
  const std::string text = lower_case(question), before = lower_case(pattern.substr(0, hole)),
                    after = lower_case(pattern.substr(hole + kHole.size()));
  const size_t found = text.find(before), begin = found + before.size();
  if (found == text.npos) return "";
  const size_t end = after.empty() ? text.size() : text.find(after, begin);
  return end == text.npos ? "" : python_strip(question.substr(begin, end - begin));
}

void check_name_pattern(const std::string& pattern) {
  const size_t hole = pattern.find(kHole);
  const bool is_one = hole != pattern.npos && hole == pattern.rfind(kHole) && pattern != kHole;
  if (pattern.empty() || is_one) return;
  throw config_error({.error = "the pattern needs one {} for the name",
                      .where = "--label-from-prompt",
                      .what = pattern,
                      .fix = "write it such as \"Locate {} in\""});
}

}  // namespace rematch
