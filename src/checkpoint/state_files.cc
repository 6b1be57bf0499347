#include "checkpoint/state_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/safetensors.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDocument = "state.json";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kSegments = "segments.safetensors";
constexpr const char* kManifest = "manifest.json";
constexpr int kVersion = 1;

/// Size and hash of a file.
struct FileMark {
  int64_t size_bytes = 0;
  std::string hash;  ///< XXH3-64, 16 hex digits
};

/// "state.json", or with several shards "state-00001-of-00004.json".
std::string shard_name(const std::string& name, const StateShard& shard) {
  if (shard.size == 1) return name;
  const size_t dot = name.find('.');
  return fmt::format("{}-{:05}-of-{:05}{}", name.substr(0, dot), shard.rank, shard.size,
                     name.substr(dot));
}

std::vector<std::string> shard_names(int num_shards) {
  std::vector<std::string> names;
  for (int rank = 0; rank < num_shards; ++rank) {
    for (const char* name : {kDocument, kOptimizer, kSegments})
      names.push_back(shard_name(name, {rank, num_shards}));
  }
  return names;
}

std::string in_state_dir(const std::string& name) {
  return std::string(kTrainingStateDir) + "/" + name;
}

FileMark mark_file(const std::string& path) {
  const MappedFile file(path);
  const std::string_view bytes = file.bytes();
  return {.size_bytes = static_cast<int64_t>(bytes.size()), .hash = content_hash_of(bytes)};
}

[[noreturn]] void refuse(const std::string& checkpoint_dir, const std::string& file,
                         std::string error, std::string what) {
  throw UserError(
      ErrorKind::kData,
      {.error = std::move(error),
       .where = join_path(checkpoint_dir, file),
       .what = std::move(what),
       .fix = fmt::format("resume from an older checkpoint (`training.resume_from_checkpoint: "
                          "PATH`), or start from the weights alone: `model.model: {}` without "
                          "resume_from_checkpoint",
                          checkpoint_dir)});
}

void require_state_dir(const std::string& checkpoint_dir) {
  std::error_code error;
  if (fs::is_directory(join_path(checkpoint_dir, kTrainingStateDir), error)) return;
  const bool is_checkpoint = fs::exists(join_path(checkpoint_dir, "trainer_state.json"), error);
  const char* what = !fs::is_directory(checkpoint_dir, error) ? "no such directory"
                     : is_checkpoint ? "it has trainer_state.json but no training_state/: written "
                                       "with `save_only_model: true` (or by another program)"
                                     : "it has neither training_state/ nor trainer_state.json";
  const bool is_adapter = fs::exists(join_path(checkpoint_dir, "adapter_config.json"), error);
  const std::string start =
      is_adapter
          ? fmt::format(
                "merge the adapter (`rematch merge {} --out DIR`) and start a new run with "
                "`model.model: DIR`",
                checkpoint_dir)
          : fmt::format("start a new run from its weights: `model.model: {}`", checkpoint_dir);
  throw UserError(
      ErrorKind::kData,
      {.error = "a checkpoint without training state cannot be resumed",
       .where = checkpoint_dir,
       .what = what,
       .fix = start + ", without resume_from_checkpoint; checkpoints that can be resumed need "
                      "`training.save_only_model: false`"});
}

// A model's card and its licence: people edit them, and no program reads them.
bool is_document(const std::string& name) {
  return name.starts_with("README") || name.starts_with("LICENSE") || name.starts_with("NOTICE");
}

