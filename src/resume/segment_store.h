#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "checkpoint/state_files.h"
#include "flow/segment.h"
#include "base/json_fields.h"

namespace rematch {

/// Segments for a checkpoint, each stored once: token ids as int32, labels as a mask (a label is
/// mostly the token itself or kIgnoreLabel), the slots of a kind as triples (position, target,
/// source) in `KIND_slots`; the rest as JSON.
class SegmentWriter {
 public:
  /// Adds segments that the store does not have yet. Returns the numbers of all as a JSON list.
  Json add(const std::vector<std::shared_ptr<const Segment>>& segments);

  /// One object for each segment, in the order of their numbers.
  Json descriptions() const;
  NamedTensors tensors() const;

 private:
  std::set<std::string> slot_kinds() const;

  std::unordered_map<const Segment*, int64_t> numbers_;
  std::vector<std::shared_ptr<const Segment>> segments_;
};

/// Reads the output of SegmentWriter and checks that the segments can be trained on: counts, ids,
/// spans, supervision.
/// @param descriptions  value of the key "segments". @param vocab_size  token ids are below it
/// @throws UserError (data)
std::vector<std::shared_ptr<const Segment>> read_segments(const Json& descriptions,
                                                          const NamedTensors& tensors,
                                                          int64_t vocab_size,
                                                          const JsonOrigin& origin);

/// Looks up segments by their numbers, which must be distinct. @param place  of the list, for
/// errors
/// @throws UserError (data)
std::vector<std::shared_ptr<const Segment>> segments_by_number(
    const Json& numbers, const std::vector<std::shared_ptr<const Segment>>& segments,
    const JsonOrigin& origin, const std::string& place);

}  // namespace rematch
