#include "learn/estep/parse/json_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace rematch {
namespace {

using enum ParseStatus;

ParseStatus status_of(const std::string& text) { return read_json_object(text, false).status; }
// The status of an object whose only string value begins with `content` and breaks off there.
ParseStatus status_in_string(const std::string& content) {
  return status_of("{\"a\": \"" + content);
}
size_t num_entries(const std::string& text) {
  return read_json_object(text, false).top.items.size();
}
std::string text_of(const std::string& string_literal) {
  const JsonDocument document = read_json_object("{\"a\": " + string_literal + "}", false);
  EXPECT_EQ(document.status, kComplete) << string_literal;
  return document.top.items.empty() ? "" : document.top.items[0].text;
}
std::string repeat(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

TEST(ReadJsonObject, EmptyInputIsTruncated) {
  EXPECT_EQ(status_of(""), kTruncated);
  EXPECT_EQ(status_of(" \t\r\n"), kTruncated);
  EXPECT_EQ(status_of("{"), kTruncated);
  EXPECT_FALSE(read_json_object("  ", false).open_end.has_value());
}

TEST(ReadJsonObject, AllowsLeadingJsonWhiteSpaceOnly) {
  EXPECT_EQ(status_of(" \t\r\n{}"), kComplete);
  EXPECT_EQ(read_json_object("  {}", false).open_end, 3u);
  EXPECT_EQ(status_of("\f{}"), kMalformed);
  EXPECT_EQ(status_of("\v{}"), kMalformed);
  EXPECT_EQ(status_of("\xC2\xA0{}"), kMalformed);
  EXPECT_EQ(status_of("\xEF\xBB\xBF{}"), kMalformed);  // a byte order mark
}

TEST(ReadJsonObject, NeedsAnObjectOnTop) {
  for (const char* text : {"[", "[]", "\"a\"", "1", "true", "null", "x", "}"}) {
    EXPECT_EQ(status_of(text), kMalformed) << text;
    EXPECT_FALSE(read_json_object(text, false).open_end.has_value()) << text;
  }
}

TEST(ReadJsonObject, IgnoresWhatFollowsTheClosingBrace) {
  for (const char* tail : {"", " ", ",", "}", "x", "{}", "\x01", "\xFF"})
    EXPECT_EQ(status_of(std::string("{\"a\": 1}") + tail), kComplete) << tail;
  EXPECT_EQ(read_json_object("{}", true).status, kComplete);
}

TEST(ReadJsonObject, RefusesTrailingAndMissingCommas) {
  for (const char* text : {"{,", "{\"a\": 1,}", "{\"a\": 1,,", "{\"a\": [1,]}", "{\"a\": [,",
                           "{\"a\": 1 \"b\"", "{\"a\": [1 2", "{\"a\": \"x\" \"y\""}) {
    EXPECT_EQ(status_of(text), kMalformed) << text;
  }
}

TEST(ReadJsonObject, RefusesKeysThatAreNotStringsAndMissingColons) {
  for (const char* text :
       {"{a", "{1", "{'", "{\"a\" 1", "{\"a\"}", "{\"a\",", "{\"a\"::", "{[", "{{"})
    EXPECT_EQ(status_of(text), kMalformed) << text;
}

TEST(ReadJsonObject, RefusesMismatchedBrackets) {
  for (const char* text : {"{]", "{\"a\": [1}", "{\"a\": [}", "{\"a\": {]", "{\"a\": {\"b\": 1]"})
    EXPECT_EQ(status_of(text), kMalformed) << text;
}

TEST(ReadJsonObject, RefusesWhatOnlyLooksLikeJson) {
  for (const char* value :
       {"NaN",       "Infinity", "-Infinity", "nan",   "True",  "None", "'a'",   "undefined",
        "/* x */ 1", "+1",       ".5",        "-x",    "0x1",   "01",   "-01",   "00",
        "1.e5 ",     "1..2",     "1e+x",      "1e5.5", "1.5.",  "--1",  "truee", "nul,",
        "tru}",      "falsey",   "1a",        "1\"",   "true:", "1{"}) {
    EXPECT_EQ(status_of("{\"a\": " + std::string(value)), kMalformed) << value;
  }
}

TEST(ReadJsonObject, ReadsEveryFormOfNumberAndLiteral) {
  for (const char* value : {"0", "-0", "7", "-12", "1.5", "0.25", "1e5", "1E+5", "1e-5", "-1.5e300",
                            "1e9999", "12345678901234567890", "true", "false", "null"}) {
    EXPECT_EQ(status_of("{\"a\": " + std::string(value) + "}"), kComplete) << value;
  }
}

TEST(ReadJsonObject, CallsEveryBeginningOfAValueTruncated) {
  for (const char* value : {"",    "-",   "0",    "1",      "1.",      "1.5",  "1e", "1e+", "1e-",
                            "1e5", "t",   "tru",  "true",   "n",       "fals", "[",  "[1",  "[1,",
                            "{",   "{\"", "{\"b", "{\"b\"", "{\"b\":", "\"",   "\"x"}) {
    EXPECT_EQ(status_of("{\"a\":" + std::string(value)), kTruncated) << value;
    EXPECT_EQ(num_entries("{\"a\":" + std::string(value)), 0u) << value;
  }
}

TEST(ReadJsonObject, CompletesANumberOrLiteralAtItsDelimiterOnly) {
  for (const char* value : {"12", "-0.5e3", "true", "false", "null"}) {
    EXPECT_EQ(num_entries("{\"a\": " + std::string(value)), 0u) << value;
    for (const char* delimiter : {" ", "\t", "\n", "\r", ",", "}", "]"}) {
      const JsonDocument document =
          read_json_object("{\"a\": " + std::string(value) + delimiter, false);
      ASSERT_EQ(document.top.items.size(), 1u) << value << delimiter;
      EXPECT_EQ(document.top.items[0].end, 6 + std::string(value).size()) << value << delimiter;
      EXPECT_FALSE(document.entry_open);
    }
  }
  EXPECT_EQ(status_of("{\"a\": 1]"), kMalformed);  // complete all the same
}

TEST(ReadJsonObject, CompletesStringsArraysAndObjectsAtTheirClosingCharacter) {
  for (const char* value : {"\"x\"", "[]", "[1, 2]", "{}", "{\"b\": [{}]}"}) {
    const JsonDocument document = read_json_object("{\"a\": " + std::string(value), false);
    ASSERT_EQ(document.top.items.size(), 1u) << value;
    EXPECT_EQ(document.top.items[0].end, 6 + std::string(value).size());
    EXPECT_FALSE(document.entry_open);
    EXPECT_EQ(document.status, kTruncated);
  }
}

TEST(ReadJsonObject, KeepsAnEntryOpenFromItsOpeningQuoteToItsLastByte) {
  for (const char* text : {"{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\": [", "{\"a\": \"x",
                           "{\"a\": 1", "{\"a\": x", "{\"a\": 1, \"", "{\"a\" x"}) {
    EXPECT_TRUE(read_json_object(text, false).entry_open) << text;
  }
  for (const char* text :
       {"", "{", "{}", "{ ", "{x", "{\"a\": 1,", "{\"a\": 1, ", "{\"a\": 1,}", "{\"a\": \"x\"y"}) {
    EXPECT_FALSE(read_json_object(text, false).entry_open) << text;
  }
}

TEST(ReadJsonObject, RefusesRawControlCharactersInStrings) {
  for (int c = 0; c < 0x20; ++c)
    EXPECT_EQ(status_in_string(std::string(1, static_cast<char>(c))), kMalformed) << c;
  EXPECT_EQ(status_in_string("\x7F"), kTruncated);
}

TEST(ReadJsonObject, RefusesInvalidUtf8) {
  for (const char* bytes :
       {"\x80",          "\xBF",         "\xC0",         "\xC1",         "\xF5",
        "\xFF",          "\xC3\x28",     "\xC3\xC3",     "\xE0\x80",     "\xE0\x9F",
        "\xED\xA0",      "\xED\xBF",     "\xF0\x80",     "\xF0\x8F",     "\xF4\x90",
        "\xE2\x28",      "\xE2\x82\x28", "\xE2\x82\xC3", "\xF0\x9F\x28", "\xF0\x9F\x98\x28",
        "\xF0\x9F\x98\""}) {
    EXPECT_EQ(status_in_string(bytes), kMalformed) << bytes;
  }
}

TEST(ReadJsonObject, AcceptsTheLimitsOfUtf8) {
  for (const char* bytes : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                            "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(text_of("\"" + std::string(bytes) + "\""), bytes);
  }
}

