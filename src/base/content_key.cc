#include "base/content_key.h"

#define XXH_STATIC_LINKING_ONLY  // the state's size
#include <fmt/core.h>
#include <xxhash.h>

namespace rematch {

std::string content_hash_of(std::string_view bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

struct ContentHasher::State {
  XXH3_state_t hash;
};

ContentHasher::ContentHasher() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->hash);
}
ContentHasher::~ContentHasher() = default;

void ContentHasher::feed(const void* data, size_t num_bytes) {
  XXH3_128bits_update(&state_->hash, data, num_bytes);
}

ContentKey ContentHasher::key() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return {hash.low64, hash.high64};
}

}  // namespace rematch
