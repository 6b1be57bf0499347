#include <gtest/gtest.h>
// (rapidcheck's gtest bridge needs gtest first.)
#include <rapidcheck/gtest.h>

#include "program/config/source.h"
#include "support/paths.h"

namespace rematch {
namespace {

struct Loaded {
  Source source;
  std::vector<Problem> problems;
  std::string text(const std::string& key) const {
    const Node* node = source.root.find(key);
    return node ? shorten(*node) : "(absent)";
  }
};

Loaded load(const std::string& path, const std::vector<std::string>& overrides = {}) {
  Loaded result;
  result.source = load_source(path, overrides, result.problems);
  return result;
}

/// A random tree with few keys, so that trees meet in many of them.
Node random_tree(int depth) {
  Node node;
  const int kind = *rc::gen::inRange(0, depth > 0 ? 6 : 3);
  if (kind == 0) return node;
  if (kind <= 2) {
    node.kind = Node::Kind::kScalar;
    node.scalar = std::to_string(*rc::gen::inRange(0, 100));
    return node;
  }
  node.kind = kind == 3 ? Node::Kind::kList : Node::Kind::kMap;
  for (const char* key : {"a", "b", "c"}) {
    if (!*rc::gen::arbitrary<bool>()) continue;
    if (node.is_list()) node.items.push_back(random_tree(depth - 1));
    if (node.is_map()) node.members.push_back({key, {}, random_tree(depth - 1)});
  }
  return node;
}

/// A random tree in which a name is always a section or never: "m…" are sections, "v…" values.
Node random_sections(int depth) {
  Node node;
  node.kind = Node::Kind::kMap;
  for (const char* key : {"m1", "m2", "v1", "v2"}) {
    if (!*rc::gen::arbitrary<bool>() || (key[0] == 'm' && depth == 0)) continue;
    node.members.push_back({key, {}, key[0] == 'm' ? random_sections(depth - 1) : random_tree(0)});
  }
  return node;
}

/// The tree as text with keys sorted: merging fixes the order of keys by who came first, which is
/// not part of the meaning.
std::string sorted_text(Node node) {
  std::sort(node.members.begin(), node.members.end(),
            [](const Member& a, const Member& b) { return a.key < b.key; });
  std::string text = node.is_map()    ? "{"
                     : node.is_list() ? "["
                     : node.is_null() ? "null"
                                      : node.scalar;
  for (const Member& member : node.members)
    text += member.key + ":" + sorted_text(member.value) + ",";
  for (const Node& item : node.items) text += sorted_text(item) + ",";
  return text + (node.is_map() ? "}" : node.is_list() ? "]" : "");
}

Node map_with(const std::string& key, Node value) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.members.push_back({key, {}, std::move(value)});
  return node;
}

}  // namespace

RC_GTEST_PROP(Merge, LaterWins, ()) {
  const Node low = random_tree(3), high = random_tree(3);
  const Node merged = merge(low, high);
  if (!low.is_map() || !high.is_map()) {
    RC_ASSERT(sorted_text(merged) == sorted_text(high));
    return;
  }
  for (const char* key : {"a", "b", "c"}) {
    const Node* below = low.find(key);
    const Node* above = high.find(key);
    const Node* result = merged.find(key);
    RC_ASSERT((result != nullptr) == (below || above));
    if (!result) continue;
    const Node expected = !above ? *below : !below ? *above : merge(*below, *above);
    RC_ASSERT(sorted_text(*result) == sorted_text(expected));
  }
}

RC_GTEST_PROP(Merge, IsAssociativeWhereSectionsStaySections, ()) {
  // (With a scalar between two mappings only left to right is meant, as the files of an `extends`
  // list are merged.)
  const Node a = random_sections(3), b = random_sections(3), c = random_sections(3);
  RC_ASSERT(sorted_text(merge(merge(a, b), c)) == sorted_text(merge(a, merge(b, c))));
}

RC_GTEST_PROP(Merge, IsIdempotentAndKeepsKeysDistinct, ()) {
  const Node tree = map_with("x", random_tree(3));
  RC_ASSERT(sorted_text(merge(tree, tree)) == sorted_text(tree));
}

TEST(Extends, BasesMergeLeftToRightAndTheFileItselfLast) {
  const test::TempDir dir;
  dir.write("a.yaml", "k: a\nonly_a: 1\nm: {x: a, y: a, z: a}\n");
  dir.write("b.yaml", "k: b\nm: {y: b, z: b}\n");
  const Loaded loaded = load(dir.write("c.yaml", "extends: [a.yaml, b.yaml]\nm: {z: c}\n"));
  EXPECT_TRUE(loaded.problems.empty());
  EXPECT_EQ(loaded.text("k"), "b");
  EXPECT_EQ(loaded.text("only_a"), "1");
  EXPECT_EQ(loaded.text("m"), "{x: a, y: b, z: c}");
  EXPECT_EQ(loaded.text("extends"), "(absent)");
  EXPECT_EQ(loaded.source.files.size(), 3u);
  EXPECT_EQ(loaded.source.root.find("m")->find("y")->origin.text(), dir.file("b.yaml") + ":2:8");
}

