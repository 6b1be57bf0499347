#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// Left, top, right and bottom of an object's box, its area, longer and shorter side, the distances
/// of its middle from the middle of the picture, its row, and 1 if the entry before has its name.
inline constexpr size_t kNumOrderFeatures = 11;

/// An order of objects: the object of the highest score comes next, ties by (min y, min x).
struct OrderScore {
  std::array<double, kNumOrderFeatures> weights{};  ///< score = weights · features
  std::string name;                                 ///< e.g. "left to right"
  double agreement = 0;                             ///< share of the pairs in this order
  double sorted_agreement = 0;                      ///< share of the pairs in that of `sorted`
  int64_t num_pairs = 0;                            ///< of entries, in the answers
  bool is_found = false;                            ///< false: `sorted`, for too little evidence

  static constexpr int64_t kFewestPairs = 200;
  /// True if more answers might show an order.
  bool has_few_pairs() const { return num_pairs < kFewestPairs; }
  bool operator==(const OrderScore&) const = default;
};

/// The order that a checkpoint's answers follow (BEHAVIOUR 2.4): a named one, or weights learned by
/// logistic regression over pairs of entries where these agree with clearly more pairs. Does not
/// depend on the order of the answers. Below 200 pairs, or an agreement of .9: that of `sorted`.
/// Cost: milliseconds for 300 answers of ten objects.
OrderScore fit_order(std::vector<Objects> answers);

/// Sorts the objects of a picture.
Objects sort_by(const OrderScore& order, Objects objects);

/// "rows from the top, .96 of 2310 pairs (`sorted`: .71)".
std::string order_text(const OrderScore& order);

/// Name of the file in a checkpoint.
inline constexpr const char* kOrderFile = "rematch_order.json";

/// @throws UserError (environment)
void write_order(const std::string& directory, const OrderScore& order);
/// Nullopt if the directory has none.
/// @throws UserError (data) if it is damaged
std::optional<OrderScore> read_order(const std::string& directory);

}  // namespace rematch
