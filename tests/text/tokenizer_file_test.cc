#include "model/text/tokenizer_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/text/byte_level.h"
#include "model/text/split_pattern.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

Json original() {
  static const Json file =
      read_json_file(test::source_path("tests/golden/tokenizer/tokenizer.json"));
  return file;
}

Problem problem_of(const std::string& content) {
  test::TempDir dir;
  const std::string path = dir.write("tokenizer.json", content);
  const UserError error = test::catch_user_error([&] { Tokenizer::load(path); });
  EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
  const Problem problem = error.problems().front();
  EXPECT_FALSE(problem.where.empty() || problem.what.empty() || problem.fix.empty());
  return problem;
}

// The error of the golden tokenizer after a change at a JSON pointer.
std::string error_after(const std::string& pointer, const Json& value) {
  Json file = original();
  file[Json::json_pointer(pointer)] = value;
  return problem_of(file.dump()).error;
}

std::shared_ptr<const Tokenizer> load_changed(const std::string& pointer, const Json& value) {
  Json file = original();
  file[Json::json_pointer(pointer)] = value;
  test::TempDir dir;
  return Tokenizer::load(dir.write("tokenizer.json", file.dump()));
}

void expect_names(const std::string& error, const std::string& name) {
  EXPECT_NE(error.find(name), std::string::npos) << error;
}

}  // namespace

TEST(TokenizerFile, RefusesPartsThatAreNotImplementedByName) {
  expect_names(error_after("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}}),
               "Metaspace");
  expect_names(error_after("/pre_tokenizer/pretokenizers/0", {{"type", "Digits"}}), "Digits");
  expect_names(error_after("/pre_tokenizer", nullptr), "no pre-tokenizer");
  expect_names(error_after("/pre_tokenizer/pretokenizers", Json::array()), "empty pre-tokenizer");
  expect_names(error_after("/pre_tokenizer/pretokenizers/0/behavior", "Removed"),
               "behavior \"Removed\"");
  expect_names(error_after("/pre_tokenizer/pretokenizers/0/invert", true), "invert");
  expect_names(error_after("/pre_tokenizer/pretokenizers/1/use_regex", true), "use_regex");
  expect_names(error_after("/pre_tokenizer/pretokenizers/1/add_prefix_space", true),
               "add_prefix_space");
  expect_names(error_after("/normalizer", {{"type", "NFKC"}}), "NFKC");
  expect_names(error_after("/normalizer",
                           {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}}),
               "Lowercase");
  expect_names(error_after("/decoder", {{"type", "WordPiece"}}), "WordPiece");
  expect_names(error_after("/post_processor", {{"type", "OtherProcessing"}}), "OtherProcessing");
  expect_names(error_after("/model/type", "Unigram"), "Unigram");
  expect_names(error_after("/model/dropout", 0.1), "dropout");
  expect_names(error_after("/model/unk_token", "<unk>"), "unk_token");
  expect_names(error_after("/model/byte_fallback", true), "byte_fallback");
  expect_names(error_after("/model/ignore_merges", true), "ignore_merges");
  expect_names(error_after("/model/fuse_unk", true), "fuse_unk");
  expect_names(error_after("/model/continuing_subword_prefix", "##"), "continuing_subword_prefix");
  expect_names(error_after("/model/end_of_word_suffix", "</w>"), "end_of_word_suffix");
}

TEST(TokenizerFile, RefusesDamagedPostProcessors) {
  const Json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
             token = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  expect_names(error_after("/post_processor", Json::object()), "type");
  expect_names(error_after("/post_processor", {{"type", "TemplateProcessing"}}), "single");
  expect_names(error_after("/post_processor",
                           {{"type", "TemplateProcessing"}, {"single", {token, sequence}}}),
               "<s>");
  expect_names(error_after("/post_processor", {{"type", "TemplateProcessing"}, {"single", {5}}}),
               "single");
  expect_names(error_after("/post_processor",
                           {{"type", "BertProcessing"}, {"cls", {"a", 1}}, {"sep", {"b", -1}}}),
               "sep");
  expect_names(
      error_after("/post_processor", {{"type", "Sequence"}, {"processors", {{{"type", "Odd"}}}}}),
      "Odd");
}