TEST(Extends, ListsScalarsAndNullsReplace) {
  const test::TempDir dir;
  dir.write("a.yaml", "l: [1, 2]\nm: {x: 1}\nn: {x: 1}\ns: 5\n");
  const Loaded loaded =
      load(dir.write("c.yaml", "extends: a.yaml\nl: [3]\nm: null\nn: 7\ns: {x: 1}\n"));
  EXPECT_EQ(loaded.text("l"), "[3]");
  EXPECT_EQ(loaded.text("m"), "null");
  EXPECT_EQ(loaded.text("n"), "7");
  EXPECT_EQ(loaded.text("s"), "{x: 1}");
}

TEST(Extends, PathsAreRelativeToTheFileThatNamesThem) {
  const test::TempDir dir;
  dir.write("base/deep/root.yaml", "k: root\n");
  dir.write("base/mid.yaml", "extends: deep/root.yaml\nj: mid\n");
  const Loaded loaded = load(dir.write("leaf/c.yaml", "inherit: ../base/mid.yaml\n"));
  EXPECT_TRUE(loaded.problems.empty());
  EXPECT_EQ(loaded.text("k"), "root");
  EXPECT_EQ(loaded.text("j"), "mid");
}

TEST(Extends, ADiamondIsLegal) {
  const test::TempDir dir;
  dir.write("root.yaml", "k: root\nr: 1\n");
  dir.write("left.yaml", "extends: root.yaml\nk: left\n");
  dir.write("right.yaml", "extends: ./root.yaml\n");
  const Loaded loaded = load(dir.write("c.yaml", "extends: [left.yaml, right.yaml]\n"));
  EXPECT_TRUE(loaded.problems.empty());
  EXPECT_EQ(loaded.text("k"), "root");  // right.yaml brings root's value again, later
  EXPECT_EQ(loaded.source.files.size(), 4u);
}

TEST(Extends, ManyDiamondsCostNoMoreThanTheirFiles) {
  const test::TempDir dir;
  dir.write("f0.yaml", "k: 0\n");
  for (int i = 1; i < 28; ++i) {
    const std::string below = "f" + std::to_string(i - 1) + ".yaml";
    dir.write("f" + std::to_string(i) + ".yaml", "extends: [" + below + ", " + below + "]\n");
  }
  const Loaded loaded = load(dir.file("f27.yaml"));
  EXPECT_TRUE(loaded.problems.empty());
  EXPECT_EQ(loaded.text("k"), "0");
}

TEST(Extends, ACycleIsAnErrorShowingTheChain) {
  const test::TempDir dir;
  dir.write("a.yaml", "extends: b.yaml\n");
  dir.write("b.yaml", "x: 1\nextends: [c.yaml]\n");
  dir.write("c.yaml", "extends: a.yaml\n");
  const Loaded loaded = load(dir.file("a.yaml"));
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(loaded.problems[0].error, "`extends` forms a cycle");
  EXPECT_EQ(loaded.problems[0].where, dir.file("c.yaml") + ":1:10");
  EXPECT_EQ(loaded.problems[0].what, dir.file("a.yaml") + " -> " + dir.file("b.yaml") + " -> " +
                                         dir.file("c.yaml") + " -> " + dir.file("a.yaml"));
}

TEST(Extends, AFileThatExtendsItselfIsACycle) {
  const test::TempDir dir;
  const Loaded loaded = load(dir.write("a.yaml", "extends: ./a.yaml\n"));
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(loaded.problems[0].error, "`extends` forms a cycle");
}

TEST(Extends, AnEndlessChainStops) {
  const test::TempDir dir;
  for (int i = 0; i < 60; ++i)
    dir.write("f" + std::to_string(i) + ".yaml", "extends: f" + std::to_string(i + 1) + ".yaml\n");
  const Loaded loaded = load(dir.file("f0.yaml"));
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(loaded.problems[0].error, "too many files extend each other");
}

TEST(Extends, MissingAndWrongBasesAreReportedWhereTheyAreNamed) {
  const test::TempDir dir;
  const Loaded loaded = load(dir.write("a.yaml", "extends:\n  - nowhere.yaml\n  - [x]\n  - .\n"));
  ASSERT_EQ(loaded.problems.size(), 3u);
  EXPECT_EQ(loaded.problems[0].error, "`extends` takes a path or a list of paths");
  EXPECT_EQ(loaded.problems[1].error, "no such configuration file");
  EXPECT_EQ(loaded.problems[1].where, dir.file("a.yaml") + ":2:5");
  EXPECT_EQ(loaded.problems[2].error, "the configuration is a directory");
}

TEST(Extends, BothNamesTogetherAreAnError) {
  const test::TempDir dir;
  dir.write("b.yaml", "x: 1\n");
  const Loaded loaded = load(dir.write("a.yaml", "extends: b.yaml\ninherit: b.yaml\n"));
  ASSERT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(loaded.problems[0].error, "both `extends` and `inherit` are given");
}

