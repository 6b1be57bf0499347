// Compiled for AVX-512: nothing in this file may run, or be inlined elsewhere, before isa.cc has
// checked the processor.
#include "model/kernels/make_table.h"
#include "model/kernels/vec_avx512.h"

namespace rematch::kernels {

const KernelTable& avx512_table() {
  static constexpr KernelTable kTable = make_table<VecAvx512>();
  return kTable;
}

}  // namespace rematch::kernels
