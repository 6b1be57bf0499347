#include "learn/resume/trainer_state.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_fields.h"

namespace rematch {
namespace {

constexpr const char* kEvalSet = "eval_set";
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr std::string_view kHistory = "\n  \"log_history\": [";

// Python writes NaN, Infinity and -Infinity, which are not JSON; they are quoted for the strict
// parser.
constexpr std::pair<const char*, double> kNotFinite[] = {
    {"NaN", std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", std::numeric_limits<double>::infinity()},
    {"-Infinity", -std::numeric_limits<double>::infinity()}};

std::string_view constant_at(std::string_view text) {
  for (const auto& [word, value] : kNotFinite) {
    if (text.starts_with(word)) return word;
  }
  return {};
}

std::string quote_constants(std::string_view text) {
  std::string out;
  bool in_string = false;
  while (!text.empty()) {
    const std::string_view constant = in_string ? std::string_view{} : constant_at(text);
    if (!constant.empty()) {
      out += fmt::format("\"{}\"", constant);
      text.remove_prefix(constant.size());
      continue;
    }
    const size_t length = in_string && text[0] == '\\' && text.size() > 1 ? 2 : 1;
    if (text[0] == '"') in_string = !in_string;
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

double read_number(const Json& value, const JsonOrigin& origin, const std::string& place) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    for (const auto& [word, number] : kNotFinite) {
      if (value.get_ref<const std::string&>() == word) return number;
    }
  }
  throw_json_error(origin, place, fmt::format("expected a number, found {}", value.type_name()));
}

LogEntry read_log_entry(const Json& value, const JsonOrigin& origin, const std::string& place) {
  JsonFields fields(value, origin, place);
  LogEntry entry{.step = fields.integer("step")};
  for (const auto& item : value.items()) {
    if (item.key() == kEvalSet) {
      entry.eval_set = fields.text(kEvalSet);
    } else if (item.key() != "step") {
      entry.values.emplace_back(item.key(),
                                read_number(item.value(), origin, fields.place_of(item.key())));
    }
  }
  return entry;
}

/// Fields that transformers does not have.
void read_own_fields(JsonFields own, RunProgress& progress) {
  progress.best_of.metric = own.text_or("best_metric_name", "");
  progress.best_of.greater_is_better = own.boolean_or("best_metric_greater_is_better", true);
  progress.best_of.eval_set = own.text_or("best_metric_eval_set", "");
  progress.kept_checkpoints = own.texts("kept_checkpoints");
}

Json optional_json(const auto& value) { return value ? Json(*value) : Json(nullptr); }

Json own_fields(const RunProgress& progress) {
  Json own = Json::object();
  if (!progress.best_of.metric.empty()) {
    own["best_metric_name"] = progress.best_of.metric;
    own["best_metric_greater_is_better"] = progress.best_of.greater_is_better;
    own["best_metric_eval_set"] = progress.best_of.eval_set;
  }
  if (!progress.kept_checkpoints.empty()) own["kept_checkpoints"] = progress.kept_checkpoints;
  return own;
}

// The whole file with an empty history.
std::string make_frame(const TrainerState& run) {
  const RunProgress& progress = run.progress;
  // transformers reads only its callbacks' entries here, so other programs may add some.
  Json callbacks = Json::object();
  if (const Json own = own_fields(progress); !own.empty()) callbacks["rematch"] = own;
  const Json state{{"best_global_step", optional_json(progress.best_global_step)},
                   {"best_metric", optional_json(progress.best_metric)},
                   {"best_model_checkpoint", optional_json(progress.best_model_checkpoint)},
                   {"epoch", progress.epoch},
                   {"eval_steps", run.eval_steps},
                   {"global_step", progress.global_step},
                   {"is_hyper_param_search", false},
                   {"is_local_process_zero", true},
                   {"is_world_process_zero", true},
                   {"log_history", Json::array()},
                   {"logging_steps", run.logging_steps},
                   {"max_steps", run.max_steps},
                   {"num_input_tokens_seen", 0},  // not counted
                   {"num_train_epochs", static_cast<int64_t>(std::ceil(run.num_train_epochs))},
                   {"save_steps", run.save_steps},
                   {"stateful_callbacks", std::move(callbacks)},
                   {"total_flos", 0.0},
                   {"train_batch_size", run.train_batch_size},
                   {"trial_name", nullptr},
                   {"trial_params", nullptr}};
  return python_json(state, 2) + "\n";
}

// Appends an entry of the history with its indentation.
void append_entry(std::string& text, const LogEntry& entry) {
  Json line = Json::object();
  for (const auto& [name, value] : entry.values) line[std::string(name)] = value;
  if (!entry.eval_set.empty()) line["eval_set"] = entry.eval_set;
  line["step"] = entry.step;
  text += "    ";
  for (const char c : python_json(line, 2)) {
    text += c;
    if (c == '\n') text += "    ";
  }
}

}  // namespace

MetricName::MetricName(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  text_ = &*names.insert(text).first;
}

bool RunProgress::update_best(double value, bool greater_is_better, int64_t step) {
  if (std::isnan(value)) return false;
  if (best_metric && !(greater_is_better ? value > *best_metric : value < *best_metric))
    return false;
  best_metric = value;
  best_global_step = step;
  return true;
}

int64_t RunProgress::evaluations_since_best() const {
  if (!best_global_step) return 0;
  return std::ranges::count_if(log_history, [this](const LogEntry& entry) {
    return entry.step > *best_global_step && !entry.eval_set.empty() &&
           entry.eval_set == best_of.eval_set;
  });
}

std::optional<std::string> RunProgress::reset_best(const BestOf& now) {
  const BestOf before = std::exchange(best_of, now);
  if (!best_metric || before.metric.empty() || before == now) return std::nullopt;
  const bool same_metric =
      before.metric == now.metric && before.greater_is_better == now.greater_is_better;
  const auto metric = [](const BestOf& best) {
    return fmt::format("{} ({} is better)", best.metric,
                       best.greater_is_better ? "greater" : "less");
  };
  std::string text = same_metric
                         ? fmt::format("resumed with another validation set: {} → {}",
                                       before.eval_set, now.eval_set)
                         : fmt::format("resumed with another metric_for_best_model: {} → {}",
                                       metric(before), metric(now));
  text += fmt::format("; the best score, {} after step {}, is reset", *best_metric,
                      best_global_step.value_or(0));
  if (best_model_checkpoint) {
    text += fmt::format("; {} is kept", *best_model_checkpoint);
    kept_checkpoints.push_back(*best_model_checkpoint);
  }
  best_metric.reset();
  best_global_step.reset();
  best_model_checkpoint.reset();
  return text;
}

void print_trainer_state(const TrainerState& state,
                         const std::function<void(std::string_view)>& print) {
  const std::vector<LogEntry>& history = state.progress.log_history;
  const std::string frame = make_frame(state);
  const size_t found = frame.find(kHistory);
  REMATCH_CHECK(found != std::string::npos);
  const size_t inside = found + kHistory.size();
  print(std::string_view(frame).substr(0, inside));
  std::string piece;
  for (size_t i = 0; i < history.size(); ++i) {
    piece += i == 0 ? "\n" : ",\n";
    append_entry(piece, history[i]);
    if (piece.size() < kPieceBytes) continue;
    print(piece);
    piece.clear();
  }
  if (!history.empty()) piece += "\n  ";
  print(piece);
  print(std::string_view(frame).substr(inside));
}

void write_trainer_state(const TrainerState& state, const std::string& path) {
  FileWriter writer(path);
  print_trainer_state(state, [&](std::string_view piece) { writer.write(piece); });
  writer.finish();
}

TrainerState TrainerState::from_json(std::string_view text, const std::string& path) {
  const JsonOrigin origin{.path = path,
                          .error = "a trainer_state.json cannot be read",
                          .fix =
                              "resume from another checkpoint, or start from the weights of this "
                              "one: `model.model` without resume_from_checkpoint",
                          .null_is_absent = true};
  const Json root = parse_document(quote_constants(text), origin);
  JsonFields fields(root, origin);
  TrainerState state;
  RunProgress& progress = state.progress;
  progress.global_step = fields.integer("global_step", 0);
  progress.epoch = read_number(fields.at("epoch"), origin, "epoch");
  state.max_steps = fields.integer("max_steps");
  state.num_train_epochs = read_number(fields.at("num_train_epochs"), origin, "num_train_epochs");
  state.logging_steps = fields.integer("logging_steps");
  state.eval_steps = fields.integer("eval_steps");
  state.save_steps = fields.integer("save_steps");
  state.train_batch_size = fields.integer("train_batch_size");
  if (fields.has("best_metric"))
    progress.best_metric = read_number(fields.at("best_metric"), origin, "best_metric");
  if (fields.has("best_global_step"))
    progress.best_global_step = fields.integer("best_global_step", 0);
  if (fields.has("best_model_checkpoint"))
    progress.best_model_checkpoint = fields.text("best_model_checkpoint");
  read_own_fields(fields.object_or_empty("stateful_callbacks").object_or_empty("rematch"),
                  progress);
  const Json& history = fields.list("log_history");
  for (size_t i = 0; i < history.size(); ++i)
    progress.log_history.push_back(
        read_log_entry(history[i], origin, fmt::format("log_history[{}]", i)));
  return state;
}

}  // namespace rematch
