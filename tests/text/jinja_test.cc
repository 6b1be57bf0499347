#include "model/text/jinja/jinja.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::string render(const std::string& source, const Json& variables = Json::object()) {
  return JinjaTemplate(source, "t.jinja").render(variables);
}

UserError render_error(const std::string& source) {
  return test::catch_user_error([&] { render(source); });
}

// A body inside loops over 60 items each.
std::string looped(int num_loops, const std::string& body) {
  std::string items = "0";
  for (int i = 1; i < 60; ++i) items += ",0";
  std::string text = body;
  for (int i = 0; i < num_loops; ++i)
    text = "{% for i in [" + items + "] %}" + text + "{% endfor %}";
  return text;
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

TEST(JinjaTemplate, WritesWhatTransformersWrites) {
  int num_rows = 0;
  for (const std::string& line :
       split(read_file(test::source_path("tests/golden/text_jinja.jsonl")), '\n')) {
    if (line.empty()) continue;
    const Json row = parse_json(line, "text_jinja.jsonl");
    const std::string& source = row["template"].get_ref<const std::string&>();
    ++num_rows;
    try {
      const std::string text = render(source, row["variables"]);
      EXPECT_TRUE(row.contains("expect")) << row["name"] << " should fail: " << row["error"] << "\n"
                                          << source << "\ngave " << text;
      EXPECT_EQ(text, row.value("expect", "")) << row["name"] << "\n" << source;
    } catch (const UserError& error) {
      EXPECT_TRUE(row.contains("error")) << row["name"] << "\n" << source << "\n" << error.what();
      EXPECT_EQ(error.kind(), ErrorKind::kData);
    }
  }
  EXPECT_GE(num_rows, 150);
}

TEST(JinjaTemplate, RefusesUnknownConstructsByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{% generation %}x{% endgeneration %}", "{% generation %}"},
      {"{% include 'x' %}", "{% include %}"},
      {"{% block a %}{% endblock %}", "{% block %}"},
      {"{% call m() %}{% endcall %}", "{% call %}"},
      {"{% filter trim %}x{% endfilter %}", "{% filter %}"},
      {"{% raw %}{{ }}{% endraw %}", "{% raw %}"},
      {"{% with a = 1 %}{% endwith %}", "{% with %}"},
      {"{% for i in [1] %}{% break %}{% endfor %}", "{% break %}"},
      {"{% for i in [1] %}{% continue %}{% endfor %}", "{% continue %}"},
      {"{% for i in [] %}{% else %}{% endfor %}", "{% else %}"},
      {"{% for i in [1] %}{% macro m() %}{% endmacro %}{% endfor %}",
       "a macro inside a loop or a macro"},
      {"{% set loop = 1 %}", "a variable named loop"},
      {"{% set namespace = 1 %}", "a variable named namespace"},
      {"{{ x | sort }}", "the filter sort"},
      {"{{ x | no_such }}", "the filter no_such"},
      {"{{ x | upper }}", "the filter upper"},
      {"{{ x | first }}", "the filter first"},
      {"{{ x | int }}", "the filter int"},
      {"{{ x | indent(2) }}", "the filter indent"},
      {"{{ x | select('string') }}", "the filter select"},
      {"{{ x is sameas 1 }}", "the test sameas"},
      {"{{ x is odd }}", "the test odd"},
      {"{{ [{}] | selectattr('a', 'odd') }}", "the test odd"},
      {"{{ 2 ** 3 }}", "the operator **"},
      {"{{ 2 * 3 }}", "the operator *"},
      {"{{ 4 / 2 }}", "the operator /"},
      {"{{ 4 // 2 }}", "the operator /"},
      {"{{ 1 < 2 < 3 }}", "a chain of comparisons"},
      {"{{ '%d' % 1 }}", "applies % to a str"},
      {"{{ cycler('a') }}", "the name cycler"},
      {"{{ range(3) }}", "the name range"},
      {"{{ dict(a=1) }}", "the name dict"},
      {"{{ caller() }}", "the name caller"},
      {"{{ x.__class__ }}", "the private attribute __class__"},
      {"{{ strftime_now('%Y') }}", "strftime_now"},
      {"{{ 'x'.zfill(3) }}", "the method zfill"},
      {"{{ [1].append(2) }}", "the method append"},
      {"{{ 'x'.upper() }}", "the method upper"},
      {"{{ {'a': 1}.items }}", "the method items of dict without a call"},
      {"{{ {1: 2} }}", "a dict key that is not a string"},
      {"{{ [1] }}", "a list as text"},
      {"{{ {} }}", "a dict as text"},
      {"{{ [1] == [1] }}", "a comparison of a list"},
      {"{{ [namespace()] }}", "a namespace inside another value"},
      {"{{ [1, 2, 3][::2] }}", "a slice with a step other than -1"},
      {"{{ 'abc'[1:] }}", "takes an item of a str"},
      {"{{ 'a b'.split() }}", "takes as a text"},
      {"{{ 'a'.replace('', 'b') }}", "a search for an empty text"},
      {"{{ 'é'.strip('é') }}", "strip of characters outside ASCII"},
      {"{{ ('<' | safe) + '<' }}", "applies + to a safe str"},
      {"{{ ('<' | safe) | trim }}", "a change of text after the filter safe"},
      {"{% for i in [1] %}{{ loop.changed(i) }}{% endfor %}", "the method changed"},
      {"{% for i in [1] %}{{ loop.nope }}{% endfor %}", "loop.nope"},
      {"{% for i in [1] %}{{ loop }}{% endfor %}", "a loop as text"},
      {"{{ 0x1F }}", "the number 0x1F"},
      {"{{ 1.5 }}", "the number 1"},
      {"{{ '\\u00e9' }}", "the escape \\u"},
      {"{{ [1] | tojson(separators=[',', ':']) }}", "the argument separators of the filter tojson"},
      {"{{ [1] | tojson(ensure_ascii=true) }}", "tojson with these arguments"},
      {"{{ [1] | tojson(sort_keys=true) }}", "the argument sort_keys of the filter tojson"},
      {"{{ namespace({'a': 1}) }}", "namespace with a dict"},
  };
  for (const auto& [source, name] : cases) {
    const UserError error = render_error("first line\n" + source);
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.problems().front().error.find(name), std::string::npos)
        << source << ": " << error.what();
    EXPECT_EQ(error.problems().front().where, "t.jinja:2") << source;
  }
}

