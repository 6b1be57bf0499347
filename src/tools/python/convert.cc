#include "tools/python/convert.h"

#include <fmt/core.h>
#include <nanobind/stl/string.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace nb = nanobind;

namespace rematch {
namespace {

constexpr int kDeepest = 512;  // as parse_json

[[noreturn]] void refuse(const std::string& place, const std::string& error,
                         const std::string& what, const std::string& fix) {
  throw data_error({.error = error, .where = place, .what = what, .fix = fix});
}

std::string read_text(nb::handle value, const std::string& place) {
  try {
    return nb::cast<std::string>(value);
  } catch (const std::exception&) {
    refuse(place, "a text is not Unicode", "it holds a lone surrogate",
           "decode it with errors=\"replace\"");
  }
}

Json json_at_depth(nb::handle value, const std::string& place, int depth) {
  if (depth > kDeepest)
    refuse(place, "a value is nested too deeply", fmt::format("more than {} levels", kDeepest),
           "pass flatter lists");
  if (value.is_none()) return {};
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) {
    int64_t number = 0;
    if (!nb::try_cast(value, number))
      refuse(place, "an integer is too large", "more than 64 bits", "pass a smaller one");
    return number;
  }
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return read_text(value, place);
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    Json list = Json::array();
    for (const nb::handle item : value)
      list.push_back(json_at_depth(item, fmt::format("{}[{}]", place, list.size()), depth + 1));
    return list;
  }
  if (nb::isinstance<nb::dict>(value)) {
    Json object = Json::object();
    for (const auto& [key, item] : nb::cast<nb::dict>(value)) {
      if (!nb::isinstance<nb::str>(key))
        refuse(place, "a key is not text", nb::repr(key).c_str(), "use str keys");
      const std::string name = read_text(key, place);
      object[name] = json_at_depth(item, fmt::format("{}.{}", place, name), depth + 1);
    }
    return object;
  }
  if (nb::hasattr(value, "tolist"))
    return json_at_depth(nb::object(value.attr("tolist")()), place, depth + 1);
  refuse(place, "a value has a type that is not plain", nb::inst_name(value).c_str(),
         "pass lists, dicts, texts and numbers");
}

}  // namespace

Json to_json(nb::handle value, const std::string& place) { return json_at_depth(value, place, 0); }

nb::object to_python(const Json& value) {
  switch (value.type()) {
    case Json::value_t::boolean: return nb::bool_(value.get<bool>());
    case Json::value_t::number_integer: return nb::int_(value.get<int64_t>());
    case Json::value_t::number_unsigned: return nb::int_(value.get<uint64_t>());
    case Json::value_t::number_float: return nb::float_(value.get<double>());
    case Json::value_t::string: return nb::cast(value.get_ref<const std::string&>());
    case Json::value_t::array: {
      nb::list list;
      for (const Json& item : value) list.append(to_python(item));
      return list;
    }
    case Json::value_t::object: {
      nb::dict dict;
      for (const auto& member : value.items())
        dict[nb::cast(member.key())] = to_python(member.value());
      return dict;
    }
    default: return nb::none();
  }
}

}  // namespace rematch
