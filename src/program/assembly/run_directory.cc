#include "program/assembly/run_directory.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "engine/ranks/gather.h"
#include "learn/resume/checkpoint_list.h"
#include "learn/resume/resume.h"
#include "learn/resume/run_links.h"
#include "model/model.h"

namespace rematch {
namespace {

bool lies_in(const std::string& checkpoint, const std::string& run_dir) {
  namespace fs = std::filesystem;
  std::error_code error;
  // Compare the path as given, which may be a link to another disk, and the resolved path.
  const fs::path named = fs::absolute(fs::path(checkpoint) / "").parent_path().parent_path();
  if (fs::equivalent(named, run_dir, error)) return true;
  const fs::path parent = fs::weakly_canonical(checkpoint, error).parent_path();
  return !error && fs::equivalent(parent, run_dir, error);
}

bool holds_run(const std::string& directory) {
  std::error_code absent;
  const auto log_bytes = std::filesystem::file_size(join_path(directory, "logging.jsonl"), absent);
  return (!absent && log_bytes > 0) || !list_saved_checkpoints(directory).empty();
}

}  // namespace

RunConfig load_run(const std::string& path, Strings& overrides, int num_ranks) {
  RunConfig run{.config = load_config(path, overrides, num_ranks), .note = ""};
  const Settings& settings = run.config.settings;
  const OutputSettings& output = settings.output;
  const std::optional<std::string>& resumed = settings.checkpoints.resume_from_checkpoint;
  const bool resumes_it = resumed && (*resumed == "latest" || lies_in(*resumed, output.run_dir));
  if (!holds_run(output.run_dir)) return run;
  const bool has_name = output.run_name && !output.run_name->empty();
  std::string name = has_name ? *output.run_name : output.output_dir, directory = output.run_dir;
  for (std::string* text : {&name, &directory}) {
    while (text->ends_with('/')) text->pop_back();
  }
  int number = 2;
  while (holds_run(fmt::format("{}-{}", directory, number))) ++number;
  const std::string key = has_name ? "run_name" : "output_dir";
  if (resumes_it) {
    if (number > 2 && *resumed == "latest")
      run.note = fmt::format("{0}-{2} is a later run; --set training.{3}={1}-{2} continues it",
                             directory, name, number - 1, key);
    return run;
  }
  RunLock::require_free(output.run_dir);
  overrides.push_back(fmt::format("training.{}={}-{}", key, name, number));
  return {.config = load_config(path, overrides, num_ranks),
          .note = fmt::format("{0} holds a run, which stays as it is (--resume continues it); this "
                              "is a new one: {0}-{1}",
                              directory, number)};
}

void refuse_to_replace_inputs(const ConfigResult& config) {
  const std::string& path = config.settings.output.run_dir;
  const InputFiles inputs = run_inputs(config);
  for (const char* name : {"args.json", "effective_config.txt", "logging.jsonl"})
    inputs.refuse(join_path(path, name));
  const std::string& model = config.settings.model.directory;
  for (const CheckpointName& checkpoint : list_checkpoints(path)) {
    std::error_code error;
    if (!std::filesystem::equivalent(checkpoint.path, model, error)) continue;
    throw config_error({.error = "the run would replace the model that it starts from",
                        .where = "model.model: " + model,
                        .what = fmt::format("it is a checkpoint of the run directory {}", path),
                        .fix = "set another training.run_name; to continue that run, set "
                               "training.resume_from_checkpoint and leave model.model as it was"});
  }
}

RunDirectory::RunDirectory(const Job& job)
    : settings_(job.settings()), terminal_(job.terminal), group_(job.group) {
  if (job.is_first()) {
    const ConfigResult& config = job.source.config;
    const std::string& path = settings_.output.run_dir;
    make_directories(path);
    lock_ = std::make_unique<const RunLock>(path);
    checkpoint_ = choose_checkpoint();
    write_file_atomic(path + "/args.json", python_json(effective_json(config), 2) + "\n");
    write_file_atomic(
        path + "/effective_config.txt",
        effective_text(config) + kStartedIn + std::filesystem::current_path().string() + "\n");
  }
  const std::string chosen = from_first_rank(group_, checkpoint_.value_or(""));
  if (!chosen.empty()) checkpoint_ = chosen;
  continues_its_run_ = checkpoint_ && lies_in(*checkpoint_, settings_.output.run_dir);
}

std::optional<std::string> RunDirectory::choose_checkpoint() const {
  const std::string& path = settings_.output.run_dir;
  for (const std::string& name : remove_leftovers(path))
    terminal_.say(fmt::format("removed {}, left by a killed run", name));
  if (!settings_.checkpoints.resume_from_checkpoint) return std::nullopt;
  const ResumeChoice choice = resolve_resume(*settings_.checkpoints.resume_from_checkpoint, path);
  terminal_.warn_all(choice.warnings);
  terminal_.say(choice.checkpoint
                    ? fmt::format("resuming from {}", *choice.checkpoint)
                    : fmt::format("{} has no checkpoint to resume from: starting a new run", path));
  return choice.checkpoint;
}

std::optional<LoadedCheckpoint> RunDirectory::read_checkpoint(
    const Model& model, const Fingerprint& fingerprint) const {
  if (!checkpoint_) return std::nullopt;
  LoadedCheckpoint loaded = rematch::read_checkpoint(
      *checkpoint_, model.description().text.vocab_size, {group_.rank(), group_.size()});
  terminal_.warn_all(compare_fingerprints(loaded.run.fingerprint, fingerprint, *checkpoint_));
  return loaded;
}

void RunDirectory::continue_from(const RunProgress& progress) const {
  if (group_.rank() != 0) return;
  const std::string& path = settings_.output.run_dir;
  if (const auto aside = move_later_checkpoints_aside(path, progress.global_step))
    terminal_.warn(fmt::format(
        "moved the checkpoints after step {} to {}; remove it when you do not need them",
        progress.global_step, *aside));
  // Always: a copied directory, or a checkpoint removed by hand, leaves links that lead nowhere.
  terminal_.warn_all(update_run_links(path, progress, progress.global_step));
}

}  // namespace rematch