TEST(JinjaTemplate, PointsAtWrongSyntax) {
  for (const char* source : {"{{",
                             "{%",
                             "{#",
                             "{{ 'a }}",
                             "{{ a",
                             "{% if a %}",
                             "{% endif %}",
                             "{% else %}",
                             "{{ (1 }}",
                             "{{ 1) }}",
                             "{{ 1 + }}",
                             "{{ }}",
                             "{% for in a %}{% endfor %}",
                             "{% for a b %}{% endfor %}",
                             "{% set %}",
                             "{% set a %}",
                             "{% set 1 = 2 %}",
                             "{% macro m( %}{% endmacro %}",
                             "{% macro m(a=1, b) %}{% endmacro %}",
                             "{% if %}{% endif %}",
                             "{{ a.}}",
                             "{{ a[] }}",
                             "{{ a[1:2:3:4] }}",
                             "{{ a | }}",
                             "{{ a is }}",
                             "{{ a is not }}",
                             "{{ {1} }}",
                             "{{ a b }}",
                             "{{ 'a' 1 }}",
                             "{% break %}",
                             "{{ $ }}",
                             "{{ '\\ud800' }}",
                             "{% if a %}{% endfor %}",
                             "{{ f(a=1, 2) }}",
                             "{% set a.b.c = 1 %}",
                             "{% %}",
                             "{{ a is defined is string }}"}) {
    const UserError error = render_error(std::string("\n\n") + source);
    EXPECT_EQ(error.problems().front().where, "t.jinja:3") << source << ": " << error.what();
  }
  const UserError error = render_error("caf\xe9");
  EXPECT_NE(error.problems().front().error.find("UTF-8"), std::string::npos);
}

TEST(JinjaTemplate, StopsHostileTemplates) {
  const std::string ns = "{% set ns = namespace(a=[1], s='xxxxxxxx') %}";
  const std::string doubled = ns + looped(1, "{% set ns.s = ns.s ~ ns.s %}");
  const std::string large = ns + repeated("{% set ns.s = ns.s ~ ns.s %}", 20);  // 8 MiB
  std::string names = ns;
  for (int i = 0; i < 2000; ++i) names += "{% set ns.n" + std::to_string(i) + " = 1 %}";
  const std::vector<std::string> sources = {
      "{{ " + repeated("(", 5000) + " }}",
      "{{ " + repeated("[", 5000) + " }}",
      "{{ " + repeated("a[", 5000) + " }}",
      "{{ " + repeated("1 if a else ", 20000) + "1 }}",
      "{{ 1" + repeated(" + 1", 20000) + " }}",
      "{{ ns" + repeated(".a", 20000) + " }}",
      "{{ a" + repeated("|trim", 20000) + " }}",
      repeated("{% if a %}", 5000),
      "{{ " + repeated("not ", 20000) + "1 }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      looped(5, ""),
      looped(5, "x"),
      looped(4, "{{ 'x' }}"),
      doubled,
      large + looped(3, "{{ ns.s }}"),
      large + looped(3, "{% set x = ns.s | trim %}"),
      large + looped(3, "{% set x = ns.s in ns.s ~ 'y' %}"),
      large + looped(3, "{% set x = ns.s == ns.s %}"),
      large + looped(3, "{% set x %}{{ ns.s }}{% endset %}"),
      large + "{{ ns.s | replace('x', ns.s) }}",
      large + "{{ ns.s.split('x') | length }}",
      large + "{{ [1, 2, 3, 4] | join(ns.s) }}",
      ns + looped(1, "{% set ns.a = [ns.a, ns.a] %}"),
      ns + looped(2, "{% set ns.a = [ns.a] %}"),
      ns + looped(1, "{% set ns.a = ns.a + ns.a %}"),
      names,
  };
  for (const std::string& source : sources) {
    const UserError error = render_error(source);
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.problems().front().what.find("more than"), std::string::npos)
        << source.substr(0, 80) << ": " << error.what();
  }
  for (const std::string& source :
       {std::string("{% set ns = namespace() %}{% set ns.x = ns %}"),
        std::string("{{ 99999999999999999999999 }}"),
        "{% set ns = namespace(n=1) %}" + looped(2, "{% set ns.n = ns.n + ns.n %}")})
    EXPECT_EQ(render_error(source).kind(), ErrorKind::kData) << source;
  EXPECT_EQ(render_error(std::string(2 << 20, 'x')).kind(), ErrorKind::kData);
}

TEST(JinjaTemplate, SaysWhatRaiseExceptionSays) {
  const UserError error = render_error("\n{{ raise_exception('roles must alternate') }}");
  EXPECT_NE(error.problems().front().error.find("roles must alternate"), std::string::npos);
  EXPECT_EQ(error.problems().front().where, "t.jinja:2");
}

}  // namespace rematch
