#include "model/shared_table.h"

namespace rematch {

void share_table(NamedParameter& table, const std::shared_ptr<BlockWeights>& blocks) {
  const at::Tensor values = table.tensor.detach().flatten();  // outlives the tensor's storage
  const size_t block = blocks->hold({table.tensor}, [&](size_t, int64_t begin, int64_t count) {
    return values.narrow(0, begin, count);
  });
  table.need = [blocks, block] { blocks->need(block); };
}

}  // namespace rematch