TEST(TokenizerFile, NoErrorAdvisesToUseTheFileThatWasGiven) {
  for (const auto& [pointer, value] : std::vector<std::pair<std::string, Json>>{
           {"/pre_tokenizer", nullptr},
           {"/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a"},
           {"/pre_tokenizer/pretokenizers/0/pattern/Regex", ""},
           {"/post_processor", {{"type", "Odd"}}},
           {"/post_processor", 5},
           {"/model/merges/0", 5},
           {"/added_tokens/0/id", 3},
           {"/model/byte_fallback", true}}) {
    Json file = original();
    file[Json::json_pointer(pointer)] = value;
    EXPECT_EQ(problem_of(file.dump()).fix.find("came with the model"), std::string::npos)
        << pointer;
  }
}

TEST(TokenizerFile, RefusesPatternsThatAreNotImplementedByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"^a", "anchor ^"},      {"a$", "anchor $"},       {"\\w+", "\\w"},
      {"\\b", "\\b"},          {"\\p{Han}", "\\p{Han}"}, {"[[a]b]", "class inside"},
      {"[a&&b]", "&&"},        {"(?m:a)", "(?m"},        {"(*ACCEPT)", "(*"},
      {"a{2,3}+", "}+"},       {"a{,3}", "brace"},       {"[\\P{L}]", "\\P{"},
      {"\\pL", "\\p without"}, {"[a", "not closed"},     {"\\x4", "\\x"},
      {"\\1", "\\1"},          {"(?<name>a)", "(?<"},    {"[]a]", "]"}};
  for (const auto& [pattern, name] : cases)
    expect_names(error_after("/pre_tokenizer/pretokenizers/0/pattern/Regex", pattern), name);
  expect_names(error_after("/pre_tokenizer/pretokenizers/0/pattern/Regex", "a*"), "empty text");
  expect_names(error_after("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a"),
               "not a regular expression");
  expect_names(error_after("/pre_tokenizer/pretokenizers/0/pattern/Regex", std::string(5000, 'a')),
               "too long");
  expect_names(error_after("/pre_tokenizer/pretokenizers/0/pattern", Json::object()), "no pattern");
}

// As the reference's engine reads it: a brace that begins no count is a character.
TEST(TokenizerFile, TakesABraceWithoutACountForItself) {
  Json file = original();
  file[Json::json_pointer("/pre_tokenizer/pretokenizers/0/pattern/Regex")] = "p{L}|[^p]+|p";
  test::TempDir dir;
  const auto tokenizer = Tokenizer::load(dir.write("tokenizer.json", file.dump()));
  const std::string text = "xp{L}p{x";
  EXPECT_EQ(tokenizer->decode_bytes(tokenizer->encode(text)), text);
}

TEST(TokenizerFile, RefusesDamagedVocabularies) {
  expect_names(error_after("/model/vocab", Json::object()), "vocabulary");
  expect_names(error_after("/model/vocab/a", "x"), "no valid id");
  expect_names(error_after("/model/vocab/a", -1), "no valid id");
  expect_names(error_after("/model/vocab/a", 2000000000), "no valid id");
  expect_names(error_after("/model/vocab/a", 0), "share the id 0");
  expect_names(error_after("/model/merges/0", "a b c"), "not a pair");
  expect_names(error_after("/model/merges/0", 5), "not a pair");
  expect_names(error_after("/model/merges/0", {"a", "zzz"}), "zzz");
  expect_names(error_after("/model/merges", nullptr), "not a list");
  expect_names(error_after("/model", nullptr), "no model");
  expect_names(error_after("/added_tokens/0/content", ""), "no content");
  expect_names(error_after("/added_tokens/0/id", 3), "share the id 3");
  expect_names(error_after("/added_tokens/1/content", "<|endoftext|>"), "appears twice");
  expect_names(error_after("/added_tokens/0/content", "a"), "two ids");
  expect_names(error_after("/added_tokens", 5), "not a list");
  Json file = original();
  file["model"]["vocab"].erase("a");
  expect_names(problem_of(file.dump()).error, "0x61");
}

TEST(TokenizerFile, RefusesWhatIsNoTokenizer) {
  for (const char* content :
       {"", "{", "[]", "5", "{}", "{\"model\": {}}", "\xff\xfe", "{\"added_tokens\": [{}]}"})
    problem_of(content);
  test::TempDir dir;
  const auto error = [&] { return test::catch_user_error([&] { Tokenizer::load(dir.path()); }); };
  EXPECT_EQ(error().kind(), ErrorKind::kConfig);
  expect_names(error().problems().front().what, "no tokenizer");
  dir.write("config.json", R"({"model_type": "llama"})");
  dir.write("tokenizer.json", "{}");
  expect_names(error().problems().front().what, "llama");
}

