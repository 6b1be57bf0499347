// `rematch-stages stage loss`: logits and targets in, the losses of BEHAVIOUR 8 out. A loss that is
// not finite is shown as null.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "learn/mstep/loss/loss_table.h"
#include "learn/mstep/loss/losses.h"
#include "loss_input.h"
#include "model/checkpoint/safetensors.h"
#include "tool_stages.h"

namespace rematch {
namespace {

at::Tensor read_logits_TV(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  const auto fail = [&](const std::string& error, const std::string& what) {
    throw UserError(ErrorKind::kData,
                    {.error = error,
                     .where = path,
                     .what = what,
                     .fix = "write a floating-point tensor \"logits\" of shape [T, V]"});
  };
  if (!file->has("logits"))
    fail("the file has no tensor \"logits\"",
         fmt::format("{} other tensors", file->names().size()));
  if (file->shape("logits").size() != 2 || !at::isFloatingType(file->dtype("logits"))) {
    fail("the logits have an invalid shape or type",
         fmt::format("{} dimensions of {}", file->shape("logits").size(),
                     at::toString(file->dtype("logits"))));
  }
  return file->tensor("logits");
}

class LossStage : public Stage {
 public:
  Json run(const Json& input) override {
    const at::NoGradGuard no_grad;
    JsonFields fields(input, input_origin(), "input");
    const at::Tensor logits_TV = read_logits_TV(fields.text("logits"));
    auto segment = std::make_shared<Segment>();
    segment->token_ids.assign(static_cast<size_t>(logits_TV.size(0)), 0);
    read_supervision(fields, "input", logits_TV.size(1), *segment);
    LossOptions options = read_loss_options(fields.object_or_empty("options"));
    if (fields.has("coord_token_ids") || !segment->slots_of(kCoordSlots).empty()) {
      options.coord_token_ids = read_coord_token_ids(fields, logits_TV.size(1));
    }
    fields.finish();

    const RowSupervision supervision = RowSupervision::from({.segments = {segment}});
    const Head hand_through{.logits_KV = [](const at::Tensor& rows_KV) { return rows_KV; },
                            .weight_VH = {}};
    const RowLoss loss = row_loss(logits_TV, supervision, hand_through, options, {});
    Json answer;
    double total = 0;
    for (const LossKind& kind : loss_kinds(options)) {
      const LossSum sum = loss.by_kind.of(kind.name);
      answer[kind.name] = sum.mean();
      answer[kind.name + "_count"] = sum.count;
      for (const auto& [term, weight] : kind.terms) {
        if (term->name != kind.name) answer[term->name] = loss.details.of(term->name).mean();
      }
      total += sum.mean();
    }
    answer["loss"] = total;
    return answer;
  }
};

}  // namespace

std::unique_ptr<Stage> make_loss_stage(const StageOptions&) {
  return std::make_unique<LossStage>();
}

}  // namespace rematch
