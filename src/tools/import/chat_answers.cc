#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/flow/answer_place.h"
#include "base/text.h"
#include "tools/import/chat_steps.h"

namespace rematch {
namespace {

using Role = ChatTurn::Role;
constexpr std::string_view kHole = "{}";

class ConversationReader {
 public:
  ConversationReader(ForeignImage image, Placeholders filled, ForeignSet& set)
      : image_(std::move(image)), filled_(std::move(filled)), set_(set) {}

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
                                Placeholders filled, ForeignSet& set) {
  return ConversationReader(std::move(image), std::move(filled), set).read(turns);
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