TEST(TokenizerFile, TakesOtherSpellingsOfTheSame) {
  // Merges as strings, no normaliser, a sequence of one, a literal split, settings of the last
  // caller.
  const auto plain = load_changed("/normalizer", nullptr);
  EXPECT_NE(plain->encode("e\u0301"), plain->encode("\u00e9"));
  const auto nested =
      load_changed("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}});
  EXPECT_EQ(nested->encode("e\u0301"), nested->encode("\u00e9"));
  const auto literal = load_changed("/pre_tokenizer/pretokenizers/0/pattern", {{"String", "\","}});
  EXPECT_EQ(literal->decode_bytes(literal->encode("a\",b")), "a\",b");
  const auto truncated = load_changed("/truncation", {{"max_length", 1}});
  EXPECT_EQ(truncated->encode("abc").size(), 3u);
}

// Acceptance (f) of Qwen3.5: marks belong to letters, in Thai, Hindi, Arabic and decomposed
// Vietnamese. The class names the split pattern.
TEST(TokenizerFile, CombiningMarksAreSplitAsTheClassSays) {
  const std::string golden = test::source_path("tests/golden/text_marks");
  test::TempDir dir;
  for (const char* name : {"vocab.json", "merges.txt"})
    dir.write(name, read_file(golden + "/" + name));
  dir.write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  const auto marks = Tokenizer::load(golden), other = Tokenizer::load(dir.path());
  int num_rows = 0, num_different = 0;
  for (const std::string& line : split(read_file(golden + "/strings.jsonl"), '\n')) {
    if (line.empty()) continue;
    const Json row = Json::parse(line);
    const auto text = row["text"].get<std::string>();
    const auto wanted = row["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(marks->encode(text), wanted) << text;
    num_different += other->encode(text) == wanted ? 0 : 1;
    ++num_rows;
  }
  EXPECT_EQ(num_rows, 315);
  EXPECT_GT(num_different, 50);
}

TEST(TokenizerFile, FallsBackToVocabAndMerges) {
  const Json file = original();
  test::TempDir dir;
  dir.write("vocab.json", file["model"]["vocab"].dump());
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : file["model"]["merges"])
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  dir.write("merges.txt", merges);
  Json config = {{"tokenizer_class", "Qwen2Tokenizer"}, {"added_tokens_decoder", Json::object()}};
  for (Json token : file["added_tokens"]) {
    const std::string id = token["id"].dump();
    token.erase("id");
    config["added_tokens_decoder"][id] = token;
  }
  dir.write("tokenizer_config.json", config.dump());
  const auto parts = Tokenizer::load(dir.path());
  const auto whole = Tokenizer::load(test::source_path("tests/golden/tokenizer"));
  for (const std::string text : {"{\"object_1\": {\"desc\": \"\u00e9t\u00e9\"}}",
                                 "<|im_start|>user\n12  34<|coord_999|><|im_end|>\n"}) {
    EXPECT_EQ(parts->encode(text), whole->encode(text));
  }
  EXPECT_EQ(parts->num_ids(), whole->num_ids());
  config["tokenizer_class"] = "LlamaTokenizer";
  dir.write("tokenizer_config.json", config.dump());
  expect_names(test::catch_user_error([&] { Tokenizer::load(dir.path()); }).what(),
               "LlamaTokenizer");
}

TEST(TokenizerFile, StopsAPatternThatNeverEnds) {
  const auto tokenizer = load_changed("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a+)+[bc]");
  const UserError error =
      test::catch_user_error([&] { tokenizer->encode(std::string(5000, 'a')); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
}

TEST(ByteLevel, SpellsEveryByteAndBack) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    EXPECT_EQ(entry_to_bytes(bytes_to_entry(bytes)), bytes);
  }
  EXPECT_EQ(bytes_to_entry(" \n"), "\u0120\u010a");
  EXPECT_EQ(entry_to_bytes("\u6f22"), "\u6f22");  // outside the alphabet
}

}  // namespace rematch
