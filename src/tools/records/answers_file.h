#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "learn/data/dataset.h"

namespace rematch {

/// The answers that a program gave to the records of a data set.
struct GivenAnswers {
  std::vector<std::optional<std::string>> texts;  ///< by index into Dataset::samples()
  std::map<size_t, std::string> failed = {};      ///< by the same index: "…:4 (status 429)"
  /// places of answers whose content is null, with a refusal; their text is ""
  Strings cut = {};

  int64_t num_answered() const;
};

/// Reads JSON lines, one answer each: its text (`text`, `response` or `content`, or OpenAI's
/// `choices`, alone or in a batch's `response`) and the record it answers. `image` (or `images`
/// with one path) is the path as the record has it, or as the current directory or the answers'
/// directory leads to it, else the only record with this file name. `id` (or `sample_id`) is the
/// 0-based line of the record, as `rematch rollout` writes it; with an image it only decides
/// between records of this image. A batch's `custom_id` is either. Other members are ignored. The
/// line of a request that failed (a status from 400 on, an `error`, no choices) and that of an
/// unreadable image of `rematch predict` are no answers. A message whose content is null, as a
/// server with a reasoning parser writes it for a model that was cut while thinking, or that of a
/// refusal, is an empty answer.
/// @throws UserError (data) with all faulty lines: no JSON, no record, two answers to a record, an
/// image that several records ask about; (environment) if the file cannot be read
GivenAnswers read_answers(const std::string& path, const Dataset& records);

/// @throws UserError (data) with the number of records that no line is about and the first of them
void require_all_answered(const GivenAnswers& answers, const Dataset& records,
                          const std::string& path);

}  // namespace rematch
