#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "mstep/optim/adamw.h"

namespace rematch {
namespace {

constexpr size_t kMostNamed = 5;

[[noreturn]] void throw_misfits(const std::vector<std::string>& misfits, size_t num_trained) {
  std::vector<std::string> named(
      misfits.begin(),
      misfits.begin() + static_cast<std::ptrdiff_t>(std::min(misfits.size(), kMostNamed)));
  if (named.size() < misfits.size()) named.push_back("…");
  throw UserError(
      ErrorKind::kData,
      {.error = "the optimizer state of another run does not fit the parameters trained here",
       .where = "training.resume_optimizer_from",
       .what = fmt::format("{} of {} trained parameters: {}", misfits.size(), num_trained,
                           join(named, "; ")),
       .fix = "name a checkpoint of the same model in which the same parts are trained "
              "(tuner.train_type, tuner.freeze_*), or "
              "remove the key: AdamW then starts without averages, which was measured to lose "
              "nothing"});
}

}  // namespace

void AdamW::carry_averages(const std::vector<std::pair<std::string, at::Tensor>>& state,
                           int64_t num_steps) {
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> by_name(state.begin(), state.end());
  std::vector<std::string> misfits;
  size_t num_trained = 0;
  // All are looked at before any is written: a state that does not fit changes nothing.
  for (const ParameterGroup& group : groups_) {
    for (size_t i = 0; i < group.names.size(); ++i, ++num_trained) {
      for (const char* average : {".exp_avg", ".exp_avg_sq"}) {
        const auto found = by_name.find(group.names[i] + average);
        if (found == by_name.end()) {
          misfits.push_back(group.names[i] + " is not there");
          break;
        }
        if (found->second.sizes() == group.parameters[i].sizes()) continue;
        misfits.push_back(fmt::format("{} has another shape ({} values, not {})", group.names[i],
                                      found->second.numel(), group.parameters[i].numel()));
        break;
      }
    }
  }
  if (!misfits.empty()) throw_misfits(misfits, num_trained);
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i = 0; i < groups_[g].names.size(); ++i) {
      const std::string& name = groups_[g].names[i];
      Slot& slot = slots_[g][i];
      slot.exp_avg.copy_(by_name.at(name + ".exp_avg"));
      slot.exp_avg_sq.copy_(by_name.at(name + ".exp_avg_sq"));
      const auto own_steps = by_name.find(name + ".num_steps");
      slot.num_steps = own_steps == by_name.end() ? num_steps : own_steps->second.item<int64_t>();
    }
  }
}

}  // namespace rematch
