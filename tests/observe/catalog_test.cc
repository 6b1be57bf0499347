#include "base/observe/catalog.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "observe/catalog_page.h"
#include "support/paths.h"

namespace rematch {
namespace {

double value_of(const std::vector<std::pair<std::string, double>>& reduced,
                const std::string& name) {
  for (const auto& [key, value] : reduced) {
    if (key == name) return value;
  }
  return std::nan("");
}

bool has(const std::vector<std::pair<std::string, double>>& reduced, const std::string& name) {
  return !std::isnan(value_of(reduced, name));
}

/// "a/{b,c} d" → {"a/b", "a/c", "d"}
std::vector<std::string> expand(const std::string& pattern) {
  std::vector<std::string> names;
  std::istringstream words(pattern);
  for (std::string word; words >> word;) {
    const size_t open = word.find('{');
    if (open == std::string::npos) {
      names.push_back(word);
      continue;
    }
    std::istringstream members(word.substr(open + 1, word.find('}') - open - 1));
    for (std::string member; std::getline(members, member, ',');)
      names.push_back(word.substr(0, open) + member);
  }
  return names;
}

}  // namespace

TEST(MetricTable, HoldsEveryNameOfTheContract) {
  const char* contract =
      "loss grad_norm learning_rate epoch loss/{ce,coord,coord_prefix,coord_tail} "
      "rollout/{precision,recall,f1,gt_objects,valid_pred_objects,fp,fn,fn_appended,"
      "gating_rejections,gating_rejection_rate,matched_for_supervision,excluded_from_supervision,"
      "matched_maskiou_mean,parse_truncated_rate,parse_malformed_rate,parse_dropped_invalid,"
      "sample_valid_pred_rate,sample_any_match_rate,prompt_len_mean,rollout_len_mean,"
      "rollout_len_p90,prefix_len_mean,append_len_mean,encoded_len_mean,encoded_len_p90,"
      "gen_new_tokens_total,gen_new_tokens_mean,gen_new_tokens_p90,gen_new_tokens_p99,"
      "gen_tokens_per_s,label_accuracy,f1_labels,precision_labels,recall_labels,duplicates,"
      "pred_per_gt,is_rollout,buffer_reuse,buffer_window_step0,buffer_completed_steps} "
      "packing/{post_rollout_fill,post_rollout_selected_total_len,post_rollout_segments,"
      "post_rollout_buffer} data/skipped_samples time/rank_wait_s time/{rollout_generate_s,"
      "rollout_parse_match_s,rollout_teacher_encode_s,post_rollout_pack_s,forward_s,backward_s,"
      "optimizer_s,step_s} eval_loss eval_token_acc eval_runtime eval_samples_per_second "
      "eval_rollout_{precision,recall,f1,pred_objects,gt_objects,matched,fp,fn,gating_rejections,"
      "parse_dropped_invalid,parse_truncated_rate,parse_malformed_rate,sample_valid_pred_rate,"
      "sample_any_match_rate,matched_maskiou_mean,label_accuracy,f1_labels,precision_labels,"
      "recall_labels,duplicates,pred_per_gt,absent_answered,absent_names,empty_answered} "
      "health/{worse,precision,label_accuracy,duplicates,truncated,malformed,pred_per_gt,"
      "absent_answered,unusable_answers} coco_{ap,ap50,ap75,ap_small,ap_medium,"
      "ap_large,ar_1,ar_10,ar_100,ar_small,ar_medium,ar_large}";
  std::set<std::string> table;
  for (const MetricRow& row : metric_table())
    EXPECT_TRUE(table.insert(row.name).second) << row.name << " appears twice";
  for (const std::string& name : expand(contract)) EXPECT_EQ(table.count(name), 1u) << name;
  EXPECT_EQ(table.size(), expand(contract).size());
}

TEST(MetricTable, OnlyRatiosHaveADenominator) {
  for (const MetricRow& row : metric_table()) {
    EXPECT_EQ(row.reduction == Reduction::kRatio, !row.denominator.empty()) << row.name;
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    EXPECT_FALSE(row.unit.empty()) << row.name;
  }
}

TEST(ReduceMetrics, DividesSumsNotMeans) {
  MetricsBag bag;
  // Two samples: 1 of 1 and 0 of 3 predictions matched. The mean of the two precisions would be
  // 1/2.
  for (const auto& [matched, predicted, truths] : {std::tuple{1, 1, 2}, std::tuple{0, 3, 4}}) {
    bag.add("rollout/matched", matched);
    bag.add("rollout/valid_pred_objects", predicted);
    bag.add("rollout/gt_objects", truths);
  }
  const auto reduced = reduce_metrics(bag);
  EXPECT_DOUBLE_EQ(value_of(reduced, "rollout/precision"), 0.25);
  EXPECT_DOUBLE_EQ(value_of(reduced, "rollout/recall"), 1.0 / 6);
  EXPECT_DOUBLE_EQ(value_of(reduced, "rollout/f1"), 0.2);
  EXPECT_DOUBLE_EQ(value_of(reduced, "rollout/gt_objects"), 6);
}

TEST(ReduceMetrics, GivesZeroForAnUndefinedRatio) {
  MetricsBag bag;
  for (const char* name : {"rollout/matched", "rollout/valid_pred_objects", "rollout/gt_objects"})
    bag.add(name, 0);
  EXPECT_EQ(value_of(reduce_metrics(bag), "rollout/f1"), 0.0);
}

TEST(ReduceMetrics, TakesPercentilesAsNumpyDoes) {
  MetricsBag bag;
  for (const double tokens : {40.0, 10.0, 30.0, 20.0, 50.0})
    bag.add("rollout/gen_new_tokens", tokens);
  const auto reduced = reduce_metrics(bag);
  // numpy.percentile([10, …, 50], 90)
  EXPECT_DOUBLE_EQ(value_of(reduced, "rollout/gen_new_tokens_p90"), 46.0);
  EXPECT_DOUBLE_EQ(value_of(reduced, "rollout/gen_new_tokens_p99"), 49.6);
  EXPECT_DOUBLE_EQ(value_of(reduced, "rollout/rollout_len_mean"), 30.0);
  EXPECT_DOUBLE_EQ(value_of(reduced, "rollout/gen_new_tokens_total"), 150.0);
}

TEST(ReduceMetrics, LeavesOutWhatWasNotObserved) {
  MetricsBag bag;
  bag.add("time/rollout_generate_s", 0.0);  // a step that reuses a window
  bag.add("loss", 1.5);
  const auto reduced = reduce_metrics(bag);
  EXPECT_EQ(value_of(reduced, "time/rollout_generate_s"), 0.0);
  EXPECT_FALSE(has(reduced, "rollout/gen_tokens_per_s"));
  EXPECT_FALSE(has(reduced, "rollout/precision"));
  EXPECT_EQ(reduced.size(), 2u);
}

TEST(ReduceMetrics, KeepsTheOrderOfTheTable) {
  MetricsBag bag;
  bag.add("time/step_s", 1);
  bag.add("rollout/gt_objects", 1);
  bag.add("loss", 1);
  const auto reduced = reduce_metrics(bag);
  ASSERT_EQ(reduced.size(), 3u);
  EXPECT_EQ(reduced[0].first, "loss");
  EXPECT_EQ(reduced[1].first, "rollout/gt_objects");
  EXPECT_EQ(reduced[2].first, "time/step_s");
}

TEST(ReduceMetrics, GivesAnEvaluationTheSameObservationsUnderItsOwnNames) {
  MetricsBag bag;
  for (const auto& [name, value] :
       {std::pair{"rollout/matched", 3.0}, std::pair{"rollout/matched_labels", 2.0},
        std::pair{"rollout/valid_pred_objects", 4.0}, std::pair{"rollout/gt_objects", 6.0},
        std::pair{"rollout/repeated_objects", 1.0},
        std::pair{"rollout/matched_maskiou_sum", 2.4}}) {
    bag.add(name, value);
  }
  for (const std::string prefix : {"rollout/", "eval_rollout_"}) {
    const auto reduced =
        reduce_metrics(bag, prefix == "rollout/" ? MetricScope::kStep : MetricScope::kEvaluation);
    EXPECT_DOUBLE_EQ(value_of(reduced, prefix + "f1"), 0.6);
    EXPECT_DOUBLE_EQ(value_of(reduced, prefix + "f1_labels"), 0.4);
    EXPECT_DOUBLE_EQ(value_of(reduced, prefix + "label_accuracy"), 2.0 / 3.0);
    EXPECT_DOUBLE_EQ(value_of(reduced, prefix + "precision_labels"), 0.5);
    EXPECT_DOUBLE_EQ(value_of(reduced, prefix + "recall_labels"), 2.0 / 6.0);
    EXPECT_DOUBLE_EQ(value_of(reduced, prefix + "duplicates"), 0.25);
    EXPECT_DOUBLE_EQ(value_of(reduced, prefix + "pred_per_gt"), 4.0 / 6.0);
    for (const auto& [name, value] : reduced) EXPECT_TRUE(name.starts_with(prefix)) << name;
  }
  std::set<std::string> at_gate;
  for (const auto& [name, value] : reduce_metrics(bag, MetricScope::kGate)) at_gate.insert(name);
  EXPECT_EQ(at_gate,
            (std::set<std::string>{"eval_rollout_precision", "eval_rollout_recall",
                                   "eval_rollout_f1", "eval_rollout_label_accuracy",
                                   "eval_rollout_precision_labels", "eval_rollout_recall_labels",
                                   "eval_rollout_f1_labels", "eval_rollout_matched_maskiou_mean"}));
}

TEST(EvaluationMetrics, DependOnTheKindOfEvaluation) {
  const auto names = [](bool teacher_forced, bool rollouts) {
    const std::vector<std::string> list = evaluation_metrics(teacher_forced, rollouts);
    return std::set<std::string>(list.begin(), list.end());
  };
  EXPECT_EQ(names(true, false), (std::set<std::string>{"eval_loss", "eval_token_acc",
                                                       "eval_runtime", "eval_samples_per_second"}));
  EXPECT_EQ(names(false, true).count("eval_rollout_f1_labels"), 1u);
  EXPECT_EQ(names(false, true).count("eval_loss"), 0u);
  EXPECT_EQ(names(true, true).size(), names(false, true).size() + 2);
}

TEST(ReduceMetrics, CallsAnUncataloguedNameABug) {
  MetricsBag bag;
  bag.add("rollout/presicion", 1);
  EXPECT_THROW(reduce_metrics(bag), InternalError);
}

RC_GTEST_PROP(ReduceMetrics, DoesNotDependOnHowSamplesAreSplitIntoMicroBatches,
              (const std::vector<uint16_t>& lengths)) {
  const size_t cut = lengths.empty() ? 0 : *rc::gen::inRange<size_t>(0, lengths.size());
  MetricsBag whole, first, second;
  for (size_t i = 0; i < lengths.size(); ++i) {
    for (const char* name : {"rollout/encoded_len", "rollout/gen_new_tokens"}) {
      whole.add(name, lengths[i]);
      (i < cut ? first : second).add(name, lengths[i]);
    }
  }
  first.merge(second);
  RC_ASSERT(reduce_metrics(whole) == reduce_metrics(first));
}

TEST(MetricsMarkdown, IsTheCommittedPage) {
  const std::string path = test::source_path("docs/metrics.md");
  if (std::getenv("REMATCH_UPDATE_DOCS") != nullptr)
    std::ofstream(path) << test::metrics_markdown();
  EXPECT_EQ(read_file(path), test::metrics_markdown())
      << "regenerate with: REMATCH_UPDATE_DOCS=1 observe_test --gtest_filter='MetricsMarkdown.*'";
}

}  // namespace rematch
