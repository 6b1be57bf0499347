#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "model/checkpoint/hf_dir.h"
#include "model/families/family.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch::test {

inline constexpr const char* kEmbedding = "model.language_model.embed_tokens.weight";
inline constexpr const char* kHead = "lm_head.weight";

inline std::string tiny_tied() { return source_path("tests/golden/model/tiny_tied"); }
inline std::string tiny_untied() { return source_path("tests/golden/model/tiny_untied"); }
inline std::string windows_tied() { return source_path("tests/golden/model/windows_tied"); }
inline std::string windows_untied() { return source_path("tests/golden/model/windows_untied"); }
inline std::string delta_tied() { return source_path("tests/golden/model/delta_tied"); }
inline std::string delta_untied() { return source_path("tests/golden/model/delta_untied"); }

/// A copy of a tiny checkpoint that a test may change.
class CheckpointCopy {
 public:
  explicit CheckpointCopy(const std::string& source) {
    copy_companions(source, dir_->path());
    const auto hf = HfDir::open(source);
    for (const std::string& name : hf->names()) tensors.push_back({name, hf->tensor(name)});
    write_weights();
  }

  const std::string& path() const { return dir_->path(); }
  std::string file(const std::string& name) const { return dir_->file(name); }

  void edit_config(const std::function<void(Json&)>& change) const {
    edit_json("config.json", change);
  }
  void edit_json(const std::string& name, const std::function<void(Json&)>& change) const {
    Json value = read_json_file(file(name));
    change(value);
    dir_->write(name, python_json(value, 2) + "\n");
  }
  void write(const std::string& name, const std::string& content) const {
    dir_->write(name, content);
  }
  void write_weights() const { write_hf_weights(path(), tensors); }
  at::Tensor& tensor(const std::string& name) {
    for (TensorEntry& entry : tensors) {
      if (entry.name == name) return entry.tensor;
    }
    return tensors.emplace_back(TensorEntry{name, {}}).tensor;
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const TensorEntry& entry) { return entry.name == name; });
  }

  std::vector<TensorEntry> tensors;

 private:
  std::unique_ptr<TempDir> dir_ = std::make_unique<TempDir>();
};

/// The description of `source` after a change of its config.json.
inline ModelDescription described_with(const std::string& source,
                                       const std::function<void(Json&)>& change) {
  const TempDir dir;
  Json config = read_json_file(source + "/config.json");
  change(config);
  dir.write("config.json", config.dump());
  return describe_model(dir.path());
}

/// The problem of such a changed config.json.
inline Problem refusal_of(const std::string& source, const std::function<void(Json&)>& change) {
  const UserError error = catch_user_error([&] { described_with(source, change); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  return error.problems()[0];
}

}  // namespace rematch::test
