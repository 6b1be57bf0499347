#include "tools/import/ledger.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

struct Fix {
  const char *reason, *fix;
};

constexpr Fix kFixes[] = {
    {reason::kNoName,
     "name the objects with --label NAME; a conversation may say the name in its question: "
     "--label-from-prompt \"Locate {} in\""},
    {reason::kPoint, "points are not supported: draw boxes"},
    {reason::kKeypointsOnly, "key points are not supported: draw boxes"},
    {reason::kMaskOnly, "add \"bbox\": pycocotools.mask.toBbox gives the box of a mask"},
    {reason::kFiveNumbers,
     "write the four corners as \"segmentation\": [[x1, y1, …, x4, y4]], without \"bbox\""},
    {reason::kSeveralFiles, "write the name with its folder and ending, or remove the other files"},
    {reason::kSharedLabels, "remove one of the images, or give each its own label file"},
    {reason::kNoArea,
     "correct them; where a box such as [0, 0, 0, 0] means that nothing is there, write an empty "
     "list in its place"},
    {reason::kNotLearned, "they are left out on purpose: remove the mark to learn them"},
    {reason::kNoAnswer,
     "write the answer as the assistant's last message: GRPO records have it in \"solution\", "
     "preference pairs in \"chosen\""},
    {reason::kTools, "tools are not supported: keep a question and its answer"},
    {reason::kVideo, "videos are not supported"},
    {reason::kInnerBox, "write one flat list with an entry for each box"},
    {reason::kSeveralBoxes, "write an entry of \"objects\" for each box, with its name"},
    {reason::kLateName, "write each name before its box"},
    {reason::kNotAList,
     "write [{\"bbox_2d\": [x1, y1, x2, y2], \"label\": \"cat\"}], fenced or bare; for a text "
     "that means \"nothing is there\" add --empty-answer TEXT"},
    {reason::kBeyondScale,
     "choose the unit of the numbers: --scale relative (0..1000), pixels (of the resized image), "
     "file-pixels or normalized (0..1)"},
    {reason::kSwapped,
     "correct the boxes; if the numbers have another meaning, say it with --boxes xywh, xyxy or "
     "cxcywh where the command has this option"},
    {reason::kNoLabelFile,
     "add the label files, or say with --missing-labels-are-empty that these images show no "
     "object"},
    {reason::kOtherImage,
     "correct the name inside the file, or remove the photo that is not meant"},
    {reason::kOddLine,
     "a line is CLASS X Y WIDTH HEIGHT with blanks between, the class a number from 0, the others "
     "shares of the image from 0 to 1"},
    {reason::kUnknownClass,
     "give the names of the classes with --names cat,dog or --names FILE where the command has "
     "this option, or one name for all with --label NAME"},
    {reason::kTwoEntries, "join the entries of an image"},
    {reason::kMaybeNotEmpty, "correct the image_id of the annotations"},
    {reason::kShares, "multiply these boxes by the unit of the others"},
};

std::vector<std::pair<std::string, Loss>> ranked(const Losses& losses) {
  std::vector<std::pair<std::string, Loss>> rows(losses.begin(), losses.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  return rows;
}

}  // namespace

std::string reason::fix_for(const std::string& reason) {
  for (const Fix& row : kFixes) {
    if (reason == row.reason) return row.fix;
  }
  return "";
}

void Ledger::add(Losses& losses, const std::string& reason, const std::string& place) {
  Loss& loss = losses[reason];
  if (loss.count++ == 0) loss.first = place;
}

std::string Ledger::list(const Losses& losses) {
  std::string text;
  for (const auto& [reason, loss] : ranked(losses))
    text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", loss.count, reason);
  return text;
}

std::string Ledger::summary(int64_t num_kept) const {
  std::string text;
  if (num_records_lost_ > 0)
    text = fmt::format("left out {} of {}: {}", num_records_lost_,
                       counted(num_records_lost_ + num_kept, "record"), list(records_));
  if (num_objects_lost_ > 0)
    text += fmt::format("{}left out {} of records that were kept: {}", text.empty() ? "" : "; ",
                        counted(num_objects_lost_, "object"), list(objects_));
  return text;
}

std::vector<std::string> Ledger::places() const {
  std::vector<std::string> places;
  for (const Losses* losses : {&records_, &objects_}) {
    for (const auto& [reason, loss] : ranked(*losses)) {
      if (!loss.first.empty()) places.push_back(fmt::format("{} ({})", loss.first, reason));
    }
  }
  return places;
}

std::string Ledger::fix() const { return fix_of(records_, "correct or remove these records"); }

std::string Ledger::fix_of(const Losses& losses, const std::string& otherwise) {
  std::vector<std::string> fixes;
  bool are_all_known = true;
  for (const auto& [reason, loss] : ranked(losses)) {
    std::string fix = reason::fix_for(reason);
    if (fix.empty())
      are_all_known = false;
    else if (fixes.size() < 2)
      fixes.push_back(std::move(fix));
  }
  if (fixes.empty()) return otherwise;
  if (!are_all_known) fixes.push_back("correct or remove the others");
  return join(fixes, "; ");
}

}  // namespace rematch
