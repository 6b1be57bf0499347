#include "tools/stages/stage.h"

namespace rematch {

const std::vector<StageRow>& public_stages() {
  static const std::vector<StageRow> kTable = {
      {"parse",
       "response ids → objects, read strictly",
       {"model", "answer-format"},
       make_parse_stage},
      {"match", "predictions and ground truth → pairs", {}, make_match_stage},
      {"segment",
       "prompt, response and ground truth → teacher-forced segment",
       {"model", "answer-format"},
       make_segment_stage},
      {"pack", "lengths of waiting segments → segments of the next row", {}, make_pack_stage},
  };
  return kTable;
}

}  // namespace rematch
