#include "tools/stages/segment_json.h"

#include <nlohmann/json.hpp>

namespace rematch {

Json segment_json(const SegmentResult& result) {
  const Segment& segment = result.segment;
  Json answer;
  answer["token_ids"] = segment.token_ids;
  answer["labels"] = segment.labels;
  answer["coord_slots"] = Json::array();
  for (const Slot& slot : segment.slots_of(kCoordSlots)) {
    answer["coord_slots"].push_back(Json::array(
        {slot.position, slot.target, slot.source == SlotSource::kPrefix ? "prefix" : "append"}));
  }
  answer["prompt_len"] = segment.prompt_len;
  answer["prefix_len"] = segment.prefix_len;
  answer["append_len"] = segment.append_len;
  answer["append_text"] = result.append_text;
  answer["pairs"] = result.pairs;
  answer["false_negatives"] = result.false_negatives;
  answer["excluded_from_supervision"] = result.num_excluded;
  answer["encoded_len"] = segment.encoded_len();
  return answer;
}

}  // namespace rematch
