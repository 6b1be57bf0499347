#include "model/nn/segment_plan.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "model/nn/upload.h"

namespace rematch {
namespace {

// Both directions gather rows and are each other's transpose, so gradients are gathers too, not
// slow index_adds.

class ToGroups : public torch::autograd::Function<ToGroups> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows,
                            const at::Tensor& grouped_from_row,
                            const at::Tensor& row_from_grouped) {
    context->save_for_backward({row_from_grouped});
    return rows.index_select(0, grouped_from_row);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    // Padding has no gradient: real positions do not attend to it, and its outputs are dropped.
    return {gradients[0].index_select(0, context->get_saved_variables()[0]), {}, {}};
  }
};

class FromGroups : public torch::autograd::Function<FromGroups> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& grouped,
                            const at::Tensor& grouped_from_row, const at::Tensor& row_from_grouped,
                            const std::optional<at::Tensor>& is_real) {
    context->save_for_backward({grouped_from_row, is_real.value_or(at::Tensor())});
    return grouped.index_select(0, row_from_grouped);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    at::Tensor gradient = gradients[0].index_select(0, saved[0]);
    if (saved[1].defined()) {
      std::vector<int64_t> shape(static_cast<size_t>(gradient.dim()), 1);
      shape[0] = -1;
      gradient = gradient.masked_fill_(saved[1].logical_not().view(shape), 0);
    }
    return {gradient, {}, {}, {}};
  }
};

}  // namespace

SegmentPlan::SegmentPlan(const std::vector<int64_t>& lens, const Options& options,
                         at::Device device) {
  std::vector<int64_t> begins(lens.size());
  std::exclusive_scan(lens.begin(), lens.end(), begins.begin(), int64_t{0});
  std::vector<size_t> order;
  for (size_t s = 0; s < lens.size(); ++s) {
    if (lens[s] > 0) order.push_back(s);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return lens[a] > lens[b]; });
  const auto fits = [&](int64_t len, int64_t longest) {
    if (len == longest) return true;
    if (!options.may_pad) return false;
    return longest <= options.always_group_len ||
           static_cast<double>(len) >= options.min_fill * static_cast<double>(longest);
  };

  std::vector<int64_t> grouped_from_row,
      row_from_grouped(static_cast<size_t>(std::accumulate(lens.begin(), lens.end(), int64_t{0})));
  std::vector<int64_t> is_real;
  bool is_padded = false;
  for (size_t first = 0; first < order.size();) {
    Group group{0, lens[order[first]], std::ssize(grouped_from_row)};
    size_t last = first;
    while (last < order.size() && fits(lens[order[last]], group.len)) ++last;
    // Segments of a group keep their order in the row, so that a row of equal segments needs no
    // copy.
    std::sort(order.begin() + first, order.begin() + last);
    for (; first < last; ++first) {
      const int64_t len = lens[order[first]], begin = begins[order[first]];
      ++group.num_segments;
      for (int64_t i = 0; i < group.len; ++i) {
        if (i < len) row_from_grouped[begin + i] = std::ssize(grouped_from_row);
        grouped_from_row.push_back(begin + std::min(i, len - 1));
        is_real.push_back(i < len);
      }
      is_padded = is_padded || len < group.len;
    }
    groups_.push_back(group);
  }
  const bool is_in_order = std::ranges::is_sorted(grouped_from_row);
  if (is_padded || !is_in_order) {
    grouped_from_row_ = upload_index(grouped_from_row, device);
    row_from_grouped_ = upload_index(row_from_grouped, device);
    if (is_padded) is_real_ = upload_index(is_real, device).to(at::kBool);
  }
}

at::Tensor SegmentPlan::to_groups(const at::Tensor& rows) const {
  return is_identity() ? rows : ToGroups::apply(rows, grouped_from_row_, row_from_grouped_);
}

at::Tensor SegmentPlan::from_groups(const at::Tensor& grouped) const {
  if (is_identity()) return grouped;
  // Autograd accepts no undefined tensor as an input.
  const std::optional<at::Tensor> is_real =
      is_real_.defined() ? std::optional(is_real_) : std::nullopt;
  return FromGroups::apply(grouped, grouped_from_row_, row_from_grouped_, is_real);
}

}  // namespace rematch