TEST(Source, AFileThatIsNoMappingIsAnError) {
  const test::TempDir dir;
  EXPECT_EQ(load(dir.write("a.yaml", "- 1\n- 2\n")).problems.at(0).error,
            "a configuration is a mapping of keys");
  EXPECT_EQ(load(dir.write("b.yaml", "hello\n")).problems.at(0).error,
            "a configuration is a mapping of keys");
  EXPECT_TRUE(load(dir.write("c.yaml", "# nothing\n")).problems.empty());
}

TEST(SetOverride, ReplacesAKeyByItsOwnName) {
  const test::TempDir dir;
  const std::string path = dir.write("a.yaml", "t: {x: 1, y: 2}\n");
  const Loaded loaded = load(path, {"t.x=5", "u.v.w=[1, two]", "t.x=6", "e=null"});
  EXPECT_TRUE(loaded.problems.empty());
  EXPECT_EQ(loaded.text("t"), "{x: 6, y: 2}");
  EXPECT_EQ(loaded.text("u"), "{v: {w: [1, two]}}");
  EXPECT_EQ(loaded.text("e"), "null");
  EXPECT_EQ(loaded.source.root.find("t")->find("x")->origin.text(), "--set t.x");
}

TEST(SetOverride, ValuesMayHoldEqualsSigns) {
  const test::TempDir dir;
  EXPECT_EQ(load(dir.write("a.yaml", ""), {"p=a=b"}).text("p"), "a=b");
}

TEST(SetOverride, RefusesWhatIsNoKeyAndValue) {
  const test::TempDir dir;
  const std::string path = dir.write("a.yaml", "");
  for (const char* text : {"novalue", "p=", "p= ", "=5", "a..b=1", ".a=1", "a.=1", "extends=b.yaml",
                           "x=[1", "x=[*a]"}) {
    const Loaded loaded = load(path, {text});
    ASSERT_EQ(loaded.problems.size(), 1u) << text;
    EXPECT_EQ(loaded.problems[0].where.rfind("--set ", 0), 0u) << loaded.problems[0].where;
  }
}

TEST(SetOverride, RefusesAValueOfWhichYamlWouldDropAPart) {
  const test::TempDir dir;
  const std::string path = dir.write("a.yaml", "p: from the file\n");
  for (const char* value :
       {"[a, b # c\n]", "[&a b, c]", "[! b, c]", "{a: b} # c", "{a: &b c}", "\"a\" # b", "'a'#b",
        "'a'\n...", "[a]\n...", "['a', # b\n'c']", "[!!str 5]"}) {
    const Loaded loaded = load(path, {std::string("p=") + value});
    ASSERT_EQ(loaded.problems.size(), 1u) << value;
    EXPECT_EQ(loaded.problems[0].error, "YAML would drop a part of this value") << value;
    EXPECT_EQ(loaded.problems[0].where, "--set p");
    EXPECT_EQ(loaded.text("p"), "from the file") << value;
  }
}

TEST(SetOverride, TakesAnyOtherValueAsItStands) {
  const test::TempDir dir;
  const std::string path = dir.write("a.yaml", "");
  for (const char* value :
       {"# how many shapes?", "#7", "run #3", "it's #1", "%x", "...", "---", "--- b", "&a b", "! b",
        "*a", "|", "a: b", "- a", "a#b", "50% of...", "-5", "!!str 5", "it's: 'x'"}) {
    const Loaded loaded = load(path, {std::string("p=") + value});
    EXPECT_TRUE(loaded.problems.empty()) << value;
    const Node* node = loaded.source.root.find("p");
    ASSERT_NE(node, nullptr) << value;
    EXPECT_TRUE(node->is_scalar() && !node->quoted) << value;
    EXPECT_EQ(node->scalar, value);
  }
  EXPECT_EQ(load(path, {"p=a\x01b"}).problems.at(0).error,
            "a control character in the configuration");
}

TEST(SetOverride, TakesAValueOfWhichNothingIsLost) {
  const test::TempDir dir;
  const std::string path = dir.write("a.yaml", "");
  const std::vector<std::pair<std::string, std::string>> kept = {
      {" 5 ", "5"},
      {"\"# a\"", "\"# a\""},
      {"'it''s #1'", "\"it's #1\""},
      {"[a#b, 'c # d']", "[a#b, \"c # d\"]"},
      {"{x: \"#\", y: don't}", "{x: \"#\", y: don't}"},
      {"[0.5, 'a & b!']", "[0.5, \"a & b!\"]"},
      {"{a: 50%, b: {c: x.y}}", "{a: 50%, b: {c: x.y}}"},
      {"\"\\x23 # ...\"", "\"# # ...\""},
      {"\"a\\\" # b\"", "\"a\" # b\""}};
  for (const auto& [value, shown] : kept) {
    const Loaded loaded = load(path, {"p=" + value});
    EXPECT_TRUE(loaded.problems.empty()) << value << loaded.problems.at(0).what;
    EXPECT_EQ(loaded.text("p"), shown);
  }
  for (const char* null : {"~", " null "}) {
    const Loaded loaded = load(path, {std::string("p=") + null});
    EXPECT_TRUE(loaded.problems.empty()) << null;
    EXPECT_EQ(loaded.text("p"), "null");
  }
}

}  // namespace rematch
