#include "train/checkpoints.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPrefix = "checkpoint-";

}  // namespace

Checkpoints::Checkpoints(Options options, Writer write_model, Writer write_state)
    : options_(std::move(options)), write_model_(std::move(write_model)), write_state_(std::move(write_state)) {}

std::string Checkpoints::path_of(int64_t step) const { return fmt::format("{}/{}{}", options_.run_dir, kPrefix, step); }

std::string Checkpoints::save(TrainerState& state) {
  const std::string path = path_of(state.global_step);
  TrainerState saved = state;
  if (saved.best_global_step == saved.global_step) saved.best_model_checkpoint = path;
  StagedDirectory staged(path);
  write_model_(staged.path());
  if (write_state_) write_state_(staged.path());
  write_file_atomic(staged.path() + "/trainer_state.json", saved.to_json());
  staged.commit();
  state = std::move(saved);
  rotate(state);
  return path;
}

std::vector<int64_t> Checkpoints::existing_steps() const {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.run_dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(kPrefix, 0) != 0) continue;
    const std::string digits = name.substr(std::string(kPrefix).size());
    const bool is_number = !digits.empty() && digits.size() < 18 && digits.find_first_not_of("0123456789") == std::string::npos;
    // trainer_state.json is written last before the rename, so its presence marks a complete checkpoint of ours.
    if (is_number && fs::exists(entry.path() / "trainer_state.json", error)) steps.push_back(std::stoll(digits));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void Checkpoints::rotate(const TrainerState& state) const {
  if (options_.save_total_limit <= 0) return;
  std::vector<int64_t> steps = existing_steps();
  int64_t excess = static_cast<int64_t>(steps.size()) - options_.save_total_limit;
  for (const int64_t step : steps) {
    if (excess <= 0) break;
    const bool is_newest = step == state.global_step;
    const bool is_best = state.best_model_checkpoint && *state.best_model_checkpoint == path_of(step);
    if (is_newest || is_best) continue;
    std::error_code error;
    fs::remove_all(path_of(step), error);
    --excess;
  }
}

}  // namespace rematch
