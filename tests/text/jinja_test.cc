#include "text/jinja/jinja.h"

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
      {"{% filter upper %}x{% endfilter %}", "{% filter %}"},
      {"{% raw %}{{ }}{% endraw %}", "{% raw %}"},
      {"{% with a = 1 %}{% endwith %}", "{% with %}"},
      {"{{ x | sort }}", "the filter sort"},
      {"{{ x | no_such }}", "the filter no_such"},
      {"{{ x is sameas 1 }}", "the test sameas"},
      {"{% for a in b recursive %}{% endfor %}", "a recursive loop"},
      {"{{ f(*a) }}", "a call with * or **"},
      {"{{ 2 ** 3 }}", "the operator **"},
      {"{{ cycler('a') }}", "the name cycler"},
      {"{{ x.__class__ }}", "the private attribute __class__"},
      {"{{ strftime_now('%Y') }}", "strftime_now"},
      {"{{ '%d' % 1 }}", "% as string formatting"},
      {"{{ 'x'.zfill(3) }}", "the method zfill of str"},
      {"{{ [1].append(2) }}", "the method append of list"},
      {"{{ {1: 2} }}", "a dict key that is a int"},
      {"{{ 'é' | upper }}", "upper of text outside ASCII"},
      {"{% for i in [1] %}{{ loop.changed(i) }}{% endfor %}", "the method changed of loop"},
      {"{% for i in [1] %}{{ loop.nope }}{% endfor %}", "loop.nope"},
      {"{% for i in [1] %}{% macro m() %}{% endmacro %}{% endfor %}",
       "a macro inside a loop or a macro"},
      {"{{ 0x1F }}", "the number 0x"},
      {"{{ {'a': 1}.items }}", "the method items of dict without a call"},
      {"{{ caller() }}", "the name caller"},
      {"{{ [1] | tojson(separators=(',', ':')) }}", "tojson with separators"},
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
  const std::string deep(5000, '(');
  std::string chain = "{{ 1";
  for (int i = 0; i < 20000; ++i) chain += " + 1";
  std::string dots = "{{ a";
  for (int i = 0; i < 20000; ++i) dots += ".a";
  std::string filters = "{{ a";
  for (int i = 0; i < 20000; ++i) filters += "|trim";
  std::string ifs;
  for (int i = 0; i < 5000; ++i) ifs += "{% if a %}";
  std::string nots = "{{ ";
  for (int i = 0; i < 20000; ++i) nots += "not ";
  std::string minus = "{{ ";
  for (int i = 0; i < 20000; ++i) minus += "- ";
  const std::vector<std::string> sources = {
      "{{ " + deep + " }}",
      "{{ " + std::string(5000, '[') + " }}",
      chain + " }}",
      dots + " }}",
      filters + " }}",
      ifs,
      nots + "1 }}",
      minus + "1 }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s "
      "%}{% endfor %}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% "
      "endfor %}{{ ns.a }}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(5000) %}{% set ns.a = [ns.a] %}{% endfor "
      "%}{{ ns.a }}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% "
      "endfor %}",
      "{{ 'x' * 99999999999 }}",
      "{{ 99999999999 * 99999999999 }}",
      "{{ range(999999999) | list }}",
      "{{ ('a' * 1000000) | replace('a', 'b' * 1000) }}",
      "{% for i in range(90000) %}{{ 'x' * 100000 }}{% endfor %}",
      "{{ 'a' | indent(99999999) * 100000000 }}",
      "{% set ns = namespace() %}{% set ns.x = ns %}",
      "{{ [namespace()] }}",
      "{{ 99999999999999999999999 }}",
  };
  for (const std::string& source : sources)
    EXPECT_EQ(render_error(source).kind(), ErrorKind::kData) << source.substr(0, 80);
  EXPECT_EQ(render_error(std::string(2 << 20, 'x')).kind(), ErrorKind::kData);
}

TEST(JinjaTemplate, SaysWhatRaiseExceptionSays) {
  const UserError error = render_error("\n{{ raise_exception('roles must alternate') }}");
  EXPECT_NE(error.problems().front().error.find("roles must alternate"), std::string::npos);
  EXPECT_EQ(error.problems().front().where, "t.jinja:2");
}

}  // namespace rematch
