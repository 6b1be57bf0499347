// Power is lost at any moment of a run that saves. What a disk may then hold follows from the
// journal of the run's file operations: bytes and names that were synced are there, the others may
// be missing, and unsynced bytes may be zeros. From each such disk the next start finds every
// checkpoint that was reported as saved, a log without a gap, and continues to the same bits.
// REMATCH_POWER_POINTS sets how many disks a whole run continues from, REMATCH_POWER_DRAWS how
// often each cut is drawn (scripts/check faults).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/observe/sinks.h"
#include "base/random.h"
#include "e2e/file_journal.h"
#include "e2e/program.h"
#include "learn/resume/resume.h"
#include "learn/resume/run_lock.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using test::LostBytes;
using test::LostNames;

constexpr int kSteps = 4;

struct Loss {
  const char* name;
  LostNames names;
  LostBytes bytes;
};

constexpr Loss kLosses[] = {
    {"names kept, bytes lost", LostNames::kNone, LostBytes::kAll},
    {"names kept, bytes zero", LostNames::kNone, LostBytes::kZeros},
    {"names kept, bytes torn", LostNames::kNone, LostBytes::kTorn},
    {"names lost, bytes torn", LostNames::kAllUnsynced, LostBytes::kTorn},
    {"names by directory, bytes lost", LostNames::kByDirectory, LostBytes::kAll},
    {"names by directory, bytes zero", LostNames::kByDirectory, LostBytes::kZeros},
    {"names by directory, bytes torn", LostNames::kByDirectory, LostBytes::kTorn}};

int64_t asked(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

std::string config_of(const test::Program& program) {
  return program.config(
      fmt::format("training: {{max_steps: {}, save_strategy: steps, save_steps: 1, "
                  "save_total_limit: 2, eval_strategy: steps, eval_steps: 2, "
                  "resume_from_checkpoint: latest, report_to: tensorboard}}\n"
                  "data: {{on_bad_sample: skip}}\n"
                  "custom: {{extra: {{rollout_matching: {{max_new_tokens: 4}}}}}}\n",
                  kSteps));
}

/// A loss of power and what must be found after it.
struct Cut {
  size_t count = 0;  ///< operations before the loss
  const Loss* loss = nullptr;
  int64_t last_saved = 0;  ///< the newest checkpoint that was reported as saved
  uint64_t key = 0;        ///< of what is left to chance
  std::string text() const { return fmt::format("after operation {}: {}", count, loss->name); }
};

/// A run of four steps, then one from its second checkpoint, and the journal of both.
class PowerLoss : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    test::TempDir aside;
    test::Program program;
    for (const char* more : {"", " --set training.resume_from_checkpoint=out/run/checkpoint-2"}) {
      const std::string dir = program.dir().path();
      const test::ProcessResult result = test::run_command(fmt::format(
          "cd {0} && LD_PRELOAD={1} JOURNAL_UNDER={0} JOURNAL_FILE={2} {3} train {4}{5}", dir,
          test::binary_path("tests/librematch_journal_shim.so"), aside.file("journal"),
          test::binary_path("bin/rematch"), config_of(program), more));
      ASSERT_EQ(result.exit_code, 0) << result.err;
    }
    journal_ = new test::FileJournal(read_file(aside.file("journal")), program.dir().path());
    weights_ = weights_of(program);
    log_ = program.log_without_times();
    // The journal is whole: without a loss it gives the files that are there.
    const test::Tree all = journal_->after(journal_->operations().size(), LostNames::kNone,
                                           LostBytes::kNone, [] { return 0.0; });
    for (const auto& entry : fs::recursive_directory_iterator(program.run_dir())) {
      if (!entry.is_regular_file()) continue;
      const auto found = all.find(fs::relative(entry.path(), program.dir().path()).string());
      ASSERT_TRUE(found != all.end() && found->second == read_file(entry.path().string()))
          << entry.path();
    }
  }
  static void TearDownTestSuite() { delete journal_; }

  static std::string weights_of(const test::Program& program) {
    return read_file(fmt::format("{}/checkpoint-{}/model.safetensors", program.run_dir(), kSteps));
  }

  /// The newest checkpoint that was reported as saved after each number of operations: its name was
  /// synced, and it was not abandoned since.
  static std::vector<int64_t> saved_steps() {
    const auto step_in = [](const std::string& path) {
      const std::string name = fs::path(path).filename().string();
      const bool is_aside = path.find("abandoned-") != std::string::npos;
      return name.starts_with("checkpoint-") && !is_aside
                 ? std::stoll(name.substr(name.find('-') + 1))
                 : int64_t{0};
    };
    std::vector<int64_t> steps = {0};
    std::set<int64_t> there = {0};
    for (const test::FileOperation& operation : journal_->operations()) {
      if (operation.name == "rename") {
        if (const int64_t step = step_in(operation.path); step > 0) there.erase(step);
        there.insert(step_in(operation.second));
      }
      const bool is_synced = operation.name == "sync" && operation.path.ends_with("/out/run");
      steps.push_back(is_synced ? *there.rbegin() : std::min(steps.back(), *there.rbegin()));
    }
    return steps;
  }

  /// Losses after every operation: of one kind in turn, or of all of them REMATCH_POWER_DRAWS
  /// times.
  static std::vector<Cut> cuts() {
    const std::vector<int64_t> saved = saved_steps();
    const auto num_draws = static_cast<size_t>(asked("REMATCH_POWER_DRAWS", 0));
    const size_t num_kinds = std::size(kLosses),
                 num_tried = num_draws > 0 ? num_draws * num_kinds : 1;
    std::vector<Cut> cuts;
    for (size_t count = 0; count < saved.size(); ++count) {
      for (size_t i = 0; i < num_tried; ++i) {
        cuts.push_back({.count = count,
                        .loss = &kLosses[(count + i) % num_kinds],
                        .last_saved = saved[count],
                        .key = cuts.size()});
      }
    }
    return cuts;
  }

  static test::Tree disk_after(const Cut& cut) {
    uint64_t draw = 0;
    return journal_->after(cut.count, cut.loss->names, cut.loss->bytes,
                           [&] { return random_uniform(random_key({2026, cut.key}), draw++); });
  }

  /// The first lines of the log, up to a step.
  static std::string log_until(int64_t step) {
    std::istringstream lines(log_);
    std::string text, line;
    while (std::getline(lines, line) && parse_json(line, "log")["step"].get<int64_t>() <= step)
      text += line + "\n";
    return text;
  }

  static test::FileJournal* journal_;
  static std::string weights_;
  static std::string log_;
};

