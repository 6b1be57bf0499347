#include "tools/monitor/order_sheet.h"

#include "tools/draw/encode.h"

namespace rematch {
namespace {

constexpr size_t kMostAnswers = 6, kFewestObjects = 3;

}  // namespace

void OrderSheet::add(const ScoredRollout& rollout) {
  if (answers_.size() < kMostAnswers && rollout.parsed.objects.size() >= kFewestObjects)
    answers_.push_back(numbered_view(rollout));
}

std::string OrderSheet::png() const { return encode_png(answer_sheet(answers_)); }

}  // namespace rematch
