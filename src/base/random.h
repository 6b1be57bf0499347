#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace rematch {

/// Counter-based randomness: a value depends on its key and counter only, never on earlier draws.
/// Written here because the standard engines are stateful (a resume or another batch order would
/// change every later draw) and their distributions differ between libraries.

/// 64 well-mixed bits for a key such as {seed, epoch, sample_id}. Order matters.
uint64_t random_key(std::initializer_list<uint64_t> parts);
uint64_t random_key(std::integral auto... parts) {
  return random_key({static_cast<uint64_t>(parts)...});
}

/// 64 random bits number `counter` of stream `key`.
uint64_t random_bits(uint64_t key, uint64_t counter);

/// Uniform in [0, 1) with 53 bits.
double random_uniform(uint64_t key, uint64_t counter);

/// Standard normal. Takes the bits number 2·counter and 2·counter + 1 of the stream.
double random_normal(uint64_t key, uint64_t counter);

/// Uniform integer in [0, bound), bound ≥ 1, with negligible modulo bias (64-bit multiply-shift).
uint64_t random_below(uint64_t key, uint64_t counter, uint64_t bound);

/// A permutation of 0..count-1 that depends on `key` only (Fisher–Yates). Cost: linear.
std::vector<int64_t> random_permutation(uint64_t key, int64_t count);

}  // namespace rematch
