#include "base/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/utf16.h"

namespace rematch {
namespace {

constexpr size_t kMaxDepth = 512;

std::string position(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  // rfind() gives −1 in the first line
  return fmt::format("{}:{}", 1 + std::ranges::count(before, '\n'),
                     before.size() - before.rfind('\n'));
}

// Builds the tree itself because nlohmann's DOM parser lets the last duplicate key win, and
// searches linearly for each key.
class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    Level& level = levels_.back();
    if (!level.keys.insert(value).second) {
      message_ = fmt::format("the key \"{}\" appears twice in one object", value);
      return false;
    }
    level.key = std::move(value);
    return true;
  }
  bool parse_error(size_t offset, const std::string&,
                   const nlohmann::detail::exception& error) override {
    offset_ = offset;
    message_ = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error …": keep what
    // follows the position.
    if (size_t colon = message_.find(": "); colon != std::string::npos)
      message_ = message_.substr(colon + 2);
    return false;
  }

  Json root;
  const std::string& message() const { return message_; }
  size_t offset() const { return offset_; }

 private:
  struct Level {
    Json value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  bool add(Json value) {
    if (levels_.empty()) {
      root = std::move(value);
      return true;
    }
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else {
      using Members = std::vector<std::pair<const std::string, Json>>;
      static_cast<Members&>(level.value.get_ref<Json::object_t&>())
          .emplace_back(std::move(level.key), std::move(value));
    }
    return true;
  }
  bool open(Json value) {
    if (levels_.size() >= kMaxDepth) {
      message_ = fmt::format("nested deeper than {} levels", kMaxDepth);
      return false;
    }
    levels_.push_back({std::move(value), {}, {}});
    return true;
  }
  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(value));
  }

  std::vector<Level> levels_;
  std::string message_;
  size_t offset_ = 0;
};

void write_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "Infinity" : "-Infinity";
  } else {
    // Shortest round-trip digits, laid out as Python's repr does (exponent form below 1e-4 and from
    // 1e16 on).
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    out += text;
  }
}

void write_value(std::string& out, const Json& value, int indent, int depth) {
  const auto newline = [&](int level) {
    if (indent >= 0) {
      out += '\n';
      out.append(static_cast<size_t>(indent) * level, ' ');
    }
  };
  const char* comma = indent >= 0 ? "," : ", ";
  if (value.is_object() || value.is_array()) {
    const bool is_object = value.is_object();
    out += is_object ? '{' : '[';
    bool first = true;
    for (auto item = value.begin(); item != value.end(); ++item) {
      if (!first) out += comma;
      first = false;
      newline(depth + 1);
      if (is_object) {
        out += python_json_string(item.key());
        out += ": ";
      }
      write_value(out, *item, indent, depth + 1);
    }
    if (!first) newline(depth);
    out += is_object ? '}' : ']';
  } else if (value.is_string()) {
    out += python_json_string(value.get_ref<const std::string&>());
  } else if (value.is_number_float()) {
    write_number(out, value.get<double>());
  } else {
    out += value.dump();
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& origin) {
  refuse_utf16(text, origin);
  // nlohmann takes a zero byte for the end of its input and would drop what follows.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw data_error({.error = "not valid JSON",
                      .where = fmt::format("{}:{}", origin, position(text, zero)),
                      .what = "a zero byte",
                      .fix = "remove it, or restore the file: a crash often leaves zero bytes"});
  }
  TreeBuilder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    const std::string where =
        builder.offset() > 0 ? fmt::format("{}:{}", origin, position(text, builder.offset() - 1))
                             : origin;
    throw data_error({.error = "not valid JSON",
                      .where = where,
                      .what = builder.message(),
                      .fix = "write one JSON document with distinct keys, as json.dumps() prints "
                             "it: double quotes, true, false and null, no NaN, no comma before ] "
                             "or } or at the end"});
  }
  return std::move(builder.root);
}

Json read_json_file(const std::string& path) { return parse_json(read_file(path), path); }

std::string python_json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
  return out;
}

std::string python_json(const Json& value, int indent) {
  std::string out;
  write_value(out, value, indent, 0);
  return out;
}

void escape_line_ends(std::string& json) {
  // And what turns a line: a terminal shows the text as it is.
  constexpr char32_t kEscaped[] = {0x85,   0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202B,
                                   0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069};
  for (const char32_t code : kEscaped) {
    std::string character;
    append_utf8(character, code);
    const std::string escape = fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    for (size_t at = json.find(character); at != json.npos; at = json.find(character, at))
      json.replace(at, character.size(), escape);
  }
}

std::string json_line(const Json& value) {
  std::string line = python_json(value);
  escape_line_ends(line);
  return line + "\n";
}

std::string show_json(const Json& value, size_t most) {
  return shorten_bytes(value.dump(-1, ' ', false, Json::error_handler_t::replace), most);
}

}  // namespace rematch
