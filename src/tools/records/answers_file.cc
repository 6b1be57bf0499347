#include "tools/records/answers_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/first_few.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/percent.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/problem_list.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr const char* kFix =
    "write {\"image\": \"photos/a.jpg\", \"text\": \"…\"} or {\"id\": 0, \"text\": \"…\"} a line; "
    "id is the 0-based line of the record";

std::string normal_path(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

[[noreturn]] void refuse(const std::string& where, const std::string& error,
                         const std::string& what, const std::string& fix = kFix) {
  throw data_error({.error = error, .where = where, .what = what, .fix = fix});
}

/// Finds records by line or by image.
class RecordIndex {
 public:
  RecordIndex(const Dataset& records, std::string answers_dir)
      : records_(records), answers_dir_(std::move(answers_dir)) {
    records_dir_ = parent_of(records.path());
    for (size_t i = 0; i < records.samples().size(); ++i) {
      const Sample& sample = records.samples()[i];
      by_id_[sample.sample_id] = i;
      for (const std::string& path : sample.image_paths) {
        by_path_[normal_path(path)].push_back(i);
        by_name_[fs::path(path).filename().string()].push_back(i);
      }
    }
  }

  size_t find_id(int64_t id, const std::string& where) const {
    const auto found = by_id_.find(id);
    if (found == by_id_.end())
      refuse(where, "an answer to a record that is not there",
             fmt::format("{} has no record in line {} (id {})", records_.path(), id + 1, id));
    return found->second;
  }

  /// The record of a batch's `custom_id`: its 0-based line in digits, or its image.
  size_t find_custom(const std::string& id, const std::string& where) const {
    int64_t line = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), line);
    if (error == std::errc() && end == id.data() + id.size()) return find_id(line, where);
    return only_one(find_image(id, where), id, where);
  }

  /// The records that ask about an image.
  const std::vector<size_t>& find_image(const std::string& image, const std::string& where) const {
    std::string slashes = image;  // as a path of Windows is read
    std::ranges::replace(slashes, '\\', '/');
    for (const std::string& name : {image, slashes}) {
      for (const std::string& path :
           {join_path(records_dir_, name), name, join_path(answers_dir_, name)}) {
        if (const auto found = by_path_.find(normal_path(path)); found != by_path_.end())
          return found->second;
      }
      const auto named = by_name_.find(fs::path(name).filename().string());
      if (named != by_name_.end()) return named->second;
    }
    refuse(where, "an answer to an image that no record has", image);
  }

  /// @param id  decides between several; unset or of another image: none does
  size_t only_one(const std::vector<size_t>& found, const std::string& image,
                  const std::string& where, std::optional<int64_t> id = std::nullopt) const {
    const auto known = id ? by_id_.find(*id) : by_id_.end();
    if (known != by_id_.end() && std::ranges::count(found, known->second) > 0) return known->second;
    if (found.size() > 1)
      refuse(where, "several records ask about the image of an answer",
             fmt::format("{}: {} and {}", image, records_.samples()[found[0]].where,
                         records_.samples()[found[1]].where),
             "name the record by \"id\", its 0-based line");
    return found.front();
  }

 private:
  const Dataset& records_;
  std::string answers_dir_, records_dir_;
  std::map<int64_t, size_t> by_id_;
  std::map<std::string, std::vector<size_t>> by_path_, by_name_;
};

/// The first member of these names; null if there is none.
const Json* first_of(const Json& line, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto found = line.find(name); found != line.end() && !found->is_null())
      return &*found;
  }
  return nullptr;
}

std::string image_of(const Json& value, const std::string& where) {
  const Json* image = &value;
  if (image->is_array() && image->size() == 1) image = &image->front();
  if (image->is_object() && image->contains("path")) image = &(*image)["path"];
  if (!image->is_string())
    refuse(where, "the image of an answer is not one path", show_json(value));
  const std::string path = image->get<std::string>();
  constexpr std::string_view kLocal = "file://";
  return path.starts_with(kLocal) ? percent_decoded(path.substr(kLocal.size())) : path;
}

/// The record that an answer belongs to. Many programs number their lines in another way, so an
/// image decides where it names one record; an id decides between records of one image.
size_t record_of(const Json& line, const RecordIndex& index, const std::string& where) {
  const Json* id = first_of(line, {"id", "sample_id"});
  const bool is_line = id != nullptr && id->is_number_integer();
  if (const Json* image = first_of(line, {"image", "images"})) {
    const std::string path = image_of(*image, where);
    return index.only_one(index.find_image(path, where), path, where,
                          is_line ? std::optional(id->get<int64_t>()) : std::nullopt);
  }
  if (is_line) return index.find_id(id->get<int64_t>(), where);
  if (const Json* custom = first_of(line, {"custom_id"}); custom != nullptr && custom->is_string())
    return index.find_custom(custom->get<std::string>(), where);
  refuse(where, "an answer names no record",
         id == nullptr ? show_json(line) : fmt::format("its id {} is no integer", show_json(*id)));
}

/// The only choice of a chat completion; null if it has none or several.
const Json* choice_of(const Json& value) {
  const Json* choices = first_of(value, {"choices"});
  const bool is_one = choices != nullptr && choices->is_array() && choices->size() == 1;
  return is_one ? &choices->front() : nullptr;
}

