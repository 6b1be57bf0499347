// Compiled for AVX2 and FMA: nothing in this file may run, or be inlined elsewhere, before isa.cc
// has checked the processor.
#include "model/kernels/make_table.h"
#include "model/kernels/vec_avx2.h"

namespace rematch::kernels {

const KernelTable& avx2_table() {
  static constexpr KernelTable kTable = make_table<VecAvx2>();
  return kTable;
}

}  // namespace rematch::kernels
