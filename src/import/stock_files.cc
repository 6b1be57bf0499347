#include "import/stock_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "import/chat_record.h"
#include "vision/image.h"
#include "vision/upright.h"

namespace rematch {
namespace {

constexpr size_t kMostNamed = 20;
constexpr const char* kFix =
    "write {\"messages\": [{\"role\": \"user\", \"content\": \"<image>…\"}, {\"role\": "
    "\"assistant\", \"content\": \"[{\\\"bbox_2d\\\": [x1, y1, x2, y2], \\\"label\\\": "
    "\\\"cat\\\"}]\"}], \"images\": [path]}";

/// Reads all files of one call and keeps counts over all of them.
class StockReader {
 public:
  StockReader(const StockImport& options, ForeignSet& set) : options_(options), set_(set) {}

  void read_file(const std::string& path) {
    const std::string text = rematch::read_file(path);
    directory_ = options_.files.image_directory(path);
    images_ = &set_.splits[options_.files.split_name(path)];
    const size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first != std::string::npos && text[first] == '[') {
      const Json list = parse_json(text, path);
      for (size_t i = 0; i < list.size(); ++i)
        read_record(fmt::format("{}, record {}", path, i + 1), [&] { return list[i]; });
      return;
    }
    int line_number = 0;
    for (const std::string& line : split(text, '\n')) {
      ++line_number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string where = fmt::format("{}:{}", path, line_number);
      read_record(where, [&] { return parse_json(line, where); });
    }
  }

  /// @throws UserError (data) if the unit is wrong or no record is left
  void finish(const std::string& path) {
    check_unit(path);
    if (num_hidden_ > 0) set_.examples.push_back(fmt::format("… and {} more", num_hidden_));
    if (!set_.is_empty()) return;
    throw UserError(
        ErrorKind::kData,
        {.error = "no conversation has an answer with boxes",
         .where = path,
         .what = set_.examples.empty() ? "the file has no records"
                                       : fmt::format("{}; {}", counted(num_records_, "record"),
                                                     join(first_examples(), "; ")),
         .fix = std::string(kFix) + "; nothing has been written"});
  }

 private:
  template <typename Read>
  void read_record(const std::string& where, const Read& read) {
    ++num_records_;
    try {
      read_chat_record(read(), where);
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError& error) {
      const Problem& problem = error.problems().front();
      leave_out("left out: records that cannot be read",
                problem.where.starts_with(where) ? problem.where : where, problem.what);
    }
  }

  void read_chat_record(const Json& record, const std::string& where) {
    const JsonOrigin origin{.path = where, .error = "this is not a conversation", .fix = kFix};
    if (!is_chat(record))
      throw_json_error(origin, "", "it has neither \"messages\" nor \"conversations\"");
    const ChatRecord chat = read_chat(record, origin);
    if (chat.images.size() != 1) {
      throw_json_error(origin, "images",
                       fmt::format("expected one image, found {}", chat.images.size()));
    }
    const std::string image = join_path(directory_, chat.images.front());
    const bool needs_size = options_.scale.unit != StockScale::Unit::kThousandths;
    const StockSides sides = stock_sides(
        options_.scale, needs_size ? read_stored_image(image).upright_size() : ImageSize{}, image);
    std::string question;
    int num_answers = 0;
    for (const ChatTurn& turn : chat.turns) {
      if (turn.role == ChatTurn::Role::kSystem)
        ++set_.notes["system messages, which records cannot hold: set template.system"];
      if (turn.role == ChatTurn::Role::kUser) question = turn.text;
      if (turn.role == ChatTurn::Role::kAssistant &&
          read_answer(turn.text, question, image, sides, where))
        ++num_answers;
    }
    if (num_answers > 1)
      set_.notes["answers written as separate records, from conversations with several answers"] +=
          num_answers;
    const bool has_answer = std::any_of(chat.turns.begin(), chat.turns.end(), [](const auto& turn) {
      return turn.role == ChatTurn::Role::kAssistant;
    });
    if (!has_answer) leave_out("left out: records without an answer", where, "no assistant");
  }

