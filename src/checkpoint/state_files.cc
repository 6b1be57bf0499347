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

/// What the manifest says about a file.
struct FileMark {
  int64_t size_bytes = 0;
  std::string hash;  ///< XXH3-64, 16 hex digits
};

/// "state.json", or with several parts "state-00001-of-00004.json".
std::string name_in(const std::string& name, const StatePart& part) {
  if (part.size == 1) return name;
  const size_t dot = name.find('.');
  return fmt::format("{}-{:05}-of-{:05}{}", name.substr(0, dot), part.rank, part.size,
                     name.substr(dot));
}

std::vector<std::string> names_of_parts(int num_parts) {
  std::vector<std::string> names;
  for (int rank = 0; rank < num_parts; ++rank) {
    for (const char* name : {kDocument, kOptimizer, kSegments})
      names.push_back(name_in(name, {rank, num_parts}));
  }
  return names;
}

std::string in_state_dir(const std::string& name) {
  return std::string(kTrainingStateDir) + "/" + name;
}

FileMark mark_of(const std::string& path) {
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
                          "PATH`), or start from the "
                          "weights alone: `model.model: {}` without resume_from_checkpoint",
                          checkpoint_dir)});
}

void require_state_dir(const std::string& checkpoint_dir) {
  std::error_code error;
  if (fs::is_directory(join_path(checkpoint_dir, kTrainingStateDir), error)) return;
  const bool is_checkpoint = fs::exists(join_path(checkpoint_dir, "trainer_state.json"), error);
  const char* what = !fs::is_directory(checkpoint_dir, error) ? "no such directory"
                     : is_checkpoint ? "it has trainer_state.json but no training_state/: written "
                                       "with `save_only_model: true` "
                                       "(or by another program)"
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

// A model's card and its licence: people edit them, and nothing reads them.
bool is_document(const std::string& name) {
  return name.starts_with("README") || name.starts_with("LICENSE") || name.starts_with("NOTICE");
}

/// Names, relative to the checkpoint, of the files that the manifest covers: all but documents and
/// the manifest itself.
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

void write_text(const std::string& path, const std::string& text) {
  FileWriter writer(path);
  writer.write(text);
  writer.finish();
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

/// What the manifest says.
struct Manifest {
  int num_parts = 1;
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
    manifest.num_parts = root["parts"].get<int>();
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
  for (const std::string& required : names_of_parts(manifest.num_parts)) {
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
  const FileMark found = mark_of(path);
  if (found.hash != expected.hash) {
    refuse(checkpoint_dir, name,
           "a file of a checkpoint was changed or belongs to another checkpoint",
           fmt::format("expected hash {}, found {} ({} bytes)", expected.hash, found.hash,
                       size_bytes));
  }
}

}  // namespace

std::string state_document_path(const std::string& checkpoint_dir, const StatePart& part) {
  return join_path(checkpoint_dir, in_state_dir(name_in(kDocument, part)));
}

void write_state_part(const std::string& checkpoint_dir, const StateFiles& files,
                      const StatePart& part) {
  const std::string directory = join_path(checkpoint_dir, kTrainingStateDir);
  make_directories(directory);
  write_text(join_path(directory, name_in(kDocument, part)), files.document);
  write_tensors(join_path(directory, name_in(kOptimizer, part)), files.optimizer);
  write_tensors(join_path(directory, name_in(kSegments, part)), files.segments);
}

void write_state_manifest(const std::string& checkpoint_dir, int num_parts) {
  Json manifest = {{"format", "rematch training state"}, {"version", kVersion}};
  if (num_parts > 1) manifest["parts"] = num_parts;
  manifest["files"] = Json::object();
  for (const std::string& name : covered_files(checkpoint_dir)) {
    const FileMark mark = mark_of(join_path(checkpoint_dir, name));
    manifest["files"][name] = {{"size_bytes", mark.size_bytes}, {"xxh3", mark.hash}};
  }
  write_text(join_path(checkpoint_dir, in_state_dir(kManifest)), python_json(manifest, 2) + "\n");
}

void write_state_files(const std::string& checkpoint_dir, const StateFiles& files) {
  write_state_part(checkpoint_dir, files, {});
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

std::vector<StateFiles> read_state_parts(const std::string& checkpoint_dir) {
  verify_state_files(checkpoint_dir);
  const std::string directory = join_path(checkpoint_dir, kTrainingStateDir);
  const int num_parts = read_manifest(checkpoint_dir).num_parts;
  std::vector<StateFiles> parts;
  for (int rank = 0; rank < num_parts; ++rank) {
    const StatePart part{rank, num_parts};
    parts.push_back({.document = read_file(join_path(directory, name_in(kDocument, part))),
                     .optimizer = read_tensors(join_path(directory, name_in(kOptimizer, part))),
                     .segments = read_tensors(join_path(directory, name_in(kSegments, part)))});
  }
  return parts;
}

std::string read_state_document(const std::string& checkpoint_dir) {
  return read_file(
      state_document_path(checkpoint_dir, {0, read_manifest(checkpoint_dir).num_parts}));
}

StateFiles read_state_files(const std::string& checkpoint_dir) {
  return std::move(read_state_parts(checkpoint_dir).front());
}

}  // namespace rematch
