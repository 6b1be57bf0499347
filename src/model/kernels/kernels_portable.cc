#include "model/kernels/make_table.h"
#include "model/kernels/vec_portable.h"

namespace rematch::kernels {

const KernelTable& portable_table() {
  static constexpr KernelTable kTable = make_table<VecPortable>();
  return kTable;
}

}  // namespace rematch::kernels
