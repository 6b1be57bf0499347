#include "model/four_bit_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_fields.h"

namespace rematch {
namespace {

constexpr const char* kState = ".quant_state.bitsandbytes__";
constexpr std::string_view kWeight = ".weight";
constexpr const char* const kParts[] = {".absmax", ".quant_map", ".nested_absmax",
                                        ".nested_quant_map"};
constexpr const char* kFix =
    "download the checkpoint again, or use the model in bfloat16 with `model.load_in_4bit: true`";
constexpr double kTableTolerance = 1e-4;  // writers round their copy of the table

[[noreturn]] void refuse(const HfDir& dir, const std::string& name, std::string what) {
  throw data_error({.error = fmt::format("the 4-bit weight {} is damaged", name),
                    .where = dir.path(),
                    .what = std::move(what),
                    .fix = kFix});
}

// The values of NAME+part, flat, checked for dtype and number.
at::Tensor read_part(const HfDir& dir, const std::string& name, const std::string& part,
                     at::ScalarType dtype, int64_t count) {
  const std::string tensor = name + part;
  if (!dir.has(tensor)) refuse(dir, name, tensor + " is missing");
  if (dir.dtype(tensor) != dtype) {
    refuse(dir, name,
           fmt::format("{} is {}, not {}", tensor, at::toString(dir.dtype(tensor)),
                       at::toString(dtype)));
  }
  at::Tensor values = dir.tensor(tensor).flatten();
  if (values.numel() != count)
    refuse(dir, name, fmt::format("{} has {} values, not {}", tensor, values.numel(), count));
  if (dtype == at::kFloat && !values.isfinite().all().item<bool>())
    refuse(dir, name, tensor + " has values that are not finite");
  return values;
}

// Codes may be stored as numbers of any dtype (bnb_4bit_quant_storage); only their bytes count.
at::Tensor read_codes(const HfDir& dir, const std::string& name, int64_t num_values) {
  const auto stored = static_cast<int64_t>(dir.bytes(name).size()), wanted = (num_values + 1) / 2;
  if (stored != wanted) {
    refuse(dir, name,
           fmt::format("{} bytes of codes; {} values take {}", stored, num_values, wanted));
  }
  return dir.tensor(name).flatten().view(at::kByte);
}

FourBitKind find_kind(const HfDir& dir, const std::string& name) {
  return dir.has(name + kState + name_of(FourBitKind::kNf4)) ? FourBitKind::kNf4
                                                             : FourBitKind::kFp4;
}

void check_table(const HfDir& dir, const std::string& name, FourBitKind kind) {
  const at::Tensor stored = read_part(dir, name, ".quant_map", at::kFloat, 16);
  const std::array<float, 16>& table = four_bit_values(kind);
  for (size_t i = 0; i < table.size(); ++i) {
    const double value = stored.const_data_ptr<float>()[i];
    if (std::abs(value - static_cast<double>(table[i])) <= kTableTolerance) continue;
    refuse(
        dir, name,
        fmt::format("{}.quant_map[{}] is {}; {} has {}", name, i, value, name_of(kind), table[i]));
  }
}

void read_nested(FourBitWeight& weight, const HfDir& dir, const std::string& name,
                 JsonFields& fields) {
  weight.nested_blocksize = fields.integer("nested_blocksize", 1, int64_t{1} << 20);
  weight.offset = static_cast<float>(fields.number("nested_offset"));
  const int64_t size = weight.nested_blocksize;
  weight.absmax = read_part(dir, name, ".absmax", at::kByte, weight.num_blocks());
  weight.nested_absmax =
      read_part(dir, name, ".nested_absmax", at::kFloat, (weight.num_blocks() + size - 1) / size);
  weight.nested_map = read_part(dir, name, ".nested_quant_map", at::kFloat, 256);
}

void check_shape(const HfDir& dir, const std::string& name, const Json& shape,
                 const FourBitWeight& weight) {
  const bool fits = shape.is_array() && shape.size() == 2 && shape[0].is_number_integer() &&
                    shape[1].is_number_integer() && shape[0] == weight.num_outputs &&
                    shape[1] == weight.num_inputs;
  if (fits) return;
  refuse(dir, name,
         fmt::format("shape {} in its state, [{}, {}] according to config.json", show_json(shape),
                     weight.num_outputs, weight.num_inputs));
}

}  // namespace

bool is_four_bit(const HfDir& dir, const std::string& name) {
  return std::ranges::any_of(names_of(FourBitKind()),
                             [&](const auto& kind) { return dir.has(name + kState + kind.name); });
}

bool is_four_bit_state(const std::string& tensor) {
  const size_t end = tensor.rfind(".weight.");
  if (end == std::string::npos) return false;
  const std::string_view part = std::string_view(tensor).substr(end + kWeight.size());
  return part.starts_with(kState) || std::any_of(std::begin(kParts), std::end(kParts),
                                                 [&](const char* known) { return part == known; });
}

Strings four_bit_tensors(const HfDir& dir, const std::string& name) {
  Strings names{name};
  for (const char* part : kParts) names.push_back(name + part);
  for (const auto& kind : names_of(FourBitKind())) names.push_back(name + kState + kind.name);
  std::erase_if(names, [&](const std::string& tensor) { return !dir.has(tensor); });
  return names;
}

FourBitWeight read_four_bit(const HfDir& dir, const std::string& name, int64_t num_outputs,
                            int64_t num_inputs) {
  const FourBitKind kind = find_kind(dir, name);
  const std::string state = name + kState + name_of(kind);
  const JsonOrigin origin{.path = fmt::format("{}: tensor {}", dir.path(), state),
                          .error = fmt::format("the 4-bit weight {} is damaged", name),
                          .fix = kFix};
  const Json json = parse_document(dir.bytes(state), origin);
  JsonFields fields(json, origin);
  FourBitWeight weight{.kind = kind,
                       .num_outputs = num_outputs,
                       .num_inputs = num_inputs,
                       .blocksize = fields.integer("blocksize", 32, 4096)};
  if (weight.blocksize % 2 != 0) fields.fail("blocksize", "an odd number");
  if (fields.text("quant_type") != name_of(kind))
    fields.fail("quant_type", fmt::format("not {}", name_of(kind)));
  const std::string dtype = fields.text_or("dtype", "float32");
  if (dtype == "bfloat16") {
    weight.rounded_to = at::kBFloat16;
  } else if (dtype == "float16") {
    weight.rounded_to = at::kHalf;
  } else if (dtype != "float32") {
    fields.fail("dtype", fmt::format("{}, not float32, bfloat16 or float16", show_json(dtype)));
  }
  check_shape(dir, name, fields.at("shape"), weight);
  check_table(dir, name, kind);
  weight.codes = read_codes(dir, name, weight.num_values());
  if (fields.has("nested_blocksize") || dir.has(name + ".nested_absmax")) {
    read_nested(weight, dir, name, fields);
  } else {
    weight.absmax = read_part(dir, name, ".absmax", at::kFloat, weight.num_blocks());
  }
  return weight;
}

}  // namespace rematch
