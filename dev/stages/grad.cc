// `rematch-stages stage grad`: one row of segments in, the gradient of its loss for every parameter
// in a safetensors file out.
#include <ATen/ATen.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/autograd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "learn/mstep/loss/loss_table.h"
#include "learn/mstep/mstep.h"
#include "learn/mstep/optim/float32_gradients.h"
#include "learn/mstep/optim/groups.h"
#include "loss_input.h"
#include "model/checkpoint/safetensors.h"
#include "model/row.h"
#include "model/text/tokenizer.h"
#include "model_input.h"
#include "tool_stages.h"

namespace rematch {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& found, const std::string& fix) {
  throw UserError(
      ErrorKind::kData,
      {.error = where + " has an invalid value", .where = where, .what = found, .fix = fix});
}

std::shared_ptr<const Segment> read_segment(const Json& value, const std::string& what,
                                            int64_t vocab_size) {
  JsonFields fields(value, input_origin(), what);
  auto segment = std::make_shared<Segment>();
  segment->where = what;
  segment->token_ids = fields.integers("token_ids");
  if (segment->token_ids.empty()) fail(what + ".token_ids", "no tokens", "pass at least one token");
  read_supervision(fields, what, vocab_size, *segment);
  for (const std::string& path : fields.texts("images")) segment->images.push_back({.path = path});
  fields.finish();
  return segment;
}

class GradStage : public ModelStage {
 public:
  using ModelStage::ModelStage;

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const PackedRow row = read_row(fields.at("segments"));
    LossOptions options = read_loss_options(fields.object_or_empty("options"));
    options.coord_token_ids = coord_token_ids(fields, row);
    fields.finish();

    const RowSupervision supervision = RowSupervision::from(row);
    const LossScale scale = loss_scales({supervision}, LossNormalization::kWindow).front();
    const std::vector<ParameterGroup> groups = trainable_groups();
    Float32Gradients float32_gradients(groups);
    const RowLoss loss =
        row_loss(forward_row(*model_, make_row(row, pixels_from_files(model_dir_))), supervision,
                 Head::of(model_->head()), options, scale);
    torch::autograd::backward({loss.total}, {});
    float32_gradients.publish();
    const std::vector<TensorEntry> gradients = take_gradients();

    Json answer;
    answer["loss"] = 0;  // comes first
    double total = 0;
    for (const LossKind& kind : loss_kinds(options)) {
      const double scaled = loss.by_kind.of(kind.name).sum * get_scale(scale, kind.name);
      answer[kind.name] = scaled;
      total += scaled;
    }
    answer["loss"] = total;
    const std::string file = line_file(output_dir_, line_name_);
    write_safetensors(file, gradients);
    answer["file"] = file;
    return answer;
  }

 private:
  PackedRow read_row(const Json& segments) const {
    if (!segments.is_array() || segments.empty())
      fail("input.segments", segments.type_name(), "pass a list of at least one segment");
    PackedRow row;
    for (size_t i = 0; i < segments.size(); ++i) {
      row.segments.push_back(read_segment(segments[i], fmt::format("input.segments[{}]", i),
                                          model_->description().text.vocab_size));
    }
    return row;
  }

  // The input's own ids, else those of the model directory's tokenizer; a row without slots needs
  // neither.
  std::array<TokenId, 1000> coord_token_ids(JsonFields& fields, const PackedRow& row) const {
    if (fields.has("coord_token_ids"))
      return read_coord_token_ids(fields, model_->description().text.vocab_size);
    bool has_slots = false;
    for (const auto& segment : row.segments) has_slots |= !segment->slots_of(kCoordSlots).empty();
    return has_slots ? CoordVocab::from(*Tokenizer::load(model_dir_), model_dir_).ids()
                     : std::array<int, 1000>{};
  }

  std::vector<ParameterGroup> trainable_groups() const {
    std::vector<std::pair<std::string, at::Tensor>> parameters;
    for (const NamedParameter& parameter : model_->parameters())
      parameters.emplace_back(parameter.name, parameter.tensor);
    return make_groups(parameters, model_->description().part_of, {});
  }

  // Gradients by checkpoint name in float32, zeros where a parameter takes no part; clears the
  // parameters' gradients.
  std::vector<TensorEntry> take_gradients() const {
    std::vector<TensorEntry> gradients;
    for (const NamedParameter& parameter : model_->parameters()) {
      const at::Tensor grad = parameter.tensor.grad();
      gradients.push_back({parameter.name, grad.defined()
                                               ? grad.to(at::kFloat)
                                               : at::zeros(parameter.tensor.sizes(), at::kFloat)});
      parameter.tensor.mutable_grad().reset();
    }
    return gradients;
  }
};

}  // namespace

std::unique_ptr<Stage> make_grad_stage(const StageOptions& options) {
  return std::make_unique<GradStage>(options);
}

}  // namespace rematch
