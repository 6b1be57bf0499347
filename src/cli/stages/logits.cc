// `rematch stage logits`: token ids and image files in, the model's logits in a safetensors file out.
#include <ATen/ATen.h>
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "cli/stage.h"
#include "dist/device.h"
#include "model/row.h"
#include "vision/image.h"
#include "vision/patches.h"

namespace rematch {
namespace {

at::ScalarType dtype_of(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "bfloat16") return at::kBFloat16;
  throw UserError(ErrorKind::kConfig, {.error = "--dtype has a wrong value", .where = "--dtype", .what = name, .fix = "give float32 or bfloat16"});
}

std::vector<std::string> read_paths(FieldReader& fields) {
  std::vector<std::string> paths;
  const Json* images = fields.optional("images");
  if (images == nullptr) return paths;
  const auto fail = [](const Json& found) {
    throw UserError(ErrorKind::kData, {.error = "images has a wrong value", .where = "input.images", .what = found.type_name(), .fix = "give a list of paths"});
  };
  if (!images->is_array()) fail(*images);
  for (const Json& item : *images) {
    if (!item.is_string()) fail(item);
    paths.push_back(item.get<std::string>());
  }
  return paths;
}

class LogitsStage : public Stage {
 public:
  explicit LogitsStage(const StageOptions& options)
      : device_(choose_device(options.device)), model_(Qwen3VL::load(options.model_dir, {.dtype = dtype_of(options.dtype), .device = device_})),
        model_dir_(options.model_dir), output_dir_(options.output_dir) {
    make_directories(output_dir_);
  }

  Json run(const Json& input) override {
    FieldReader fields(input, "input");
    const std::vector<int> token_ids = fields.required_integers("token_ids");
    const std::vector<std::string> paths = read_paths(fields);
    fields.finish();
    if (token_ids.empty()) {
      throw UserError(ErrorKind::kData, {.error = "token_ids is empty", .where = "input.token_ids", .what = "0 tokens", .fix = "give at least one token"});
    }
    Json answer;
    answer["file"] = write(logits_TV(token_ids, paths));
    return answer;
  }

 private:
  at::Tensor logits_TV(const std::vector<int>& token_ids, const std::vector<std::string>& paths) const {
    const at::NoGradGuard no_grad;
    auto segment = std::make_shared<Segment>();
    segment->token_ids = token_ids;
    for (const std::string& path : paths) segment->images.push_back({.path = path});
    const PixelGetter load = [this](const ImageRef& image) {
      // Read here, not in the constructor: text-only lines need no image processor.
      return std::make_shared<const Patches>(patchify(load_image(image.path), PatchOptions::from_model_dir(model_dir_), image.path));
    };
    const RowBatch batch = make_row({.segments = {segment}}, load, device_);
    return model_->head_KV(forward_row(*model_, batch)).to(at::kFloat);
  }

  std::string write(const at::Tensor& logits_TV) const {
    const std::string file = line_file(output_dir_);
    write_safetensors(file, {{.name = "logits", .tensor = logits_TV}});
    return file;
  }

  const at::Device device_;
  const std::shared_ptr<Qwen3VL> model_;
  const std::string model_dir_;
  const std::string output_dir_;
};

}  // namespace

std::unique_ptr<Stage> make_logits_stage(const StageOptions& options) { return std::make_unique<LogitsStage>(options); }

}  // namespace rematch