/// Names, relative to the checkpoint, of the files that the manifest covers: all except documents
/// and the manifest itself.
std::vector<std::string> covered_files(const std::string& checkpoint_dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint_dir)) {
    std::string name = entry.path().lexically_relative(checkpoint_dir).generic_string();
    if (entry.is_regular_file() && name != in_state_dir(kManifest) && !is_document(name))
      names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
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

bool is_mark(const Json& value) {
  return value.is_object() && value.contains("size_bytes") &&
         value["size_bytes"].is_number_integer() && value.contains("xxh3") &&
         value["xxh3"].is_string();
}

// A name that leads out of the checkpoint counts as damage.
bool is_inside(const std::string& name) {
  const fs::path path(name);
  return path.is_relative() && !name.empty() &&
         std::find(path.begin(), path.end(), "..") == path.end();
}

struct Manifest {
  int num_shards = 1;
  std::vector<std::pair<std::string, FileMark>> marks;
};

Manifest read_manifest(const std::string& checkpoint_dir) {
  const std::string name = in_state_dir(kManifest);
  const std::string path = join_path(checkpoint_dir, name);
  std::error_code missing;
  if (!fs::is_regular_file(path, missing)) {
    refuse(checkpoint_dir, name, "the training state of a checkpoint is incomplete",
           "its manifest is missing");
  }
  Json root;
  try {
    root = read_json_file(path);
  } catch (const UserError& error) {
    if (error.kind() != ErrorKind::kData) throw;
    refuse(checkpoint_dir, name, "the manifest of a training state is damaged",
           error.problems()[0].where + ": " + error.problems()[0].what);
  }
  const bool is_ours = root.is_object() && root.contains("version") && root["version"] == kVersion;
  if (!is_ours || !root.contains("files") || !root["files"].is_object()) {
    refuse(checkpoint_dir, name, "the manifest of a training state has an unknown format",
           fmt::format("expected version {} with files", kVersion));
  }
  Manifest manifest;
  if (root.contains("parts")) {
    const bool is_count =
        root["parts"].is_number_integer() && root["parts"] >= 2 && root["parts"] <= 99999;
    if (!is_count)
      refuse(checkpoint_dir, name, "the manifest of a training state is damaged",
             "its number of parts");
    manifest.num_shards = root["parts"].get<int>();
  }
  auto& marks = manifest.marks;
  for (const auto& item : root["files"].items()) {
    if (!is_inside(item.key()) || !is_mark(item.value())) {
      refuse(checkpoint_dir, name, "the manifest of a training state is damaged",
             fmt::format("the entry of {}", python_json_string(item.key())));
    }
    const FileMark mark{.size_bytes = item.value()["size_bytes"].get<int64_t>(),
                        .hash = item.value()["xxh3"].get<std::string>()};
    marks.emplace_back(item.key(), mark);
  }
  for (const std::string& required : shard_names(manifest.num_shards)) {
    const auto same = [&](const auto& mark) { return mark.first == in_state_dir(required); };
    if (std::none_of(marks.begin(), marks.end(), same)) {
      refuse(checkpoint_dir, name, "the manifest of a training state is damaged",
             fmt::format("it does not list {}", required));
    }
  }
  return manifest;
}

void verify_file(const std::string& checkpoint_dir, const std::string& name,
                 const FileMark& expected) {
  const std::string path = join_path(checkpoint_dir, name);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
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

std::string state_document_path(const std::string& checkpoint_dir, const StateShard& shard) {
  return join_path(checkpoint_dir, in_state_dir(shard_name(kDocument, shard)));
}

void write_state_shard(const std::string& checkpoint_dir, const StateFiles& files,
                       const StateShard& shard) {
  const std::string directory = join_path(checkpoint_dir, kTrainingStateDir);
  make_directories(directory);
  write_file(join_path(directory, shard_name(kDocument, shard)), files.document);
  write_tensors(join_path(directory, shard_name(kOptimizer, shard)), files.optimizer);
  write_tensors(join_path(directory, shard_name(kSegments, shard)), files.segments);
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

void write_state_files(const std::string& checkpoint_dir, const StateFiles& files) {
  write_state_shard(checkpoint_dir, files, {});
  write_state_manifest(checkpoint_dir, 1);
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
    if (file == kManifest || file.front() == '.' || std::any_of(marks.begin(), marks.end(), same))
      continue;
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
    const auto path = [&](const char* name) {
      return join_path(checkpoint_dir, in_state_dir(shard_name(name, {rank, num_shards})));
    };
    shards.push_back({.document = read_file(path(kDocument)),
                      .optimizer = read_tensors(path(kOptimizer)),
                      .segments = read_tensors(path(kSegments))});
  }
  return shards;
}

std::string read_state_document(const std::string& checkpoint_dir) {
  return read_file(
      state_document_path(checkpoint_dir, {0, read_manifest(checkpoint_dir).num_shards}));
}

StateFiles read_state_files(const std::string& checkpoint_dir) {
  return std::move(read_state_shards(checkpoint_dir).front());
}

}  // namespace rematch
