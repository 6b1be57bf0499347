#include "model/add_coord_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/flow/sample.h"
#include "base/json.h"
#include "base/random.h"
#include "model/checkpoint/hf_dir.h"
#include "model/families/family.h"
#include "model/save.h"

namespace rematch {
namespace {

constexpr double kNoise = 0.01;  ///< relative to the spread of the used rows
constexpr uint64_t kNoiseSeed = 0x636f6f7264;

std::string embedding_name(const TextDescription& text) { return text.embedding + ".weight"; }
std::string head_name(const TextDescription& text) { return text.head.module + ".weight"; }
std::string coord_token(int bin) { return fmt::format("<|coord_{}|>", bin); }

[[noreturn]] void bad_tokenizer(const std::string& path, std::string what) {
  throw data_error({.error = "tokenizer.json is invalid",
                    .where = path,
                    .what = std::move(what),
                    .fix = "use the model directory as downloaded"});
}

// The existing tokens of a tokenizer.json.
struct TokenTable {
  std::set<std::string> contents;
  int64_t next_id = 0;
};

TokenTable read_tokens(const Json& tokenizer, const std::string& path) {
  TokenTable table;
  const auto add = [&](const std::string& content, const Json& id) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > 0x7fffffffu) {
      bad_tokenizer(path, fmt::format("token {} has id {}", content, id.dump()));
    }
    table.contents.insert(content);
    table.next_id = std::max(table.next_id, id.get<int64_t>() + 1);
  };
  if (!tokenizer.is_object() || !tokenizer.contains("model") || !tokenizer["model"].is_object() ||
      !tokenizer["model"].contains("vocab") || !tokenizer["model"]["vocab"].is_object()) {
    bad_tokenizer(path, "it has no model.vocab");
  }
  for (const auto& member : tokenizer["model"]["vocab"].items()) add(member.key(), member.value());
  if (!tokenizer.contains("added_tokens") || !tokenizer["added_tokens"].is_array())
    bad_tokenizer(path, "it has no added_tokens");
  for (const Json& token : tokenizer["added_tokens"]) {
    if (!token.is_object() || !token.contains("content") || !token["content"].is_string() ||
        !token.contains("id")) {
      bad_tokenizer(path, "an added token has no id or content");
    }
    add(token["content"].get<std::string>(), token["id"]);
  }
  return table;
}

void require_no_coords(const TokenTable& table, const std::string& path) {
  int count = 0;
  for (int bin = 0; bin < kNumBins; ++bin)
    count += static_cast<int>(table.contents.count(coord_token(bin)));
  if (count == 0) return;
  const bool has_all = count == kNumBins;
  throw data_error({.error = has_all ? "the model already has the coord tokens"
                                     : "the model already has some of the coord tokens",
                    .where = path,
                    .what = fmt::format("{} of {}", count, kNumBins),
                    .fix = has_all ? "use the model as it is" : "start from the stock checkpoint"});
}

// The fields of an added token in tokenizer_config.json, in its order.
Json token_fields(const std::string& content) {
  Json token;
  token["content"] = content;
  for (const char* flag : {"lstrip", "normalized", "rstrip", "single_word", "special"})
    token[flag] = false;
  return token;
}

// tokenizer.json has another order of fields.
void add_to_tokenizer(Json& tokenizer, int64_t first_id) {
  for (int bin = 0; bin < kNumBins; ++bin) {
    Json token;
    token["id"] = first_id + bin;
    token["content"] = coord_token(bin);
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized", "special"})
      token[flag] = false;
    tokenizer["added_tokens"].push_back(std::move(token));
  }
}

void write_json(const std::string& directory, const char* name, const Json& value,
                const char* end = "\n") {
  write_file(join_path(directory, name), python_json(value, 2) + end);
}

// Updates two more files, in which older directories list added tokens, if they exist.
void write_token_lists(const std::string& model_dir, const std::string& directory,
                       int64_t first_id) {
  const auto read = [&](const char* name) {
    const std::string path = join_path(model_dir, name);
    return path_exists(path) ? read_json_file(path) : Json();
  };
  Json config = read("tokenizer_config.json");
  if (config.is_object()) {
    const auto decoder = config.find("added_tokens_decoder");
    if (decoder != config.end() && decoder->is_object()) {
      for (int bin = 0; bin < kNumBins; ++bin)
        (*decoder)[std::to_string(first_id + bin)] = token_fields(coord_token(bin));
    }
    write_json(directory, "tokenizer_config.json", config);
  }
  Json added = read("added_tokens.json");
  if (added.is_object()) {
    for (int bin = 0; bin < kNumBins; ++bin) added[coord_token(bin)] = first_id + bin;
    write_json(directory, "added_tokens.json", added);
  }
}

