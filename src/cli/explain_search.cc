#include "cli/explain_search.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "config/foreign.h"
#include "config/schema.h"
#include "observe/catalog.h"
#include "report/score_table.h"

namespace rematch {
namespace {

// Words of the field → what they are called here, most telling first.
const std::map<std::string, std::vector<std::string>>& common_words() {
  static const std::vector<std::string> kEpochs{"training.num_train_epochs", "training.max_steps"};
  static const std::vector<std::string> kBatch{"training.effective_batch_size",
                                               "training.per_device_train_batch_size",
                                               "training.gradient_accumulation_steps"};
  static const std::vector<std::string> kEarly{"training.stop_on_harm", "training.save_strategy",
                                               "training.metric_for_best_model"};
  static const std::vector<std::string> kAp{"coco_ap", "coco_ap50", "coco_ap75"};
  static const std::vector<std::string> kMemory{
      "training.gradient_checkpointing", "training.per_device_train_batch_size", "tuner.train_type",
      "custom.extra.rollout_matching.offload.enabled"};
  static const std::vector<std::string> kPrompt{"custom.user_prompt", "template.system"};
  static const std::vector<std::string> kResume{"training.resume_from_checkpoint"};
  static const std::map<std::string, std::vector<std::string>> kWords = {
      {"lr",
       {"training.learning_rate", "training.vit_lr", "training.aligner_lr",
        "training.lr_scheduler_type"}},
      {"epoch", kEpochs},
      {"step", {"training.max_steps", "training.num_train_epochs"}},
      {"batch", kBatch},
      {"batch size", kBatch},
      {"early", kEarly},
      {"early stopping", kEarly},
      {"patience", kEarly},
      {"best", {"training.save_strategy", "training.metric_for_best_model"}},
      {"ap", kAp},
      {"map", kAp},
      {"map50", {"coco_ap50", "coco_ap"}},
      {"iou",
       {"custom.extra.rollout_matching.maskiou_gate",
        "custom.extra.rollout_matching.maskiou_resolution"}},
      {"memory", kMemory},
      {"oom", kMemory},
      {"prompt", kPrompt},
      {"resume", kResume},
      {"checkpoint",
       {"training.save_strategy", "training.save_steps", "training.save_total_limit",
        "training.resume_from_checkpoint"}},
      {"resolution", {"template.max_pixels", "template.min_pixels"}},
      {"warmup", {"training.warmup_ratio", "training.warmup_steps"}},
      {"noise", {"custom.coord_input_noise"}},
      {"lora", {"tuner.train_type", "tuner.lora_rank", "tuner.lora_alpha"}}};
  return kWords;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : lower(text) + " ") {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

/// "epoch" for "epochs".
std::string singular(const std::string& word) {
  return word.size() > 3 && word.ends_with("s") && !word.ends_with("ss")
             ? word.substr(0, word.size() - 1)
             : word;
}

std::vector<FoundName> all_names() {
  std::vector<FoundName> names;
  for (const KeySpec& spec : schema()) {
    if (spec.state == KeyState::kHonoured) names.push_back({spec.path, spec.help, false});
  }
  for (const MetricRow& row : metric_table()) names.push_back({row.name, row.meaning, true});
  return names;
}

/// Quality of the fit of a word to a name; 0 = none.
int fit(const std::string& word, const FoundName& entry) {
  constexpr size_t kTelling = 4;  // shorter ones begin too many words
  int best = 0;
  const std::vector<std::string> parts = words_of(entry.name);
  for (const std::string& part : parts) {
    if (singular(part) == word) best = std::max(best, &part == &parts.back() ? 100 : 80);
    if (word.size() >= kTelling && part.starts_with(word)) best = std::max(best, 60);
  }
  for (const std::string& part : words_of(entry.meaning)) {
    if (singular(part) == word) best = std::max(best, 20);
    if (word.size() >= kTelling && part.starts_with(word)) best = std::max(best, 10);
  }
  return best;
}

/// The metrics behind a score as `eval` and `compare` print it, e.g. "malformed answers".
std::vector<std::string> score_metrics(const std::string& query) {
  constexpr std::string_view kRollout = "eval_rollout_";
  for (const ScoreKind& kind : score_kinds()) {
    if (lower(kind.label) != query) continue;
    const std::string key = kind.key, base = key.substr(0, key.find("_iou50"));
    if (!base.starts_with(kRollout)) return {key};
    return {"rollout/" + base.substr(kRollout.size()), base};
  }
  return {};
}

/// The names that the table of common words, a table of scores or that of foreign keys gives.
std::vector<std::string> known_words(const std::string& query) {
  const auto& words = common_words();
  for (const std::string& spelling : {query, singular(query)}) {
    if (const auto found = words.find(spelling); found != words.end()) return found->second;
  }
  if (const auto metrics = score_metrics(query); !metrics.empty()) return metrics;
  const ForeignKey* row = find_foreign(query);
  return row == nullptr || std::string(row->key).empty() ? std::vector<std::string>{}
                                                         : std::vector<std::string>{row->key};
}

}  // namespace

std::vector<FoundName> search_names(const std::string& query) {
  const std::vector<std::string> first = known_words(lower(query));
  std::vector<std::pair<int, FoundName>> ranked;
  for (const FoundName& entry : all_names()) {
    int total = 0;
    bool fits_all = true;
    for (const std::string& word : words_of(query)) {
      const int points = fit(singular(word), entry);
      total += points;
      fits_all = fits_all && points > 0;
    }
    const auto at = std::find(first.begin(), first.end(), entry.name);
    if (at != first.end()) {
      ranked.emplace_back(1000000 - static_cast<int>(at - first.begin()), entry);
    } else if (first.empty() && fits_all && total > 0) {
      ranked.emplace_back(total, entry);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<FoundName> found;
  for (auto& [points, entry] : ranked) found.push_back(std::move(entry));
  return found;
}

std::vector<std::string> near_known_names(const std::string& query) {
  std::vector<std::string> candidates;
  for (const auto& [word, names] : common_words()) candidates.push_back(word);
  for (const FoundName& entry : all_names()) {
    for (const std::string& word : words_of(entry.name)) candidates.push_back(word);
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return query.size() > 80 ? std::vector<std::string>{} : near_names(lower(query), candidates);
}

}  // namespace rematch
