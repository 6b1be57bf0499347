#include "model/checkpoint/safetensors_header.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "checkpoint/header_bytes.h"
#include "support/capture.h"

namespace rematch {
namespace {

using test::safetensors_bytes;

// The error (and numbers) of a damaged file.
std::string refusal(const std::string& bytes) {
  const UserError error =
      test::catch_user_error([&] { parse_safetensors_header(bytes, "x.safetensors"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  const Problem& problem = error.problems()[0];
  EXPECT_EQ(problem.where.rfind("x.safetensors", 0), 0u) << problem.where;
  EXPECT_FALSE(problem.what.empty());
  EXPECT_FALSE(problem.fix.empty());
  return problem.error + " | " + problem.where + " | " + problem.what;
}

TEST(SafetensorsHeader, ReadsEntriesInFileOrderWithMetadata) {
  const std::string text =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
      R"("a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}})";
  const SafetensorsHeader header = parse_safetensors_header(safetensors_bytes(text, 12), "x");
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0].name, "b");
  EXPECT_EQ(header.entries[0].begin_bytes, 4u);
  EXPECT_EQ(header.entries[1].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.data_begin_bytes, 8 + text.size());
}

TEST(SafetensorsHeader, AcceptsScalarsEmptyTensorsAndTrailingSpaces) {
  const std::string text =
      R"({"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"e":{"dtype":"F32","shape":[0,7],)"
      R"("data_offsets":[8,8]}}   )";
  EXPECT_EQ(parse_safetensors_header(safetensors_bytes(text, 8), "x").entries.size(), 2u);
  EXPECT_TRUE(parse_safetensors_header(safetensors_bytes("{}", 0), "x").entries.empty());
}

TEST(SafetensorsHeader, RefusesFilesThatAreCutOff) {
  EXPECT_NE(refusal("").find("0 bytes"), std::string::npos);
  EXPECT_NE(refusal("1234567").find("too short"), std::string::npos);
  const std::string whole =
      safetensors_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  EXPECT_NE(refusal(whole.substr(0, 30)).find("truncated inside its header"), std::string::npos);
  EXPECT_NE(refusal(whole.substr(0, whole.size() - 1)).find("tensors take 8 bytes; the file has 7"),
            std::string::npos);
}

TEST(SafetensorsHeader, RefusesAHugeHeaderBeforeReadingIt) {
  EXPECT_NE(refusal(std::string(8, '\xff')).find("too large"), std::string::npos);
  EXPECT_NE(refusal(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8)).find("100000001 bytes"),
            std::string::npos);
}

TEST(SafetensorsHeader, RefusesInvalidJsonAndOtherValues) {
  EXPECT_NE(refusal(safetensors_bytes("[1]", 0)).find("start with {"), std::string::npos);
  EXPECT_NE(refusal(safetensors_bytes(" {}", 0)).find("start with {"), std::string::npos);
  EXPECT_NE(refusal(safetensors_bytes("", 0)).find("start with {"), std::string::npos);
  EXPECT_NE(refusal(safetensors_bytes("{\"a\":", 0)).find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(safetensors_bytes("{}x", 0)).find("not valid JSON"), std::string::npos);
}

TEST(SafetensorsHeader, RefusesDuplicateNames) {
  const std::string entry = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_NE(refusal(safetensors_bytes("{" + entry + "," + entry + "}", 1)).find("appears twice"),
            std::string::npos);
}

TEST(SafetensorsHeader, RefusesOverlapsHolesAndStrayBytes) {
  const auto two = [](const std::string& a, const std::string& b, size_t data_bytes) {
    return refusal(safetensors_bytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                                         R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b +
                                         "}}",
                                     data_bytes));
  };
  EXPECT_NE(two("[0,4]", "[2,6]", 6).find("overlap"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[0,4]", 4).find("overlap"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[5,9]", 9).find("hole"), std::string::npos);
  EXPECT_NE(two("[4,8]", "[8,12]", 12).find("hole"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[4,8]", 9).find("belong to no tensor"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[4,8]", 9).find("8 bytes; the file has 9"), std::string::npos);
}