  /// @return true if the answer became a record
  bool read_answer(const std::string& text, const std::string& question, const std::string& image,
                   const StockSides& sides, const std::string& where) {
    StockAnswer answer;
    try {
      answer = read_stock_answer(text, sides, where);
    } catch (const UserError& error) {
      leave_out("left out: answers that are not a list of boxes", where,
                error.problems().front().what);
      return false;
    }
    num_boxes_ += answer.num_boxes;
    num_beyond_ += answer.num_beyond;
    largest_ = std::max(largest_, answer.largest);
    smallest_ = std::min(smallest_, answer.smallest);
    has_fractions_ = has_fractions_ || answer.has_fractions;
    for (const std::string& problem : answer.problems)
      leave_out("left out: entries of answers that cannot be read", where, problem);
    // An empty scene would be wrong: the answer has objects.
    if (answer.objects.empty() && !answer.problems.empty()) {
      ++set_.notes["left out: answers without a readable entry"];
      return false;
    }
    ForeignImage& record = images_->emplace_back();
    record.path = image;
    record.in_bins = true;
    if (question != options_.usual_text) record.prompt = question;
    for (SceneObject& object : answer.objects) {
      const std::vector<int>& bins = object.geometry.bins;
      record.objects.push_back({.desc = std::move(object.desc),
                                .x0 = static_cast<double>(bins[0]),
                                .y0 = static_cast<double>(bins[1]),
                                .x1 = static_cast<double>(bins[2]),
                                .y1 = static_cast<double>(bins[3]),
                                .ring = {}});
    }
    return true;
  }

  void leave_out(const char* note, const std::string& where, const std::string& why) {
    ++set_.notes[note];
    if (set_.examples.size() < kMostNamed) {
      set_.examples.push_back(fmt::format("{}: {}", where, why));
    } else {
      ++num_hidden_;
    }
  }

  std::vector<std::string> first_examples() const {
    const size_t count = std::min<size_t>(set_.examples.size(), 3);
    return {set_.examples.begin(), set_.examples.begin() + static_cast<ptrdiff_t>(count)};
  }

  void check_unit(const std::string& path) const {
    const auto refuse = [&](const std::string& what, const std::string& fix) {
      throw UserError(ErrorKind::kData, {.error = "the coordinates are not in the unit of --scale",
                                         .where = path,
                                         .what = what,
                                         .fix = fix + "; nothing has been written"});
    };
    if (2 * num_beyond_ > num_boxes_) {
      refuse(fmt::format("{} of {} boxes are outside its range; coordinates are {:g} … {:g}",
                         num_beyond_, num_boxes_, smallest_, largest_),
             "choose the right unit: --scale relative (0..1000), pixels (of the resized image) or "
             "file-pixels");
    }
    if (has_fractions_ && largest_ <= 1) {
      refuse(fmt::format("no coordinate of {} boxes exceeds 1: they are normalized (0 to 1)",
                         num_boxes_),
             "multiply them by 1000");
    }
  }

  const StockImport& options_;
  ForeignSet& set_;
  std::string directory_;
  std::vector<ForeignImage>* images_ = nullptr;
  int64_t num_records_ = 0, num_boxes_ = 0, num_beyond_ = 0, num_hidden_ = 0;
  double smallest_ = 0, largest_ = 0;
  bool has_fractions_ = false;
};

}  // namespace

ForeignSet read_stock_files(const std::vector<std::string>& paths, const StockImport& options) {
  check_one_file_per_split(paths, options.files);
  ForeignSet set{.splits = {}, .notes = {}, .examples = {}, .sources = paths};
  StockReader reader(options, set);
  for (const std::string& path : paths) reader.read_file(path);
  reader.finish(paths.front());
  return set;
}

}  // namespace rematch