test::FileJournal* PowerLoss::journal_ = nullptr;
std::string PowerLoss::weights_;
std::string PowerLoss::log_;

}  // namespace

TEST_F(PowerLoss, SavedCheckpointsAreFoundWithTheirLog) {
  int num_failed = 0;
  std::set<size_t> seen;
  for (const Cut& cut : cuts()) {
    const test::Tree disk = disk_after(cut);
    size_t hash = static_cast<size_t>(cut.last_saved);
    for (const auto& [path, content] : disk)
      hash = hash * 31 + std::hash<std::string>()(path) * 7 + std::hash<std::string>()(content);
    if (!seen.insert(hash).second) continue;
    test::Program program;
    test::write_tree(disk, program.dir().path());
    std::string problem;
    try {
      make_directories(program.run_dir());
      const RunLock lock(program.run_dir());
      remove_leftovers(program.run_dir());
      const ResumeChoice choice = latest_complete(program.run_dir());
      const int64_t step =
          choice.checkpoint
              ? std::stoll(choice.checkpoint->substr(choice.checkpoint->rfind('-') + 1))
              : 0;
      if (step < cut.last_saved)
        problem = fmt::format("checkpoint-{} is lost, found {}", cut.last_saved, step);
      truncate_jsonl_after(program.run_dir() + "/logging.jsonl", choice.checkpoint ? step : -1);
      const bool has_log = fs::exists(program.run_dir() + "/logging.jsonl");
      const std::string log = has_log ? program.log_without_times() : "",
                        expected = choice.checkpoint ? log_until(step) : "";
      if (log != expected) problem += fmt::format(" after step {} the log is\n{}", step, log);
    } catch (const UserError& error) {
      problem = error.what();
    }
    EXPECT_EQ(problem, "") << cut.text();
    if (!problem.empty() && ++num_failed == 5) break;
  }
  fmt::print("{} different disks after losses of power within {} file operations\n", seen.size(),
             journal_->operations().size());
}

TEST_F(PowerLoss, TheNextStartContinuesToTheSameBits) {
  const std::vector<Cut> all = cuts();
  const size_t num_points =
      std::min(all.size(), static_cast<size_t>(asked("REMATCH_POWER_POINTS", 5)));
  for (size_t i = 0; i < num_points; ++i) {
    const Cut& cut = all[(2 * i + 1) * all.size() / (2 * num_points)];
    test::Program program;
    test::write_tree(disk_after(cut), program.dir().path());
    const test::ProcessResult result = program.run("train " + config_of(program));
    ASSERT_EQ(result.exit_code, 0) << cut.text() << "\n" << result.err;
    EXPECT_TRUE(weights_of(program) == weights_) << cut.text();
    EXPECT_EQ(program.log_without_times(), log_) << cut.text();
  }
  fmt::print("{} runs went on after a loss of power\n", num_points);
}

}  // namespace rematch
