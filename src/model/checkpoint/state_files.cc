#include "model/checkpoint/state_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "model/checkpoint/safetensors.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRun = "state.bin";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kManifest = "manifest.json";
/// Version of the training state. Raise it when the bytes of RunState change, e.g. with a field.
constexpr int kVersion = 3;

/// Size and hash of a file.
struct FileMark {
  int64_t size_bytes = 0;
  std::string hash;  ///< XXH3-64, 16 hex digits
};

/// "state.bin", or with several shards "state-00001-of-00004.bin".
std::string shard_name(const std::string& name, const StateShard& shard) {
  if (shard.size == 1) return name;
  const size_t dot = name.find('.');
  return fmt::format("{}-{:05}-of-{:05}{}", name.substr(0, dot), shard.rank, shard.size,
                     name.substr(dot));
}

Strings shard_names(int num_shards) {
  Strings names;
  for (int rank = 0; rank < num_shards; ++rank) {
    for (const char* name : {kRun, kOptimizer})
      names.push_back(shard_name(name, {rank, num_shards}));
  }
  return names;
}

std::string in_state_dir(const std::string& name) {
  return std::string(kTrainingStateDir) + "/" + name;
}

std::string shard_path(const std::string& checkpoint_dir, const std::string& name,
                       const StateShard& shard) {
  return join_path(checkpoint_dir, in_state_dir(shard_name(name, shard)));
}

FileMark mark_file(const std::string& path) {
  const MappedFile file(path);
  const std::string_view bytes = file.bytes();
  return {.size_bytes = std::ssize(bytes), .hash = content_hash_of(bytes)};
}

/// The advice to start a run from the weights of a checkpoint alone.
std::string weights_fix(const std::string& checkpoint_dir) {
  const bool is_adapter = path_exists(join_path(checkpoint_dir, "adapter_config.json"));
  return is_adapter
             ? fmt::format(
                   "merge the adapter (`rematch merge {} --out DIR`) and start a new run with "
                   "`model.model: DIR` and without resume_from_checkpoint",
                   checkpoint_dir)
             : fmt::format(
                   "start a new run with `model.model: {}` and without resume_from_checkpoint",
                   checkpoint_dir);
}

std::string damage_fix(const std::string& checkpoint_dir) {
  return "resume from an older checkpoint (`training.resume_from_checkpoint: PATH`), or " +
         weights_fix(checkpoint_dir);
}

[[noreturn]] void refuse(const std::string& checkpoint_dir, const std::string& file,
                         std::string error, std::string what) {
  throw data_error({.error = std::move(error),
                    .where = join_path(checkpoint_dir, file),
                    .what = std::move(what),
                    .fix = damage_fix(checkpoint_dir)});
}

void require_state_dir(const std::string& checkpoint_dir) {
  if (is_dir(join_path(checkpoint_dir, kTrainingStateDir))) return;
  const bool is_checkpoint = path_exists(join_path(checkpoint_dir, "trainer_state.json"));
  const char* what = !is_dir(checkpoint_dir) ? "no such directory"
                     : is_checkpoint ? "it has trainer_state.json but no training_state/: written "
                                       "with `save_only_model: true` (or by another program)"
                                     : "it has neither training_state/ nor trainer_state.json";
  throw data_error({.error = "a checkpoint without training state cannot be resumed",
                    .where = checkpoint_dir,
                    .what = what,
                    .fix = weights_fix(checkpoint_dir) +
                           "; checkpoints that can be resumed need `training.save_only_model: "
                           "false`"});
}

// A model's card and its licence, which people edit and no program reads, and the scores that
// `rematch eval` measures again.
bool may_change(const std::string& name) {
  return name.starts_with("README") || name.starts_with("LICENSE") || name.starts_with("NOTICE") ||
         name == "rematch_scores.json";
}

/// Names, relative to the checkpoint, of the files that the manifest covers: all except those that
/// may change and the manifest itself.
Strings covered_files(const std::string& checkpoint_dir) {
  Strings names;
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint_dir)) {
    std::string name = entry.path().lexically_relative(checkpoint_dir).generic_string();
    if (entry.is_regular_file() && name != in_state_dir(kManifest) && !may_change(name))
      names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

void write_tensors(const std::string& path, const NamedTensors& tensors) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, tensor] : tensors) entries.push_back({name, tensor});
  write_safetensors(path, std::move(entries));
}

NamedTensors read_tensors(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  NamedTensors tensors;
  for (const std::string& name : file->names()) tensors.emplace_back(name, file->tensor(name));
  return tensors;
}

// A name that leads out of the checkpoint counts as damage.
bool is_inside(const std::string& name) {
  const fs::path path(name);
  return path.is_relative() && !name.empty() && !contains(path, "..");
}

struct Manifest {
  int num_shards = 1;
  std::vector<std::pair<std::string, FileMark>> marks;
};