void write_config(const std::string& model_dir, const std::string& directory,
                  const AddedCoordTokens& plan) {
  Json config = read_json_file(join_path(model_dir, "config.json"));
  if (const auto text = config.find("text_config"); text != config.end())
    (*text)["vocab_size"] = plan.new_rows;
  if (const auto top = config.find("vocab_size"); top != config.end()) *top = plan.new_rows;
  if (plan.untied) untie_config(config);
  write_json(directory, "config.json", config);
}

// Used rows keep their bits; new rows are close to their mean.
at::Tensor with_coord_rows(const at::Tensor& table_VH, const AddedCoordTokens& plan) {
  const int64_t width = table_VH.size(1);
  const at::Tensor used = table_VH.narrow(0, 0, plan.first_id).to(at::kFloat);
  const at::Tensor mean = used.mean(0), spread = used.std(0, /*unbiased=*/false);
  at::Tensor noise = at::empty({kNumBins, width}, at::TensorOptions().dtype(at::kFloat));
  float* values = noise.data_ptr<float>();
  for (int64_t i = 0; i < noise.numel(); ++i) {
    values[i] = static_cast<float>((2 * random_uniform(kNoiseSeed, static_cast<uint64_t>(i)) - 1) *
                                   std::sqrt(3.0));
  }
  const at::Tensor rows = (mean + noise * spread * kNoise).to(table_VH.scalar_type());
  at::Tensor result = table_VH;
  if (plan.new_rows > plan.old_rows)
    result = at::cat(
        {table_VH, at::zeros({plan.new_rows - plan.old_rows, width}, table_VH.options())}, 0);
  result.narrow(0, plan.first_id, kNumBins).copy_(rows);
  return result;
}

// The matrix that an untied checkpoint stores in addition to the one of a tied checkpoint.
std::vector<TensorEntry> missing_copies(const HfDir& dir, const TextDescription& text,
                                        const AddedCoordTokens& plan) {
  const std::string embedding = embedding_name(text), head = head_name(text);
  if (dir.has(embedding) && dir.has(head)) return {};
  const std::string &stored = dir.has(embedding) ? embedding : head,
                    &missing = dir.has(embedding) ? head : embedding;
  return {{missing, with_coord_rows(dir.tensor(stored), plan)}};
}

AddedCoordTokens make_plan(const HfDir& dir, const TokenTable& tokens,
                           const TextDescription& text) {
  AddedCoordTokens plan;
  plan.first_id = tokens.next_id;
  plan.old_rows = text.vocab_size;
  plan.new_rows = std::max(plan.old_rows, plan.first_id + kNumBins);
  bool has_any = false;
  for (const std::string& name : {embedding_name(text), head_name(text)}) {
    if (!dir.has(name)) continue;
    has_any = true;
    const std::vector<int64_t> shape = dir.shape(name);
    const bool fits = shape.size() == 2 && shape[0] == plan.old_rows &&
                      plan.first_id <= plan.old_rows && plan.first_id > 0;
    if (!fits || !at::isFloatingType(dir.dtype(name))) {
      throw data_error(
          {.error = fmt::format("{} does not match the tokenizer", name),
           .where = dir.path(),
           .what = fmt::format("{} tokens, {} rows according to config.json, {} stored",
                               plan.first_id, plan.old_rows, shape.empty() ? 0 : shape[0]),
           .fix = "use a checkpoint whose tokenizer, config and weights match"});
    }
  }
  if (!has_any) dir.shape(embedding_name(text));  // Throws, naming the missing tensor.
  return plan;
}

}  // namespace

AddedCoordTokens add_coord_tokens(const std::string& model_dir, const std::string& out_dir,
                                  bool untie) {
  const ModelDescription model = describe_model(model_dir);
  const TextDescription& text = model.text;
  require_empty_output(out_dir);
  const std::string tokenizer_path = join_path(model_dir, "tokenizer.json");
  Json tokenizer = read_json_file(tokenizer_path);
  const TokenTable tokens = read_tokens(tokenizer, tokenizer_path);
  require_no_coords(tokens, tokenizer_path);
  const auto dir = HfDir::open(model_dir, model.file_names);
  AddedCoordTokens plan = make_plan(*dir, tokens, text);
  plan.untied = untie && model.tie_word_embeddings;

  const at::NoGradGuard no_grad;
  StagedDirectory staged(out_dir);
  copy_companions(model_dir, staged.path(),
                  {"config.json", "tokenizer.json", "tokenizer_config.json", "added_tokens.json"});
  add_to_tokenizer(tokenizer, plan.first_id);
  write_json(staged.path(), "tokenizer.json", tokenizer, "");
  write_token_lists(model_dir, staged.path(), plan.first_id);
  write_config(model_dir, staged.path(), plan);
  std::vector<TensorEntry> copies;
  if (plan.untied) copies = missing_copies(*dir, text, plan);
  rewrite_hf_weights(
      *dir, staged.path(),
      [&](const std::string& name, const at::Tensor& tensor) {
        return name == embedding_name(text) || name == head_name(text)
                   ? with_coord_rows(tensor, plan)
                   : tensor;
      },
      copies);
  staged.commit();
  return plan;
}

}  // namespace rematch