/// The message of a chat completion; null if it has none.
const Json* message_of(const Json& value) {
  const Json* choice = choice_of(value);
  return choice == nullptr ? nullptr : first_of(*choice, {"message"});
}

/// The text of a chat completion, which may be null.
const Json* completion_of(const Json& value) {
  const Json *message = message_of(value), *choice = choice_of(value);
  if (message == nullptr) return choice == nullptr ? nullptr : first_of(*choice, {"text"});
  const auto content = message->find("content");
  return content == message->end() ? nullptr : &*content;
}

/// The answer of a server: the line, its `response`, or the `body` of that.
const Json* body_of(const Json& line) {
  const Json* response = first_of(line, {"response"});
  if (response == nullptr || !response->is_object()) return &line;
  const Json* body = first_of(*response, {"body"});
  return body == nullptr ? response : body;
}

/// " (refusal …)" if the model refused to answer; else "".
std::string refusal_of(const Json& line) {
  const Json* message = message_of(*body_of(line));
  const Json* refusal = message == nullptr ? nullptr : first_of(*message, {"refusal"});
  return refusal == nullptr ? "" : fmt::format(" (refusal {})", show_json(*refusal));
}

/// Reason for a request without an answer, "status 429"; "" for other lines.
std::string failure_of(const Json& line) {
  if (const Json* response = first_of(line, {"response"}); response != nullptr) {
    const Json* status = first_of(*response, {"status_code"});
    if (status != nullptr && status->is_number() && status->get<int64_t>() >= 400)
      return "status " + show_json(*status);
  }
  if (const Json* error = first_of(line, {"error"})) return show_json(*error);
  const Json* choices = first_of(*body_of(line), {"choices"});
  return choices != nullptr && choices->is_array() && choices->empty() ? "no choices" : "";
}

/// The answer of a line: `text`, `response`, `content`, or what a server of OpenAI's interface
/// returns, alone or as a line of a batch; null if there is none.
const Json* answer_of(const Json& line, const std::string& where) {
  if (const Json* completion = completion_of(line)) return completion;
  if (const Json* body = body_of(line); body != &line) return completion_of(*body);
  const Json* response = first_of(line, {"response"});
  const Json* text = first_of(line, {"text"});
  if (text != nullptr && response != nullptr && *text != *response)
    refuse(where, "an answer has two texts", "\"text\" and \"response\" differ",
           "keep the answer alone in each line");
  return response != nullptr ? response : text != nullptr ? text : first_of(line, {"content"});
}

/// Reads a line into its place.
/// @param lines  1-based line of each record's answer so far, or 0
void read_line(const std::string& text, const std::string& where, int64_t number,
               const RecordIndex& index, GivenAnswers& answers, std::vector<int64_t>& lines) {
  const Json line = parse_json(text, where);
  if (!line.is_object()) refuse(where, "a line is not a JSON object", show_json(line));
  const size_t record = record_of(line, index, where);
  if (lines[record] > 0)
    refuse(where, "two answers to the same record",
           fmt::format("the first is in line {}", lines[record]), "keep one of them");
  lines[record] = number;
  const Json* answer = answer_of(line, where);
  if (const std::string failure = answer == nullptr ? failure_of(line) : ""; !failure.empty()) {
    answers.failed[record] = fmt::format("{} ({})", where, failure);
    return;
  }
  if (answer != nullptr && answer->is_null()) {
    answers.cut.push_back(where + refusal_of(line));
    answers.texts[record] = "";
    return;
  }
  if (answer == nullptr) refuse(where, "an answer has no text", show_json(line));
  if (!answer->is_string())
    refuse(where, "the text of an answer is not a string", show_json(*answer));
  answers.texts[record] = answer->get<std::string>();
}

}  // namespace

int64_t GivenAnswers::num_answered() const {
  return std::ranges::count_if(texts, [](const auto& text) { return text.has_value(); });
}

GivenAnswers read_answers(const std::string& path, const Dataset& records) {
  const RecordIndex index(records, parent_of(path));
  GivenAnswers answers{.texts = std::vector<std::optional<std::string>>(records.samples().size())};
  std::vector<int64_t> lines(records.samples().size());
  ProblemList problems(path, kFix);
  int64_t number = 0;
  for (const std::string& line : split(read_file(path), '\n')) {
    throw_if_interrupted();
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      read_line(line, fmt::format("{}:{}", path, number), number, index, answers, lines);
    } catch (const UserError& error) {
      problems.add(error);
    }
  }
  problems.throw_if_any();
  return answers;
}

void require_all_answered(const GivenAnswers& answers, const Dataset& records,
                          const std::string& path) {
  Strings missing;
  for (size_t i = 0; i < answers.texts.size(); ++i) {
    if (!answers.texts[i] && !answers.failed.contains(i))
      missing.push_back(records.samples()[i].where);
  }
  if (missing.empty()) return;
  throw data_error(
      {.error = "records without an answer",
       .where = path,
       .what = fmt::format("{} of {}: {}", missing.size(),
                           counted(std::ssize(answers.texts), "record"), first_few(missing)),
       .fix = answers.num_answered() == 0
                  ? kFix
                  : "answer them too (an empty \"text\" counts as an answer that is not JSON), or "
                    "add --answered-only"});
}

}  // namespace rematch
