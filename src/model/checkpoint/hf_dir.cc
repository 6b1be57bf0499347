#include "model/checkpoint/hf_dir.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/checkpoint/shard_index.h"

namespace rematch {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

[[noreturn]] void bad_index(const std::string& where, std::string error, std::string what) {
  throw data_error({.error = std::move(error),
                    .where = where,
                    .what = std::move(what),
                    .fix = "copy or download the checkpoint again"});
}

void write_index(const std::string& directory, const std::map<std::string, std::string>& weight_map,
                 int64_t total_parameters, int64_t total_bytes) {
  Json root;
  root["metadata"]["total_parameters"] = total_parameters;
  root["metadata"]["total_size"] = total_bytes;
  root["weight_map"] = Json::object();
  for (const auto& [tensor, file] : weight_map) root["weight_map"][tensor] = file;
  write_file(join_path(directory, kIndexFile), python_json(root, 2) + "\n");
}

}  // namespace

void HfDir::add(const std::string& stored_name, const std::string& file_name,
                std::shared_ptr<SafetensorsFile> file) {
  std::string name = stored_name;
  for (const auto& [stored, own] : prefixes_) {
    if (!stored_name.starts_with(stored)) continue;
    name = own + stored_name.substr(stored.size());
    break;
  }
  const auto [found, is_new] =
      locations_.try_emplace(name, Location{file_name, std::move(file), stored_name});
  if (!is_new)
    bad_index(path_, fmt::format("a checkpoint has two tensors {}", name),
              found->second.stored_name + " and " + stored_name);
}

void HfDir::open_single() {
  const auto file = SafetensorsFile::open(join_path(path_, kSingleFile));
  for (const std::string& name : file->names()) add(name, kSingleFile, file);
}

void HfDir::open_shards(const std::string& index_path) {
  std::map<std::string, std::shared_ptr<SafetensorsFile>> shards;
  for (const auto& [tensor, file_name] : parse_shard_index(read_file(index_path), index_path)) {
    std::shared_ptr<SafetensorsFile>& shard = shards[file_name];
    if (!shard) {
      const std::string shard_path = join_path(path_, file_name);
      if (!path_exists(shard_path)) {
        bad_index(index_path, fmt::format("shard {} is missing", file_name),
                  fmt::format("tensor {} should be in it", tensor));
      }
      shard = SafetensorsFile::open(shard_path);
    }
    if (!shard->has(tensor)) {
      bad_index(index_path, fmt::format("tensor {} is not in its shard", tensor),
                fmt::format("weight_map says {}", file_name));
    }
    add(tensor, file_name, shard);
  }
}

const HfDir::Location& HfDir::location(const std::string& name) const {
  const auto found = locations_.find(name);
  if (found != locations_.end()) return found->second;
  const Strings near = near_names(name, names_);
  throw data_error(
      {.error = fmt::format("tensor {} is missing", name),
       .where = path_,
       .what = near.empty() ? fmt::format("the checkpoint has {} other tensors", names_.size())
                            : fmt::format("nearest names: {}", join(near, ", ")),
       .fix = "check that the checkpoint is complete and that config.json belongs to it"});
}

std::shared_ptr<const HfDir> HfDir::open(
    const std::string& directory,
    const std::vector<std::pair<std::string, std::string>>& file_names) {
  require_model_dir(directory);
  std::shared_ptr<HfDir> dir(new HfDir);
  dir->path_ = directory;
  dir->prefixes_ = file_names;
  if (path_exists(join_path(directory, kSingleFile))) {
    dir->open_single();
  } else if (path_exists(join_path(directory, kIndexFile))) {
    dir->open_shards(join_path(directory, kIndexFile));
  } else {
    throw data_error({.error = "a model directory has no weights",
                      .where = directory,
                      .what = fmt::format("neither {} nor {}", kSingleFile, kIndexFile),
                      .fix =
                          "use a checkpoint in safetensors format (to convert one, load and save "
                          "it with transformers)"});
  }
  for (const auto& [name, location] : dir->locations_) dir->names_.push_back(name);
  std::ranges::sort(dir->names_);
  return dir;
}

std::vector<int64_t> HfDir::shape(const std::string& name) const {
  const Location& found = location(name);
  return found.file->shape(found.stored_name);
}

at::ScalarType HfDir::dtype(const std::string& name) const {
  const Location& found = location(name);
  return found.file->dtype(found.stored_name);
}

at::Tensor HfDir::tensor(const std::string& name) const {
  const Location& found = location(name);
  return found.file->tensor(found.stored_name);
}

