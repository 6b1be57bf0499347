#include <gtest/gtest.h>

#include "program/config/node.h"
#include "support/small_stack.h"

namespace rematch {
namespace {

struct Read {
  Node root;
  std::vector<Problem> problems;
};

Read read(const std::string& text, const YamlLimits& limits = {}) {
  Read result;
  result.root = parse_yaml(text, "f.yaml", true, result.problems, limits);
  return result;
}

/// The one problem of a document.
Problem problem_of(const std::string& text, const YamlLimits& limits = {}) {
  const Read result = read(text, limits);
  EXPECT_EQ(result.problems.size(), 1u) << text;
  return result.problems.empty() ? Problem{} : result.problems.front();
}

const Node& at(const Node& node, const std::string& key) {
  const Node* found = node.find(key);
  EXPECT_NE(found, nullptr) << key;
  static const Node none;
  return found ? *found : none;
}

}  // namespace

TEST(ParseYaml, RemembersWhereEveryKeyAndValueStands) {
  const Read result = read("a: 1\nb:\n  - x\n  - {c: \"2\"}\n");
  ASSERT_TRUE(result.problems.empty());
  EXPECT_EQ(at(result.root, "a").origin.text(), "f.yaml:1:4");
  EXPECT_EQ(result.root.members[1].key_origin.text(), "f.yaml:2:1");
  EXPECT_EQ(at(result.root, "b").items[0].origin.text(), "f.yaml:3:5");
  EXPECT_EQ(at(at(result.root, "b").items[1], "c").origin.text(), "f.yaml:4:9");
}

TEST(ParseYaml, GuessesNothingAndRemembersQuotes) {
  const Read result =
      read("a: no\nb: \"true\"\nc: '1'\nd: |\n  5\ne: ~\nf:\ng: null\nh: !!str 7\ni: 0x10\n");
  ASSERT_TRUE(result.problems.empty());
  EXPECT_EQ(at(result.root, "a").scalar, "no");
  EXPECT_FALSE(at(result.root, "a").quoted);
  for (const char* key : {"b", "c", "d", "h"}) EXPECT_TRUE(at(result.root, key).quoted) << key;
  for (const char* key : {"e", "f", "g"}) EXPECT_TRUE(at(result.root, key).is_null()) << key;
  EXPECT_EQ(at(result.root, "i").scalar, "0x10");
}

TEST(ParseYaml, ReportsEveryDuplicateKeyAtItsPlace) {
  const Read result = read("a: 1\nb: 2\na: 3\nc: {x: 1, x: 2}\n");
  ASSERT_EQ(result.problems.size(), 2u);
  EXPECT_EQ(result.problems[0].error, "duplicate key `a`");
  EXPECT_EQ(result.problems[0].where, "f.yaml:3:1");
  EXPECT_EQ(result.problems[0].what, "first written at f.yaml:1:1");
  EXPECT_EQ(result.problems[1].where, "f.yaml:4:11");
}

TEST(ParseYaml, ExpandsAliases) {
  const Read result = read("base: &b {x: 1, y: [2]}\nother: *b\n");
  ASSERT_TRUE(result.problems.empty());
  EXPECT_EQ(at(at(result.root, "other"), "x").scalar, "1");
  EXPECT_EQ(at(at(result.root, "other"), "y").items.size(), 1u);
}

TEST(ParseYaml, MergeKeysFillWhatIsNotWritten) {
  const Read result = read("p: &p {x: 1, y: 2}\nq: &q {y: 3, z: 4}\nr:\n  y: 9\n  <<: [*p, *q]\n");
  ASSERT_TRUE(result.problems.empty());
  const Node& r = at(result.root, "r");
  EXPECT_EQ(at(r, "y").scalar, "9");
  EXPECT_EQ(at(r, "x").scalar, "1");
  EXPECT_EQ(at(r, "z").scalar, "4");
  EXPECT_EQ(r.members.size(), 3u);
}

TEST(ParseYaml, TheFirstMappingOfAMergeListWins) {
  const Read result = read("p: &p {y: 2}\nq: &q {y: 3}\nr:\n  <<: [*p, *q]\n");
  EXPECT_EQ(at(at(result.root, "r"), "y").scalar, "2");
}

TEST(ParseYaml, RefusesMergeKeysOfSomethingElse) {
  EXPECT_EQ(problem_of("a:\n  <<: 5\n").error, "`<<` takes a mapping or a list of mappings");
  EXPECT_EQ(problem_of("a:\n  <<: [5]\n").where, "f.yaml:2:7");
}

TEST(ParseYaml, RefusesAnAliasToItself) {
  EXPECT_EQ(problem_of("a: &a [1, *a]\n").error, "an alias refers to itself");
  EXPECT_EQ(problem_of("a: &a {b: *a}\n").where, "f.yaml:1:4") << "of the anchor";
}

TEST(ParseYaml, RefusesAnAliasWithoutAnchor) {
  EXPECT_EQ(problem_of("a: *missing\n").error, "not valid YAML");
}

TEST(ParseYaml, StopsAnAliasBombEarly) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string previous = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j ? ", " : "") + previous;
    bomb += "]\n";
  }
  EXPECT_EQ(problem_of(bomb).error, "the configuration is too large");
}

TEST(ParseYaml, StopsDeepNesting) {
  EXPECT_EQ(problem_of(std::string(200, '[') + std::string(200, ']')).error, "nested too deeply");
  // whichever limit strikes first, it is one problem and no crash
  problem_of(std::string(100000, '['));
}

TEST(ParseYaml, StopsNestingThatAliasesBuildUp) {
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i < 80; ++i)
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
            "]\n";
  EXPECT_EQ(problem_of(text).error, "nested too deeply");
}

