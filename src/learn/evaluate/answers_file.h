#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "learn/data/dataset.h"

namespace rematch {

/// The answers that a program gave to the records of a data set.
struct GivenAnswers {
  std::vector<std::optional<std::string>> texts;  ///< by index into Dataset::samples()

  int64_t num_answered() const;
};

/// Reads JSON lines, one answer each: its text (`text`, `response` or `content`, or OpenAI's
/// `choices`, alone or in a batch's `response`) and the record it answers. `image` (or `images`
/// with one path) is the path as the record has it, or as the current directory or the answers'
/// directory leads to it, else the only record with this file name. `id` (or `sample_id`) is the
/// 0-based line of the record, as `rematch rollout` writes it; with an image it only decides
/// between records of this image. A batch's `custom_id` is either. Other members are ignored. A
/// line without a text, as `rematch predict` writes it for an unreadable image, is no answer.
/// @throws UserError (data) with all faulty lines: no JSON, no record, two answers to a record, an
/// image that several records ask about; (environment) if the file cannot be read
GivenAnswers read_answers(const std::string& path, const Dataset& records);

/// @throws UserError (data) with the number of records without an answer and the first of them
void require_all_answered(const GivenAnswers& answers, const Dataset& records,
                          const std::string& path);

}  // namespace rematch