TEST(SafetensorsHeader, RefusesWrongMembersOfATensor) {
  const auto one = [](const std::string& members) {
    return refusal(safetensors_bytes("{\"a\":" + members + "}", 4));
  };
  EXPECT_NE(one("3").find("not an object"), std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F32","shape":[1]})").find("has no data_offsets"), std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F32","shape":[1],"offsets":[0,4]})").find("unknown key"),
            std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})").find("unknown dtype"),
            std::string::npos);
  EXPECT_NE(one(R"({"dtype":7,"shape":[1],"data_offsets":[0,4]})").find("unknown dtype"),
            std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})").find("not a list"),
            std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})")
                .find("shape has an invalid value"),
            std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})")
                .find("shape has an invalid value"),
            std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})").find("not two positions"),
            std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})").find("not two positions"),
            std::string::npos);
  EXPECT_NE(
      one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})").find("do not match its shape"),
      std::string::npos);
  EXPECT_NE(one(R"({"dtype":"F16","shape":[1],"data_offsets":[0,4]})").find("take 2 bytes"),
            std::string::npos);
}

TEST(SafetensorsHeader, RefusesShapesThatOverflow) {
  const auto one = [](const std::string& shape) {
    return refusal(safetensors_bytes(
        R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,0]}})", 0));
  };
  EXPECT_NE(one("[4294967296,4294967296]").find("too large"), std::string::npos);
  EXPECT_NE(one("[4611686018427387904,4]").find("too large"), std::string::npos);
  EXPECT_NE(one("[0,4294967296,4294967296]").find("too large"), std::string::npos);
  EXPECT_NE(one("[18446744073709551615]").find("invalid value"), std::string::npos);
}

TEST(SafetensorsHeader, RefusesMetadataThatIsNotText) {
  EXPECT_NE(refusal(safetensors_bytes(R"({"__metadata__":{"a":1}})", 0)).find("not a string"),
            std::string::npos);
  EXPECT_NE(refusal(safetensors_bytes(R"({"__metadata__":[]})", 0)).find("not an object"),
            std::string::npos);
}

TEST(SafetensorsHeader, WritesDtypeRanksDownwardsThenNamesPaddedToEight) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, dtype] : std::vector<std::pair<std::string, std::string>>{
           {"b", "BF16"}, {"a", "BF16"}, {"c", "I64"}, {"d", "BOOL"}, {"e", "F32"}}) {
    entries.push_back({name, find_safetensors_dtype(dtype), {2}, 0, 0});
  }
  sort_like_reference(entries);
  std::string order;
  for (const SafetensorsEntry& entry : entries) order += entry.name;
  EXPECT_EQ(order, "ceabd");
  EXPECT_EQ(write_safetensors_header(entries).size() % 8, 0u);
}

RC_GTEST_PROP(SafetensorsHeaderProperty, ReadsBackWhatItWrites, ()) {
  const std::vector<const char*> dtypes = {"F32", "BF16", "U8", "I64", "BOOL"};
  std::vector<SafetensorsEntry> entries;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    const auto shape = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 5));
    RC_PRE(shape.size() <= 6);
    const char* dtype = dtypes[static_cast<size_t>(*rc::gen::inRange(0, 5))];
    entries.push_back(
        {"t" + std::to_string(i) + "\n\"", find_safetensors_dtype(dtype), shape, 0, 0});
  }
  sort_like_reference(entries);
  const std::string header = write_safetensors_header(entries);
  const SafetensorsHeader read = parse_safetensors_header(
      header + std::string(entries.empty() ? 0 : entries.back().end_bytes, 'x'), "x");
  RC_ASSERT(read.entries.size() == entries.size());
  RC_ASSERT(read.data_begin_bytes == header.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    RC_ASSERT(read.entries[i].name == entries[i].name);
    RC_ASSERT(read.entries[i].shape == entries[i].shape);
    RC_ASSERT(read.entries[i].end_bytes == entries[i].end_bytes);
  }
}

RC_GTEST_PROP(SafetensorsHeaderProperty, OneFlippedByteNeverCrashes, ()) {
  std::string bytes = safetensors_bytes(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})",
      8);
  const auto position = *rc::gen::inRange<size_t>(0, bytes.size() - 8);
  bytes[position] = static_cast<char>(*rc::gen::inRange(0, 256));
  try {
    const SafetensorsHeader header = parse_safetensors_header(bytes, "x");
    for (const SafetensorsEntry& entry : header.entries)
      RC_ASSERT(header.data_begin_bytes + entry.end_bytes <= bytes.size());
  } catch (const UserError&) {
  }
}

}  // namespace
}  // namespace rematch
