#include "assembly/run_directory.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "ranks/gather.h"
#include "resume/abandoned.h"
#include "resume/resume.h"

namespace rematch {

RunDirectory::RunDirectory(const ConfigResult& config, Terminal& terminal, Group& group)
    : settings_(config.settings), terminal_(terminal), group_(group) {
  if (group.rank() == 0) {
    const std::string& path = settings_.output.run_dir;
    make_directories(path);
    lock_ = std::make_unique<const RunLock>(path);
    checkpoint_ = choose_checkpoint();
    write_file_atomic(path + "/args.json", python_json(effective_json(config), 2) + "\n");
    write_file_atomic(path + "/effective_config.txt", effective_text(config));
  }
  const std::string chosen = from_first_rank(group, checkpoint_.value_or(""));
  if (!chosen.empty()) checkpoint_ = chosen;
}

std::optional<std::string> RunDirectory::choose_checkpoint() const {
  const std::string& path = settings_.output.run_dir;
  for (const std::string& name : remove_leftovers(path))
    terminal_.say(fmt::format("removed {}, left by a killed run", name));
  if (!settings_.checkpoints.resume_from_checkpoint) {
    if (std::filesystem::exists(path + "/logging.jsonl")) {
      terminal_.warn(
          fmt::format("{} holds an earlier run: its logging.jsonl is continued and checkpoints of "
                      "the same step are replaced; "
                      "training.resume_from_checkpoint: latest resumes it, training.run_name or "
                      "training.add_version: true separates runs",
                      path));
    }
    return std::nullopt;
  }
  const ResumeChoice choice = resolve_resume(*settings_.checkpoints.resume_from_checkpoint, path);
  for (const std::string& text : choice.warnings) terminal_.warn(text);
  terminal_.say(choice.checkpoint
                    ? fmt::format("resuming from {}", *choice.checkpoint)
                    : fmt::format("{} has no checkpoint to resume from: starting a new run", path));
  return choice.checkpoint;
}

std::optional<LoadedCheckpoint> RunDirectory::read_checkpoint(
    const Session& session, const Fingerprint& fingerprint) const {
  if (!checkpoint_) return std::nullopt;
  LoadedCheckpoint loaded = rematch::read_checkpoint(
      *checkpoint_, session.model->description().text.vocab_size, {group_.rank(), group_.size()});
  for (const std::string& text :
       compare_fingerprints(loaded.run.fingerprint, fingerprint, *checkpoint_))
    terminal_.warn(text);
  return loaded;
}

void RunDirectory::continue_from(int64_t step) const {
  if (group_.rank() != 0) return;
  const auto aside = move_later_checkpoints_aside(settings_.output.run_dir, step);
  if (!aside) return;
  terminal_.warn(
      fmt::format("moved the checkpoints after step {} to {}; remove it when you do not need them",
                  step, *aside));
}

}  // namespace rematch
