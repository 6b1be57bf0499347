#include "model/parameter_loader.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <set>

#include "base/error.h"

namespace rematch {

namespace {

void check_stored(const HfDir& dir, const std::string& name, const std::vector<int64_t>& shape) {
  const std::vector<int64_t> found = dir.shape(name);
  if (found != shape) {
    throw UserError(ErrorKind::kData,
                    {.error = fmt::format("tensor {} has the wrong shape", name),
                     .where = dir.path(),
                     .what = fmt::format("[{}] in the checkpoint, [{}] according to config.json",
                                         fmt::join(found, ", "), fmt::join(shape, ", ")),
                     .fix = "check that config.json belongs to these weights"});
  }
  const at::ScalarType stored = dir.dtype(name);
  if (stored != at::kFloat && stored != at::kBFloat16 && stored != at::kHalf &&
      stored != at::kDouble) {
    throw UserError(
        ErrorKind::kData,
        {.error = fmt::format("tensor {} has the wrong dtype", name),
         .where = dir.path(),
         .what = at::toString(stored),
         .fix = "use weights in F32, BF16 or F16 (quantised checkpoints cannot be trained)"});
  }
}

}  // namespace

at::Tensor ParameterLoader::take_as(const std::string& name, const std::string& as,
                                    const std::vector<int64_t>& shape) {
  if (dir_) check_stored(*dir_, name, shape);
  const at::Tensor tensor =
      options_.device.is_meta()
          ? at::empty(shape, at::TensorOptions(options_.dtype).device(options_.device))
          : dir_->tensor(name).to(options_.dtype).to(options_.device);
  parameters_.push_back({as, tensor});
  used_.push_back(name);
  return tensor;
}

std::vector<std::string> ParameterLoader::unused() const {
  const std::set<std::string> used(used_.begin(), used_.end());
  std::vector<std::string> names;
  for (const std::string& name : dir_ ? dir_->names() : std::vector<std::string>{}) {
    if (used.count(name) == 0 && !name.ends_with("inv_freq")) names.push_back(name);
  }
  return names;
}

}  // namespace rematch
