#include "model/checkpoint/quantisation.h"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr const char* kBitsandbytes = "bitsandbytes";
// `compression_config`: older files of compressed-tensors
constexpr std::array kKeys = {"quantization_config", "compression_config"};

[[noreturn]] void refuse(const std::string& where, const std::string& name) {
  throw data_error(
      {.error = fmt::format("weights quantised by {} cannot be read", name),
       .where = where,
       .what = "only bitsandbytes with 4 bits (nf4, fp4) can",
       .fix = "use the model's checkpoint in bfloat16 or float32; `model.load_in_4bit: true` "
              "quantises it while it is loaded, for LoRA"});
}

const Json* find_quantisation(const Json& config) {
  for (const char* key : kKeys) {
    if (const auto found = config.find(key); found != config.end() && !found->is_null())
      return &*found;
  }
  const auto text = config.find("text_config");
  return text != config.end() && text->is_object() ? find_quantisation(*text) : nullptr;
}

FourBitSettings read_bitsandbytes(JsonFields& fields, const std::string& where) {
  if (fields.boolean_or("load_in_8bit", false)) refuse(where, "bitsandbytes with 8 bits");
  if (!fields.boolean_or("load_in_4bit", false))
    fields.fail("load_in_4bit", "neither 4 nor 8 bits");
  const std::string type = fields.text_or("bnb_4bit_quant_type", name_of(FourBitKind::kFp4));
  const std::optional<FourBitKind> kind = value_of<FourBitKind>(type);
  if (!kind) {
    fields.fail("bnb_4bit_quant_type",
                fmt::format("\"{}\", not one of {}", type, join(all_names<FourBitKind>(), ", ")));
  }
  return {.quant_type = *kind,
          .use_double_quant = fields.boolean_or("bnb_4bit_use_double_quant", false),
          .skip_modules = fields.texts("llm_int8_skip_modules")};
}

void erase_quantisation(Json& object) {
  for (const char* key : kKeys) object.erase(key);
}

}  // namespace

std::optional<FourBitSettings> stored_quantisation(const std::string& model_dir) {
  const std::string path = join_path(model_dir, "config.json");
  const Json config = read_json_file(path);
  if (!config.is_object()) return std::nullopt;  // reported where the model is described
  const Json* found = find_quantisation(config);
  if (found == nullptr) return std::nullopt;
  const JsonOrigin origin{.path = path,
                          .error = "{} in config.json is invalid",
                          .fix = "use the config.json that came with the checkpoint",
                          .null_is_absent = true};
  JsonFields fields(*found, origin, "quantization_config");
  // Files of early releases of transformers have no quant_method.
  const std::string method = fields.text_or(
      "quant_method", fields.has("load_in_4bit") ? kBitsandbytes : "an unknown method");
  if (method == kBitsandbytes || method == "bitsandbytes_4bit" || method == "bitsandbytes_8bit")
    return read_bitsandbytes(fields, path);
  refuse(path, method);
}

std::string config_without_quantisation(const std::string& config_text, const std::string& where) {
  Json root = parse_json(config_text, where);
  if (!root.is_object() || find_quantisation(root) == nullptr) return config_text;
  erase_quantisation(root);
  if (const auto text = root.find("text_config"); text != root.end() && text->is_object())
    erase_quantisation(*text);
  return python_json(root, 2) + "\n";
}

}  // namespace rematch