TEST(ParseYaml, RefusesHugeFiles) {
  EXPECT_EQ(problem_of(std::string(2 << 20, 'x')).error, "the configuration is too large");
  EXPECT_EQ(problem_of("a: [1, 2, 3, 4, 5, 6]\n", {.max_nodes = 5}).error,
            "the configuration is too large");
}

TEST(ParseYaml, RefusesASecondDocument) {
  const Problem problem = problem_of("a: 1\n---\nb: 2\n");
  EXPECT_EQ(problem.error, "more than one YAML document");
}

TEST(ParseYaml, RefusesTagsOfOthers) {
  EXPECT_NE(problem_of("a: !!python/object:os.system x\n").error.find("YAML tag"),
            std::string::npos);
  EXPECT_TRUE(read("a: !!int 5\n").problems.empty());
}

TEST(ParseYaml, RefusesKeysThatAreNotText) {
  EXPECT_EQ(problem_of("? [a, b]\n: 1\n").error, "a key must be plain text");
  EXPECT_EQ(problem_of("? {a: b}\n: 1\n").error, "a key must be plain text");
  EXPECT_EQ(problem_of("~: 1\n").error, "a key must be plain text");
}

TEST(ParseYaml, SaysWhereTheSyntaxIsWrong) {
  const Problem problem = problem_of("a: 1\nb: [1, 2\nc: 3\n");
  EXPECT_EQ(problem.error, "not valid YAML");
  EXPECT_EQ(problem.where.rfind("f.yaml:", 0), 0u) << problem.where;
  EXPECT_EQ(problem_of("a: b: c\n").where, "f.yaml:1:5");
  EXPECT_EQ(problem_of("a:\n\tb: 1\n").where.rfind("f.yaml:2", 0), 0u);
}

TEST(ParseYaml, NamesATabAtTheStartOfALine) {
  std::vector<Problem> problems;
  parse_yaml("training:\n\tmax_steps: 3\n  seed: 1\n", "a.yaml", true, problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "a.yaml:2");
  EXPECT_NE(problems[0].what.find("a tab"), std::string::npos);
  problems.clear();
  parse_yaml("training:\n  max_steps: 3\t# three\n", "a.yaml", true, problems);
  EXPECT_TRUE(problems.empty());
}

TEST(ParseYaml, RefusesBytesThatAreNoText) {
  EXPECT_EQ(problem_of("a: \xff\xfe\n").error, "the configuration is not UTF-8 text");
  EXPECT_EQ(problem_of(std::string("a: b\0c\n", 7)).error,
            "a control character in the configuration");
}

TEST(ParseYaml, RefusesZeroBytesInText) {
  EXPECT_EQ(problem_of("a: \"x\\0y\"\n").error, "a zero byte in a string");
}

TEST(ParseYaml, SurvivesEveryPrefixOfADocument) {
  const std::string text =
      "a: &x {b: [1, 'two', \"three\"], c: |\n  text\n  more\n}\nd:\n  <<: *x\n  ? k\n  : v\n# "
      "end\n";
  for (size_t length = 0; length <= text.size(); ++length) read(text.substr(0, length));
}

TEST(IsOff, IsWhatMeansNotUsed) {
  for (const char* text : {"~", "false", "False", "0", "0.0", "\"\"", "[]", "{}",
                           "{enabled: false, weight: 3}", "{a: null, b: false}"}) {
    EXPECT_TRUE(is_off(read(text).root)) << text;
  }
  for (const char* text :
       {"true", "1", "x", "[0]", "{enabled: true}", "{a: null, b: 1}", "\"false\"", "-1", "0.5"}) {
    EXPECT_FALSE(is_off(read(text).root)) << text;
  }
}

TEST(Brief, IsOneShortLine) {
  EXPECT_EQ(shorten(read("{a: [1, \"x\"], b: ~}").root), "{a: [1, \"x\"], b: null}");
  EXPECT_EQ(shorten(read("|\n  a\n  b\n").root), "\"a b \"");
  const std::string long_text = shorten(read("[" + std::string(500, 'x') + "]").root);
  EXPECT_LT(long_text.size(), 80u);
}

TEST(ParseYaml, RefusesAByteOrderMarkAnywhereButAtTheStart) {
  EXPECT_EQ(at(read("\xEF\xBB\xBF"
                    "a: 1\n")
                   .root,
               "a")
                .scalar,
            "1");
  for (const char* text : {"a: 1\n\xEF\xBB\xBF"
                           "b: 2\n",
                           "a: \xEF\xBB\xBF"
                           "1\n"}) {
    EXPECT_EQ(problem_of(text).error, "a byte order mark in the middle of the configuration");
  }
}

TEST(ParseYaml, TextAfterAQuotedValueIsAnotherDocument) {
  std::vector<Problem> problems;
  parse_yaml("k: 'a#b, 2c # d', &f e", "f.yaml", true, problems);
  ASSERT_EQ(problems.size(), 1U);
}

TEST(ParseYaml, NeedsLittleStack) {
  const int depth = YamlLimits{}.max_depth / 2;  // in 64 kB, with a sanitizer's frames too
  std::vector<Problem> problems;
  test::on_small_stack([&] {
    parse_yaml(std::string(depth, '[') + std::string(depth, ']'), "f.yaml", true, problems);
  });
  EXPECT_TRUE(problems.empty());
}

TEST(ParseYaml, AValueThatHoldsAColonNeedsQuotes) {
  EXPECT_EQ(problem_of("custom:\n  user_prompt: Find these: cats\n").fix,
            "put the value in double quotes: it holds `: `");
}

}  // namespace rematch
