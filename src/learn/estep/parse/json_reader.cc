#include "learn/estep/parse/json_reader.h"

#include <cstdint>
#include <utility>

#include "base/text.h"

namespace rematch {
namespace {

bool is_space(unsigned char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool is_delimiter(unsigned char c) { return is_space(c) || c == ',' || c == '}' || c == ']'; }

bool is_first_of_value(unsigned char c) {
  return is_digit(c) ||
         std::string_view("\"{[tfn-").find(static_cast<char>(c)) != std::string_view::npos;
}

int hex_value(unsigned char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Recursive descent. Every read_* returns false when reading must stop; status_ has the reason.
class Reader {
 public:
  Reader(std::string_view bytes, bool end_is_violation, size_t begin = 0)
      : bytes_(bytes), end_is_violation_(end_is_violation), at_(begin) {}

  JsonDocument read_top_object() {
    JsonDocument document;
    const auto read = [&] {
      if (!skip_space()) return false;
      if (peek() != '{') return refuse_byte();
      document.open_end = at_ + 1;
      return read_object(document.top, 0, document.entry_open);
    };
    document.status = read() ? ParseStatus::kComplete : status_;
    return document;
  }

  JsonDocument read_top_list() {
    JsonDocument document;
    document.top.kind = JsonNode::Kind::kArray;
    const auto read = [&] {
      if (!skip_space()) return false;
      if (peek() == '[') return read_array(document.top, 0, document.entry_open);
      if (peek() != '{') return refuse_byte();
      return read_item(document.top, 0, document.entry_open);
    };
    document.status = read() ? ParseStatus::kComplete : status_;
    return document;
  }

 private:
  bool at_end() const { return at_ >= bytes_.size(); }
  unsigned char peek() const { return static_cast<unsigned char>(bytes_[at_]); }

  bool stop_at_end() {
    status_ = end_is_violation_ ? ParseStatus::kMalformed : ParseStatus::kTruncated;
    return false;
  }
  bool refuse() {
    status_ = ParseStatus::kMalformed;
    return false;
  }
  // Refuses the byte at at_. A character cut off by the end of the input is still a truncation.
  bool refuse_byte() {
    if (peek() >= 0x80 && !skip_utf8()) return false;
    return refuse();
  }

  // Moves to the next byte that is not whitespace. False at the end.
  bool skip_space() {
    while (!at_end() && is_space(peek())) ++at_;
    return !at_end() || stop_at_end();
  }

  // Moves past one well-formed multi-byte sequence (Unicode table 3-7).
  bool skip_utf8() {
    const unsigned char lead = peek();
    int num_more = 0;
    unsigned char low = 0x80, high = 0xBF;  // bounds of the second byte
    if (lead >= 0xC2 && lead <= 0xDF) {
      num_more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      num_more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      num_more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return refuse();
    }
    ++at_;
    for (; num_more > 0; --num_more, ++at_, low = 0x80, high = 0xBF) {
      if (at_end()) return stop_at_end();
      if (peek() < low || peek() > high) return refuse();
    }
    return true;
  }

  bool read_value(JsonNode& node, int depth) {
    if (depth > kMaxJsonDepth) return refuse();
    node.begin = at_;
    bool entry_open = false;
    switch (peek()) {
      case '"': node.kind = JsonNode::Kind::kString; return read_string(node.text) && close(node);
      case '{': return read_object(node, depth, entry_open);
      case '[': return read_array(node, depth, entry_open);
      case 't': return read_literal("true") && close(node);
      case 'f': return read_literal("false") && close(node);
      case 'n': return read_literal("null") && close(node);
      default: return read_number() && close(node);
    }
  }

  bool close(JsonNode& node) {
    node.end = at_;
    return true;
  }

  // Reads the parts between two brackets, divided by commas, with `read_part`.
  template <typename ReadPart>
  bool read_parts(JsonNode& node, unsigned char closing, const ReadPart& read_part) {
    ++at_;
    for (bool first = true;; first = false) {
      if (!skip_space()) return false;
      if (peek() == closing) break;
      if (!first) {
        if (peek() != ',') return refuse_byte();
        ++at_;
        if (!skip_space()) return false;
      }
      if (!read_part()) return false;
    }
    ++at_;
    return close(node);
  }

  // @param member_open  set while a member's opening quote was read and its value is not complete
  bool read_object(JsonNode& node, int depth, bool& member_open) {
    node.kind = JsonNode::Kind::kObject;
    return read_parts(node, '}', [&] {
      if (peek() != '"') return refuse_byte();
      member_open = true;
      std::string key;
      if (!read_string(key) || !skip_space()) return false;
      if (peek() != ':') return refuse_byte();
      ++at_;
      if (!skip_space()) return false;
      JsonNode value;
      if (!read_value(value, depth + 1)) return false;
      node.keys.push_back(std::move(key));
      node.items.push_back(std::move(value));
      member_open = false;
      return true;
    });
  }

  // @param item_open  set while an item's first byte was read and the item is not complete
  bool read_array(JsonNode& node, int depth, bool& item_open) {
    node.kind = JsonNode::Kind::kArray;
    return read_parts(node, ']', [&] { return read_item(node, depth + 1, item_open); });
  }

  bool read_item(JsonNode& array, int depth, bool& item_open) {
    item_open = is_first_of_value(peek());
    JsonNode item;
    if (!read_value(item, depth)) return false;
    array.items.push_back(std::move(item));
    item_open = false;
    return true;
  }

  bool read_string(std::string& text) {
    ++at_;
    while (true) {
      if (at_end()) return stop_at_end();
      const unsigned char c = peek();
      if (c == '"') break;
      if (c < 0x20) return refuse();
      if (c == '\\') {
        if (!read_escape(text)) return false;
        continue;
      }
      const size_t start = at_;
      if (c < 0x80) {
        ++at_;
      } else if (!skip_utf8()) {
        return false;
      }
      text.append(bytes_.substr(start, at_ - start));
    }
    ++at_;
    return true;
  }

  bool read_escape(std::string& text) {
    ++at_;
    if (at_end()) return stop_at_end();
    const unsigned char c = peek();
    switch (c) {
      case '"':
      case '\\':
      case '/': text += static_cast<char>(c); break;
      case 'b': text += '\b'; break;
      case 'f': text += '\f'; break;
      case 'n': text += '\n'; break;
      case 'r': text += '\r'; break;
      case 't': text += '\t'; break;
      case 'u': return read_code_point(text);
      default: return refuse_byte();
    }
    ++at_;
    return true;
  }

  // \uXXXX, or two of them that form a surrogate pair; at_ is on the 'u'.
  bool read_code_point(std::string& text) {
    uint32_t unit = 0;
    if (!read_code_unit(unit)) return false;
    if (unit >= 0xDC00 && unit <= 0xDFFF) return refuse();
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      for (const char expected : {'\\', 'u'}) {
        if (at_end()) return stop_at_end();
        if (bytes_[at_] != expected) return refuse_byte();
        if (expected == '\\') ++at_;
      }
      uint32_t low = 0;
      if (!read_code_unit(low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return refuse();
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(text, unit);
    return true;
  }

  bool read_code_unit(uint32_t& unit) {
    ++at_;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_end()) return stop_at_end();
      const int digit = hex_value(peek());
      if (digit < 0) return refuse_byte();
      unit = unit * 16 + static_cast<uint32_t>(digit);
    }
    return true;
  }

  bool read_literal(std::string_view name) {
    for (const char expected : name) {
      if (at_end()) return stop_at_end();
      if (bytes_[at_] != expected) return refuse_byte();
      ++at_;
    }
    return need_delimiter();
  }

  // A number or literal is complete only at the delimiter after it: 12 may still become 123.
  bool need_delimiter() {
    if (at_end()) return stop_at_end();
    return is_delimiter(peek()) || refuse_byte();
  }

  bool read_number() {
    if (peek() == '-') {
      ++at_;
      if (at_end()) return stop_at_end();
    }
    if (peek() == '0') {
      ++at_;
    } else if (!read_digits()) {
      return false;
    }
    if (!at_end() && peek() == '.') {
      ++at_;
      if (!read_digits()) return false;
    }
    if (!at_end() && (peek() == 'e' || peek() == 'E')) {
      ++at_;
      if (!at_end() && (peek() == '+' || peek() == '-')) ++at_;
      if (!read_digits()) return false;
    }
    return need_delimiter();
  }

  bool read_digits() {
    if (at_end()) return stop_at_end();
    if (!is_digit(peek())) return refuse_byte();
    while (!at_end() && is_digit(peek())) ++at_;
    return true;
  }

  std::string_view bytes_;
  bool end_is_violation_;
  size_t at_;
  ParseStatus status_ = ParseStatus::kMalformed;
};

}  // namespace

JsonDocument read_json_object(std::string_view bytes, bool end_is_violation) {
  return Reader(bytes, end_is_violation).read_top_object();
}

JsonDocument read_json_list(std::string_view bytes, bool end_is_violation, size_t begin) {
  return Reader(bytes, end_is_violation, begin).read_top_list();
}

}  // namespace rematch