TEST(ReadJsonObject, CallsACutOffCharacterTruncated) {
  for (const char* bytes : {"\xC3", "\xE0", "\xE0\xA0", "\xED", "\xED\x9F", "\xE2\x82", "\xF0",
                            "\xF0\x90", "\xF0\x9F\x98", "\xF4\x8F\xBF"}) {
    EXPECT_EQ(status_in_string(bytes), kTruncated) << bytes;
    EXPECT_EQ(status_of("{" + std::string(bytes)), kTruncated) << bytes;
    EXPECT_EQ(read_json_object("{\"a\": \"" + std::string(bytes), true).status, kMalformed)
        << bytes;
  }
  EXPECT_EQ(status_of("{\xC3\xA9"), kMalformed);
}

TEST(ReadJsonObject, UnescapesStrings) {
  EXPECT_EQ(text_of(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(text_of(R"("\u0041\u00e9\u20AC\ud83d\ude00\uD83D\uDE00")"), "Aé€😀😀");
  EXPECT_EQ(text_of(R"("\u0000")"), std::string(1, '\0'));
  EXPECT_EQ(text_of(R"("\ud7ff\ue000\uffff")"), "\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF");
}

TEST(ReadJsonObject, RefusesUnknownEscapes) {
  for (const char* escape : {"\\x", "\\a", "\\'", "\\0", "\\U", "\\ ", "\\\n", "\\ug", "\\u00g",
                             "\\u 0", "\\u-1", "\\u\"", "\\u12\"", "\\v"}) {
    EXPECT_EQ(status_in_string(escape), kMalformed) << escape;
  }
}

TEST(ReadJsonObject, RefusesLoneSurrogates) {
  for (const char* escape :
       {"\\udc00", "\\uDFFF", "\\ud800\"", "\\ud800x", "\\ud800\\n", "\\ud800\\\\",
        "\\ud800\\u0041", "\\ud800\\ud800", "\\udbff\\ue000", "\\ud83d😀"}) {
    EXPECT_EQ(status_in_string(escape), kMalformed) << escape;
  }
}

TEST(ReadJsonObject, CallsACutOffEscapeTruncated) {
  for (const char* escape : {"\\", "\\u", "\\u0", "\\u00", "\\u004", "\\ud83d", "\\ud83d\\",
                             "\\ud83d\\u", "\\ud83d\\ude", "\\ud83d\\ude0"}) {
    EXPECT_EQ(status_in_string(escape), kTruncated) << escape;
  }
}

TEST(ReadJsonObject, CountsDepthFromTheTopObjectScalarsIncluded) {
  // 127 arrays hold a scalar at depth 128; one more array puts it at 129.
  EXPECT_EQ(status_of("{\"a\": " + repeat("[", 127) + "1" + repeat("]", 127) + "}"), kComplete);
  EXPECT_EQ(status_of("{\"a\": " + repeat("[", 128) + repeat("]", 128) + "}"), kComplete);
  EXPECT_EQ(status_of("{\"a\": " + repeat("[", 128) + "1" + repeat("]", 128) + "}"), kMalformed);
  EXPECT_EQ(status_of("{\"a\": " + repeat("[", 128) + "\""), kMalformed);
  EXPECT_EQ(status_of("{\"a\": " + repeat("[", 128)), kTruncated);
  EXPECT_EQ(status_of("{\"a\": " + repeat("[", 129)), kMalformed);
  EXPECT_EQ(status_of(repeat("{\"a\": ", 129) + "{"), kMalformed);
  EXPECT_EQ(status_of(repeat("{\"a\":", 128) + "1" + repeat("}", 128)), kComplete);
  EXPECT_EQ(status_of(repeat("{\"a\":", 129) + "1" + repeat("}", 129)), kMalformed);
  EXPECT_EQ(status_of("{\"a\": " + repeat("[", 100000)), kMalformed);
}

TEST(ReadJsonObject, KeepsDuplicateKeysInOrder) {
  const JsonDocument document =
      read_json_object(R"({"a": 1, "b": {"c": 1, "c": 2}, "a": "x"})", false);
  EXPECT_EQ(document.top.keys, (std::vector<std::string>{"a", "b", "a"}));
  EXPECT_EQ(document.top.items[1].keys, (std::vector<std::string>{"c", "c"}));
}

TEST(ReadJsonObject, TreatsAViolationBehindTheLastByteAsMalformed) {
  for (const char* text : {"", "{", "{\"a\": 1", "{\"a\": \"x", "{\"a\": \"\\u00"})
    EXPECT_EQ(read_json_object(text, true).status, kMalformed) << text;
  EXPECT_EQ(read_json_object("{\"a\": 1", true).top.items.size(), 0u);
}

}  // namespace rematch
