#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "program/config/config.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch::test {

/// The least a configuration needs.
inline const std::string kMinimal =
    "model:\n  model: /models/tiny\ncustom:\n  train_jsonl: train.jsonl\n";
/// The same through --set, for tests that write their own sections.
inline const std::vector<std::string> kRequired = {"model.model=/models/tiny",
                                                   "custom.train_jsonl=train.jsonl"};

inline std::vector<std::string> with_required(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = kRequired;
  all.insert(all.end(), overrides.begin(), overrides.end());
  return all;
}

/// The override that makes a run one of stage 2.
inline const std::string kStage2 = "custom.trainer_variant=rollout_matching_sft";

/// The only warning.
inline Warning warning_of(const ConfigResult& result) {
  EXPECT_EQ(result.warnings.size(), 1u);
  return result.warnings.empty() ? Warning{} : result.warnings.front();
}

/// Loads `yaml` as a separate file; the required keys are added.
inline ConfigResult load_text(const std::string& yaml,
                              const std::vector<std::string>& overrides = {}, int world_size = 1) {
  TempDir dir;
  return load_config(dir.write("c.yaml", yaml), with_required(overrides), world_size);
}

/// Loads nothing but overrides.
inline ConfigResult load_set(const std::vector<std::string>& overrides, int world_size = 1) {
  return load_text("", overrides, world_size);
}

/// The problems that `yaml` and `overrides` have; fails the test when there are none. Paths are cut
/// to the file's name.
inline std::vector<Problem> problems_of(const std::string& yaml,
                                        const std::vector<std::string>& overrides = {}) {
  const TempDir dir;
  const std::string path = dir.write("c.yaml", yaml);
  UserError error = catch_user_error([&] { load_config(path, with_required(overrides)); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  std::vector<Problem> problems = error.problems();
  for (Problem& problem : problems) {
    EXPECT_FALSE(problem.error.empty());
    EXPECT_FALSE(problem.where.empty()) << problem.error;
    EXPECT_FALSE(problem.what.empty()) << problem.error;
    EXPECT_FALSE(problem.fix.empty()) << problem.error;
    EXPECT_EQ(problem.error.find('\n'), std::string::npos) << problem.error;
    for (std::string* text : {&problem.where, &problem.what}) {
      const std::string prefix = dir.path() + "/";
      for (size_t at = text->find(prefix); at != std::string::npos; at = text->find(prefix))
        text->erase(at, prefix.size());
    }
  }
  return problems;
}

/// The only problem of `overrides`; fails the test when there are more.
inline Problem problem_of_set(const std::vector<std::string>& overrides) {
  const std::vector<Problem> problems = problems_of("", overrides);
  for (size_t i = 1; i < problems.size(); ++i)
    ADD_FAILURE() << "unexpected: " << format_problem(problems[i]);
  return problems.front();
}

/// The row of the effective configuration.
inline EffectiveValue effective(const ConfigResult& result, const std::string& key) {
  for (const EffectiveValue& row : result.effective) {
    if (row.key == key) return row;
  }
  ADD_FAILURE() << "no such key: " << key;
  return {};
}

/// A dotted key of stage 2 with a value, for --set.
inline std::string stage2(const std::string& key_and_value) {
  return "custom.extra.rollout_matching." + key_and_value;
}

/// Writes `key: value` through --set and tells what became of it.
enum class Fate { kSilent, kWarned, kRefused };
inline Fate fate(const std::string& assignment) {
  try {
    return load_set({assignment}).warnings.empty() ? Fate::kSilent : Fate::kWarned;
  } catch (const UserError&) {
    return Fate::kRefused;
  }
}

}  // namespace rematch::test
