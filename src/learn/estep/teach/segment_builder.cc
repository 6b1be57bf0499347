#include "learn/estep/teach/segment_builder.h"

#include <utility>

#include "base/error.h"
#include "learn/estep/teach/segment_checks.h"

namespace rematch {

SegmentBuilder::SegmentBuilder(const Prompt& prompt) {
  segment_.sample_id = prompt.sample_id;
  segment_.token_ids = prompt.token_ids;
  segment_.images = prompt.images;
  segment_.prompt_len = static_cast<int>(prompt.token_ids.size());
  segment_.where = prompt.where;
}

void SegmentBuilder::keep_prefix(const std::vector<TokenId>& token_ids) {
  segment_.prefix_len = static_cast<int>(token_ids.size());
  segment_.token_ids.insert(segment_.token_ids.end(), token_ids.begin(), token_ids.end());
}

void SegmentBuilder::teach_in_prefix(int token, int bin) {
  REMATCH_CHECK(token < segment_.prefix_len);
  segment_.add_slot(kCoordSlots, {segment_.prompt_len + token, bin, SlotSource::kPrefix});
}

Segment SegmentBuilder::finish(const std::vector<TaughtToken>& answer, TokenId im_end_id) {
  segment_.labels.resize(segment_.token_ids.size(), kIgnoreLabel);
  segment_.append_len = static_cast<int>(answer.size());
  for (const TaughtToken& token : answer) {
    if (token.bin >= 0)
      segment_.add_slot(kCoordSlots, {segment_.encoded_len(), token.bin, token.source});
    segment_.token_ids.push_back(token.id);
    segment_.labels.push_back(token.label);
  }
  segment_.token_ids.push_back(im_end_id);
  segment_.labels.push_back(im_end_id);
  check_supervision(segment_);
  return std::move(segment_);
}

}  // namespace rematch
