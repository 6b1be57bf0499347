// Any bytes as the open window of a training state: read or refused, and what was read is written
// and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/flow/segment.h"
#include "base/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto window = rematch::try_from_wire<rematch::OpenWindow>(bytes);
  if (!window) return 0;
  const std::string written = rematch::to_wire(*window);
  REMATCH_CHECK(written.size() <= size, "a window needs more bytes than it was read from");
  REMATCH_CHECK(rematch::to_wire(rematch::from_wire<rematch::OpenWindow>(written)) == written);
  return 0;
}
