#include "tools/monitor/answer_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "learn/augment/augmentation.h"
#include "model/text/lossy.h"

namespace rematch {
namespace {

constexpr int kPanelPx = 512, kColumns = 3;

/// Number of matched pairs with equal labels.
int64_t count_equal_labels(const ScoredRollout& rollout, const LabelMatch& labels) {
  const auto& pairs = rollout.matching.pairs;
  return std::ranges::count_if(pairs, [&](const std::pair<int, int>& pair) {
    const std::string& predicted = rollout.parsed.objects[pair.first].desc;
    const std::string& truth = rollout.ground_truth[pair.second].desc;
    return labels.same(predicted, truth);
  });
}

/// Line number of a sample in its file.
std::string line_number(const Sample& sample) {
  const size_t colon = sample.where.rfind(':');
  return colon == std::string::npos ? std::to_string(sample.sample_id + 1)
                                    : sample.where.substr(colon + 1);
}

/// Prefixes every line, for a diff.
std::string mark_lines(const std::string& text, const char* mark) {
  std::string lines;
  if (text.empty()) return lines;
  for (const std::string& line : split(text, '\n')) lines += mark + line + "\n";
  return lines;
}

}  // namespace

AnswerView numbered_view(const ScoredRollout& rollout) {
  const auto num_truths = static_cast<int>(rollout.ground_truth.size());
  AnswerView view{.image = rollout.prompt.images.front(),
                  .caption = fmt::format(
                      "line {}: {} true, {} found, {} matched, answer {}",
                      line_number(*rollout.sample), num_truths, rollout.parsed.objects.size(),
                      rollout.matching.pairs.size(), parse_status_name(rollout.parsed.status)),
                  .own_prompt = rollout.own_prompt};
  // A number before each name: the place in the answer, so that a reader sees both orders.
  const auto add = [&](const auto& objects, Rgb color) {
    for (int place = 1; const auto& object : objects)
      view.objects.push_back({object.geometry, fmt::format("{} {}", place++, object.desc), color});
  };
  add(rollout.ground_truth, kTruthColor);
  add(rollout.parsed.objects, kPredictionColor);
  for (const auto& [predicted, truth] : rollout.matching.pairs)
    view.links.emplace_back(truth, num_truths + predicted);
  return view;
}

AnswerView view_answer(const ScoredRollout& rollout, const SegmentResult& target,
                       const Tokenizer& tokenizer, const LabelMatch& labels, size_t max_bytes) {
  const ParsedRollout& parsed = rollout.parsed;
  AnswerView view = numbered_view(rollout);
  const std::string answer = tokenizer.decode_bytes(parsed.response_token_ids);
  const size_t num_kept = answer.starts_with(parsed.prefix_text) ? parsed.prefix_text.size() : 0;
  view.answer = lossy_utf8(answer);
  view.kept = shorten_bytes(lossy_utf8(answer.substr(0, num_kept)), max_bytes);
  view.dropped = shorten_bytes(lossy_utf8(answer.substr(num_kept)), max_bytes);
  view.taught = shorten_bytes(target.append_text, max_bytes);

  const auto f1 = [&](int64_t num_right) {
    return view.objects.empty()
               ? 1.0
               : 2 * static_cast<double>(num_right) / static_cast<double>(view.objects.size());
  };
  view.f1 = f1(std::ssize(rollout.matching.pairs));
  view.f1_labels = f1(count_equal_labels(rollout, labels));
  return view;
}

std::string answer_texts(const std::vector<AnswerView>& answers, const std::string& policy) {
  std::string text;
  for (const AnswerView& answer : answers) {
    text += fmt::format(
        "\n## {}\n\nUnmarked: the prefix of the answer that is kept. `-`: the rest of the answer. "
        "`+`: what is taught ({}).\n\n```diff\n{}{}{}```\n",
        answer.caption, policy, mark_lines(answer.kept, "  "), mark_lines(answer.dropped, "- "),
        mark_lines(answer.taught, "+ "));
  }
  return text;
}

std::string answer_lines(const std::vector<AnswerView>& answers, int64_t step,
                         const std::string& prompt) {
  std::string lines;
  for (const AnswerView& answer : answers) {
    lines += json_line({{"step", step},
                        {"prompt", answer.own_prompt.empty() ? prompt : answer.own_prompt},
                        {"completion", answer.answer},
                        {"f1", answer.f1},
                        {"f1_labels", answer.f1_labels},
                        {"advantage", 0.0}});  // the only answer to its prompt
  }
  return lines;
}

Image answer_sheet(const std::vector<AnswerView>& answers) {
  std::vector<std::pair<std::string, Canvas>> panels;
  for (const AnswerView& answer : answers) {
    try {
      Image picture = load_image(answer.image.path);
      change_image(picture, answer.image.change);
      panels.emplace_back(answer.caption,
                          scene_panel(picture, answer.objects, kPanelPx, answer.links));
    } catch (const UserError& error) {
      panels.emplace_back(answer.caption, blank_panel(error.problems().front().error, kPanelPx));
    }
  }
  return sheet_of(panels, kColumns, {{kTruthColor, "truth"}, {kPredictionColor, "answer"}}).image();
}

}  // namespace rematch