Manifest read_manifest(const std::string& checkpoint_dir) {
  const std::string name = in_state_dir(kManifest);
  const std::string path = join_path(checkpoint_dir, name);
  if (!is_file(path)) {
    refuse(checkpoint_dir, name, "the training state of a checkpoint is incomplete",
           "its manifest is missing");
  }
  const JsonOrigin origin{.path = path,
                          .error = "the manifest of a training state is damaged",
                          .fix = damage_fix(checkpoint_dir)};
  const Json root = parse_document(read_file(path), origin);
  JsonFields fields(root, origin);
  const int64_t version = fields.integer("version");
  if (version != kVersion) {
    throw data_error(
        {.error = "another version of Rematch wrote the training state of a checkpoint",
         .where = path,
         .what = fmt::format("the state has version {}, this program reads version {}", version,
                             kVersion),
         .fix = "its weights still load: " + weights_fix(checkpoint_dir)});
  }
  Manifest manifest{.num_shards = fields.integer_or("parts", 1, 1, 99999), .marks = {}};
  const Json& files = fields.at("files");
  for (const auto& item : files.items()) {
    JsonFields mark(item.value(), origin, item.key());
    if (!is_inside(item.key()))
      throw_json_error(origin, item.key(), "it leads out of the checkpoint");
    manifest.marks.emplace_back(
        item.key(), FileMark{.size_bytes = mark.integer("size_bytes"), .hash = mark.text("xxh3")});
  }
  for (const std::string& required : shard_names(manifest.num_shards)) {
    const auto same = [&](const auto& mark) { return mark.first == in_state_dir(required); };
    if (std::ranges::none_of(manifest.marks, same))
      fields.fail("files", fmt::format("{} is not listed", required));
  }
  return manifest;
}

void verify_file(const std::string& checkpoint_dir, const std::string& name,
                 const FileMark& expected) {
  const std::string path = join_path(checkpoint_dir, name);
  std::error_code error;
  if (!is_file(path)) {
    refuse(checkpoint_dir, name, "a file of a checkpoint is missing",
           fmt::format("expected {} bytes, found no file", expected.size_bytes));
  }
  const auto size_bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (size_bytes != expected.size_bytes) {
    refuse(checkpoint_dir, name,
           size_bytes < expected.size_bytes ? "a file of a checkpoint is truncated"
                                            : "a file of a checkpoint was changed",
           fmt::format("expected {} bytes, found {}", expected.size_bytes, size_bytes));
  }
  const FileMark found = mark_file(path);
  if (found.hash != expected.hash) {
    refuse(checkpoint_dir, name,
           "a file of a checkpoint was changed or belongs to another checkpoint",
           fmt::format("expected hash {}, found {} ({} bytes)", expected.hash, found.hash,
                       size_bytes));
  }
}

}  // namespace

void write_state_shard(const std::string& checkpoint_dir, const StateFiles& files,
                       const StateShard& shard) {
  make_directories(join_path(checkpoint_dir, kTrainingStateDir));
  write_file(shard_path(checkpoint_dir, kRun, shard), files.run);
  write_tensors(shard_path(checkpoint_dir, kOptimizer, shard), files.optimizer);
}

void write_state_manifest(const std::string& checkpoint_dir, int num_shards) {
  Json manifest = {{"format", "rematch training state"}, {"version", kVersion}};
  if (num_shards > 1) manifest["parts"] = num_shards;
  manifest["files"] = Json::object();
  for (const std::string& name : covered_files(checkpoint_dir)) {
    const FileMark mark = mark_file(join_path(checkpoint_dir, name));
    manifest["files"][name] = {{"size_bytes", mark.size_bytes}, {"xxh3", mark.hash}};
  }
  write_file(join_path(checkpoint_dir, in_state_dir(kManifest)), python_json(manifest, 2) + "\n");
}

void verify_state_files(const std::string& checkpoint_dir) {
  require_state_dir(checkpoint_dir);
  const auto marks = read_manifest(checkpoint_dir).marks;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(join_path(checkpoint_dir, kTrainingStateDir), error)) {
    const std::string file = entry.path().filename().string();
    const std::string name = in_state_dir(file);
    const auto same = [&](const auto& mark) { return mark.first == name; };
    if (file == kManifest || file.front() == '.' || std::ranges::any_of(marks, same)) continue;
    refuse(checkpoint_dir, name, "a file in a training state does not belong there",
           fmt::format("the manifest lists {} files, but not this one", marks.size()));
  }
  for (const auto& [name, mark] : marks) verify_file(checkpoint_dir, name, mark);
}

std::vector<StateFiles> read_state_shards(const std::string& checkpoint_dir) {
  verify_state_files(checkpoint_dir);
  const int num_shards = read_manifest(checkpoint_dir).num_shards;
  std::vector<StateFiles> shards;
  for (int rank = 0; rank < num_shards; ++rank) {
    const StateShard shard{rank, num_shards};
    shards.push_back({.run = read_file(shard_path(checkpoint_dir, kRun, shard)),
                      .optimizer = read_tensors(shard_path(checkpoint_dir, kOptimizer, shard))});
  }
  return shards;
}

Strings run_state_paths(const std::string& checkpoint_dir) {
  const int num_shards = read_manifest(checkpoint_dir).num_shards;
  Strings paths;
  for (int rank = 0; rank < num_shards; ++rank)
    paths.push_back(shard_path(checkpoint_dir, kRun, {rank, num_shards}));
  return paths;
}

}  // namespace rematch
