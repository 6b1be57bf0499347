#include "learn/mstep/make_gradient_sum.h"

#include <utility>

#include "learn/mstep/optim/float32_gradients.h"
#include "learn/mstep/rank_gradients.h"

namespace rematch {
namespace {

/// One process: autograd sums the rows; Float32Gradients does it for bfloat16 parameters.
class OneProcess : public GradientSum {
 public:
  explicit OneProcess(std::vector<ParameterGroup> groups)
      : groups_(std::move(groups)), float32_gradients_(groups_) {}

  std::vector<ParameterGroup> updated_groups() const override { return groups_; }
  std::vector<ParameterGroup> owned_groups() const override { return groups_; }
  int64_t window_index(int64_t row) const override { return row; }

  void sum_counts(std::span<double>) override {}
  void begin(const std::vector<bool>&) override {}
  void end_row() override {}
  double finish(double max_norm) override {
    float32_gradients_.publish();
    return clip_grad_norm(groups_, max_norm);
  }
  void update(const std::function<void()>& step) override { step(); }
  void discard() override {
    float32_gradients_.discard();
    for (const ParameterGroup& group : groups_) {
      for (const at::Tensor& parameter : group.parameters) parameter.mutable_grad().reset();
    }
  }
  std::optional<std::vector<ScaledLoss>> gather_losses(std::vector<ScaledLoss> own) override {
    return own;
  }

 private:
  std::vector<ParameterGroup> groups_;
  Float32Gradients float32_gradients_;
};

}  // namespace

std::unique_ptr<GradientSum> make_gradient_sum(std::vector<ParameterGroup> groups, Group& group,
                                               const GradientSumOptions& options) {
  if (group.is_alone()) return std::make_unique<OneProcess>(std::move(groups));
  GradientSumOptions over_ranks = options;
  over_ranks.exact_ranks =
      options.exact_ranks || (!group.message_device().is_cpu() && options.zero_stage == 2);
  return std::make_unique<RankGradients>(std::move(groups), group, over_ranks);
}

}  // namespace rematch
