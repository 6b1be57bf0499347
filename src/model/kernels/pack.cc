#include <algorithm>

#include "base/error.h"
#include "model/kernels/gemm.h"

namespace rematch::kernels {
namespace {

template <class W>
void pack_panel(const Matrix* parts, int num_parts, int64_t panel, W* out) {
  const int64_t num_inputs = parts->num_inputs;
  const W* rows[kPanel] = {};
  int64_t first = -panel * kPanel;  // first output of a matrix, relative to the panel
  for (int i = 0; i < num_parts; ++i) {
    const int64_t begin = std::max<int64_t>(0, first),
                  end = std::min(kPanel, first + parts[i].num_outputs);
    for (int64_t n = begin; n < end; ++n)
      rows[n] = static_cast<const W*>(parts[i].data) + (n - first) * num_inputs;
    first += parts[i].num_outputs;
  }
  const int64_t count = std::clamp<int64_t>(first, 0, kPanel);
  for (int64_t k = 0; k < num_inputs; ++k, out += kPanel) {
    for (int64_t n = 0; n < count; ++n) out[n] = rows[n][k];
    for (int64_t n = count; n < kPanel; ++n) out[n] = 0;
  }
}

}  // namespace

void pack(const Matrix* parts, int num_parts, Range panels, void* packed) {
  const int64_t num_inputs = parts->num_inputs;
  for (int i = 1; i < num_parts; ++i) {
    REMATCH_CHECK(parts[i].num_inputs == num_inputs && parts[i].storage == parts->storage,
                  "matrices differ in width or storage");
  }
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const int64_t offset = panel * kPanel * num_inputs;
    if (parts->storage == Storage::kFloat) {
      pack_panel(parts, num_parts, panel, static_cast<float*>(packed) + offset);
    } else {
      pack_panel(parts, num_parts, panel, static_cast<uint16_t*>(packed) + offset);
    }
  }
}

}  // namespace rematch::kernels