at::Tensor HfDir::values(const std::string& name, int64_t begin, int64_t count) const {
  const Location& found = location(name);
  return found.file->values(found.stored_name, begin, count);
}

std::string_view HfDir::bytes(const std::string& name) const {
  const Location& found = location(name);
  return found.file->bytes(found.stored_name);
}

void HfDir::drop(const std::string& name) const {
  const Location& found = location(name);
  found.file->drop(found.stored_name);
}

std::string HfDir::stored_name(const std::string& name) const {
  const auto found = locations_.find(name);
  if (found != locations_.end()) return found->second.stored_name;
  for (const auto& [stored, own] : prefixes_) {
    const bool is_used = std::ranges::any_of(locations_, [&](const auto& location) {
      return location.first.starts_with(own) && location.second.stored_name.starts_with(stored);
    });
    if (name.starts_with(own) && is_used) return stored + name.substr(own.size());
  }
  return name;
}

const std::string& HfDir::file_name(const std::string& name) const {
  return location(name).file_name;
}

std::string spare_weights_warning(const std::string& directory) {
  const std::string single = join_path(directory, kSingleFile),
                    index = join_path(directory, kIndexFile);
  if (!path_exists(single) || !path_exists(index)) return "";
  std::string named = "no files";
  try {
    for (const auto& [tensor, file] : parse_shard_index(read_file(index), index)) {
      named = file;
      if (file != kSingleFile) break;
    }
  } catch (const UserError&) {
    named = "nothing that can be read";  // and nothing that is needed
  }
  if (named == kSingleFile) return "";
  return fmt::format("{} is used, as in transformers; {} next to it names {}: remove what is old",
                     single, kIndexFile, named);
}

void write_hf_weights(const std::string& directory, const std::vector<TensorEntry>& tensors,
                      const SaveOptions& options) {
  REMATCH_CHECK(options.max_shard_bytes > 0);
  std::vector<std::vector<TensorEntry>> shards(1);
  int64_t shard_bytes = 0, total_bytes = 0, total_parameters = 0;
  for (const TensorEntry& entry : tensors) {
    const auto size_bytes = static_cast<int64_t>(entry.tensor.nbytes());
    if (!shards.back().empty() && shard_bytes + size_bytes > options.max_shard_bytes) {
      shards.emplace_back();
      shard_bytes = 0;
    }
    shards.back().push_back(entry);
    shard_bytes += size_bytes;
    total_bytes += size_bytes;
    total_parameters += entry.tensor.numel();
  }
  if (shards.size() == 1) {
    write_safetensors(join_path(directory, kSingleFile), shards[0]);
    return;
  }
  std::map<std::string, std::string> weight_map;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    for (const TensorEntry& entry : shards[i]) weight_map[entry.name] = name;
    write_safetensors(join_path(directory, name), shards[i]);
  }
  write_index(directory, weight_map, total_parameters, total_bytes);
}

void rewrite_hf_weights(
    const HfDir& source, const std::string& directory,
    const std::function<at::Tensor(const std::string& name, const at::Tensor& tensor)>& change,
    const std::vector<TensorEntry>& added) {
  std::map<std::string, Strings> names_by_file;
  std::map<std::string, std::string> weight_map;
  for (const std::string& name : source.names()) {
    weight_map[source.stored_name(name)] = source.file_name(name);
    names_by_file[source.file_name(name)].push_back(name);
  }
  int64_t total_bytes = 0, total_parameters = 0;
  for (const auto& [file_name, names] : names_by_file) {
    std::vector<TensorEntry> tensors;
    for (const std::string& name : names) {
      const std::string stored_name = source.stored_name(name);
      if (at::Tensor changed = change(name, source.tensor(name)); changed.defined())
        tensors.push_back({stored_name, std::move(changed)});
      else
        weight_map.erase(stored_name);
    }
    if (file_name == names_by_file.rbegin()->first) {
      for (const TensorEntry& entry : added) {
        tensors.push_back({source.stored_name(entry.name), entry.tensor});
        weight_map[tensors.back().name] = file_name;
      }
    }
    for (const TensorEntry& entry : tensors) {
      total_bytes += static_cast<int64_t>(entry.tensor.nbytes());
      total_parameters += entry.tensor.numel();
    }
    write_safetensors(join_path(directory, file_name), std::move(tensors));
  }
  const bool is_single = names_by_file.size() == 1 && names_by_file.begin()->first == kSingleFile;
  if (!is_single) write_index(directory, weight_map, total_parameters, total_bytes);
}

}  // namespace rematch
