#include "model/parameter_loader.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "base/error.h"
#include "model/four_bit_reader.h"
#include "model/packed_linears.h"

namespace rematch {

namespace {

[[noreturn]] void refuse_packed(const HfDir& dir, const std::string& name) {
  throw data_error(
      {.error = fmt::format("the weight {} is stored in 4 bits, which only Linears of the towers "
                            "can be",
                            name),
       .where = dir.path(),
       .what = "embedding, head and convolutions are needed in full",
       .fix = "use the model in bfloat16 with `model.load_in_4bit: true`, or quantise it again "
              "with this module in llm_int8_skip_modules"});
}

void check_stored(const HfDir& dir, const std::string& name, const std::vector<int64_t>& shape) {
  if (dir.has(name) && is_four_bit(dir, name)) refuse_packed(dir, name);
  const std::vector<int64_t> found = dir.shape(name);
  if (found != shape) {
    throw data_error({.error = fmt::format("tensor {} has the wrong shape", name),
                      .where = dir.path(),
                      .what = fmt::format("[{}] in the checkpoint, [{}] according to config.json",
                                          fmt::join(found, ", "), fmt::join(shape, ", ")),
                      .fix = "check that config.json belongs to these weights"});
  }
  const at::ScalarType stored = dir.dtype(name);
  if (stored != at::kFloat && stored != at::kBFloat16 && stored != at::kHalf &&
      stored != at::kDouble) {
    throw data_error(
        {.error = fmt::format("tensor {} has the wrong dtype", name),
         .where = dir.path(),
         .what = at::toString(stored),
         .fix = "use weights in F32, BF16 or F16, or packed by bitsandbytes with 4 bits"});
  }
}

}  // namespace

at::Tensor ParameterLoader::take_as(const std::string& name, const std::string& as,
                                    const std::vector<int64_t>& shape) {
  if (dir_) check_stored(*dir_, name, shape);
  const bool is_wide = float32_names_.count(name) != 0 && dir_ && dir_->dtype(name) == at::kFloat;
  const at::ScalarType dtype = is_wide ? at::kFloat : options_.dtype;
  const auto options = at::TensorOptions(dtype).device(options_.device);
  at::Tensor tensor;
  if (is_in_block_) {
    tensor = at::empty({0}, options);
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  } else if (options_.device.is_meta()) {
    tensor = at::empty(shape, options);
  } else {
    tensor = dir_->tensor(name).to(dtype).to(options_.device);
  }
  parameters_.push_back({as, tensor});
  used_.push_back(name);
  return tensor;
}

std::shared_ptr<const FourBitWeight> ParameterLoader::pack(const LinearDescription& linear) {
  const std::string name = linear.module + ".weight";
  const bool is_shape = options_.device.is_meta();
  const auto placed = [&](const FourBitWeight& weight) {
    return std::make_shared<const FourBitWeight>(weight.to(options_.device));
  };
  if (dir_ && is_four_bit(*dir_, name)) {
    if (linear.module == head_) refuse_packed(*dir_, name);
    for (std::string& tensor : four_bit_tensors(*dir_, name)) used_.push_back(std::move(tensor));
    return placed(read_four_bit(*dir_, name, linear.num_outputs, linear.num_inputs));
  }
  if (!options_.four_bit || !is_packed_at_load(*options_.four_bit, head_, linear.module))
    return nullptr;
  const std::vector<int64_t> shape{linear.num_outputs, linear.num_inputs};
  if (dir_) check_stored(*dir_, name, shape);
  used_.push_back(name);
  if (is_shape)
    return placed(quantise(at::empty(shape, at::TensorOptions(at::kMeta)), *options_.four_bit));
  const at::Tensor weight = dir_->tensor(name).to(options_.dtype);
  if (!weight.isfinite().all().item<bool>()) {
    throw data_error({.error = fmt::format("the weight {} cannot be quantised", name),
                      .where = dir_->path(),
                      .what = "it has values that are NaN or infinite",
                      .fix = "download the checkpoint again"});
  }
  return placed(quantise(weight, *options_.four_bit));
}

void ParameterLoader::take_weight(LinearWeights& layer, const LinearDescription& linear) {
  const std::string name = linear.module + ".weight";
  const std::vector<int64_t> shape{linear.num_outputs, linear.num_inputs};
  layer.packed = pack(linear);
  if (!layer.packed) {
    layer.weight = take(name, shape);
    return;
  }
  layer.weight = at::empty(shape, at::TensorOptions(options_.dtype).device(at::kMeta));
  parameters_.push_back({name, layer.weight, layer.packed});
}

LayerSource::Need ParameterLoader::take_block(const std::function<void()>& fill) {
  const size_t first = parameters_.size();
  const std::shared_ptr<BlockWeights>& blocks = options_.blocks;
  is_in_block_ = blocks != nullptr;
  fill();
  if (!std::exchange(is_in_block_, false)) return {};
  std::vector<at::Tensor> tensors;
  Strings names;
  for (size_t i = first; i < parameters_.size(); ++i) {
    if (parameters_[i].packed) continue;
    tensors.push_back(parameters_[i].tensor);
    names.push_back(parameters_[i].name);
  }
  const size_t block = blocks->hold(tensors, [&](size_t i, int64_t begin, int64_t count) {
    return options_.device.is_meta() ? at::empty({count}, tensors[i].options())
                                     : dir_->values(names[i], begin, count)
                                           .to(tensors[i].scalar_type())
                                           .to(options_.device);
  });
  const LayerSource::Need need = [blocks, block] { blocks->need(block); };
  for (size_t i = first; i < parameters_.size(); ++i) {
    if (!parameters_[i].packed) parameters_[i].need = need;
  }
  return need;
}

Strings ParameterLoader::unused_names() const {
  const std::set<std::string> used(used_.begin(), used_.end());
  Strings names;
  for (const std::string& name : dir_ ? dir_->names() : Strings{}) {
    if (used.count(name) == 0 && !name.ends_with("inv_freq")) names.push_back(name);
  }
  return names;
}

}  // namespace rematch
