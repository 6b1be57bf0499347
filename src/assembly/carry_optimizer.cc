#include "assembly/carry_optimizer.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/error.h"
#include "checkpoint/state_files.h"
#include "resume/run_state.h"

namespace rematch {

void check_carried_optimizer(const std::string& checkpoint_dir) {
  std::error_code error;
  if (!std::filesystem::is_directory(checkpoint_dir + "/" + kTrainingStateDir, error)) {
    const bool is_there = std::filesystem::is_directory(checkpoint_dir, error);
    throw UserError(ErrorKind::kConfig,
                    {.error = "the optimizer state to start from is missing",
                     .where = "training.resume_optimizer_from",
                     .what = fmt::format(
                         "{}: {}", checkpoint_dir,
                         is_there ? "a directory without training_state/" : "no such directory"),
                     .fix = "set it to a checkpoint-N directory written with "
                            "`training.save_only_model: false`, or remove the key"});
  }
  verify_state_files(checkpoint_dir);
}

void carry_optimizer(const std::string& checkpoint_dir, int64_t vocab_size, AdamW& optimizer,
                     Terminal& terminal) {
  const LoadedCheckpoint loaded = read_checkpoint(checkpoint_dir, vocab_size);
  optimizer.carry_averages(loaded.optimizer, loaded.run.num_steps);
  terminal.say(fmt::format("AdamW starts with the averages of {} (step {})", checkpoint_dir,
                           loaded.run.num_steps));
}

}  // namespace rematch
