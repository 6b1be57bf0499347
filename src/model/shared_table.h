#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "model/model.h"

namespace rematch {

/// Gives a frozen embedding or head, [V, H], to the blocks, alone in a block.
/// @param table  a parameter with values; gets NamedParameter::need
void share_table(NamedParameter& table, const std::shared_ptr<BlockWeights>& blocks);

/// The plain map of a head whose weight has values only after `need`, which is called before the
/// forward and the backward pass.
class SharedHead : public LinearAdapter {
 public:
  explicit SharedHead(std::function<void()> need) : need_(std::move(need)) {}
  at::Tensor forward(const at::Tensor& x, const LinearWeights& base,
                     Results results) const override {
    return run_block(need_, [&] { return base_linear(x, base, results); });
  }
  std::vector<at::Tensor> parameters() const override { return {}; }

 private:
  std::function<void()> need_;
};

}  // namespace rematch
