"""Checks of dev/spec_trace.py on small temporary trees; needs the standard library only."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).parents[2] / "dev/spec_trace.py"
SPEC_FOLDER = "docs/contract/openspec"
SPEC_FILE = SPEC_FOLDER + "/specs/rows/spec.md"
PAGE = "docs/contract/SPEC_TRACE.md"

SPEC = """## Requirements
### Requirement: Rows
[row-01] Rows MUST be short.

Details:
- [row-02] A row SHOULD be full.
  - for example, by luck.

#### Scenario: A long row [row-03]
- **THEN** the program MUST stop.
"""
TESTS = """// spec: row-01 row-03
TEST(Rows, AreShort) {}

// spec: row-02
// A sentence between the claim and its test.
RC_GTEST_PROP(Rows, AreFull,
              ()) {}
"""


class SpecTrace(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        self.write(SPEC_FILE, SPEC)
        self.write("tests/rows/rows_test.cc", TESTS)
        self.write("tests/rows/CMakeLists.txt", "rematch_test(rows_test SOURCES rows_test.cc)\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, *arguments):
        return subprocess.run(
            [sys.executable, TOOL, *arguments, self.root],
            capture_output=True,
            text=True,
            check=False,
        )

    def breaches(self):
        self.run_tool()
        result = self.run_tool("--check")
        *breaches, summary = result.stdout.splitlines()
        self.assertEqual(result.returncode, 1 if breaches else 0, result.stdout + result.stderr)
        self.assertIn(f"{len(breaches)} breaches", summary)
        return breaches

    def assert_only_breach(self, *parts):
        breaches = self.breaches()
        self.assertEqual(len(breaches), 1, breaches)
        for part in parts:
            self.assertIn(part, breaches[0])

    def test_a_traced_tree_has_no_breach_and_a_row_for_every_statement(self):
        self.assertEqual(self.breaches(), [])
        page = (self.root / PAGE).read_text()
        self.assertIn(
            "- **row-01** Rows MUST be short.\n  [Rows.AreShort](../../tests/rows/rows_test.cc)\n",
            page,
        )
        self.assertIn(
            "- **row-02** A row SHOULD be full.\n  [Rows.AreFull](../../tests/rows/rows_test.cc)\n",
            page,
        )
        self.assertIn(
            "- **row-03** Scenario: A long row\n  [Rows.AreShort](../../tests/rows/rows_test.cc)\n",
            page,
        )
        self.assertIn("3 statements and scenarios: 3 with tests, 0 open.", page)

    def test_a_list_that_a_sentence_announces_belongs_to_it(self):
        listed = "[row-01] Rows MUST hold:\n- `a`,\n- `b`.\n\n- unrelated"
        self.write(SPEC_FILE, SPEC.replace("[row-01] Rows MUST be short.", listed))
        self.assertEqual(self.breaches(), [])
        self.assertIn("- **row-01** Rows MUST hold: `a`, `b`.\n", (self.root / PAGE).read_text())

    def test_a_page_that_is_out_of_date_fails(self):
        self.run_tool()
        self.write(SPEC_FILE, SPEC.replace("short.", "very short."))
        result = self.run_tool("--check")
        self.assertEqual(result.returncode, 1)
        self.assertIn(PAGE + ": out of date", result.stdout)

    def test_check_writes_nothing(self):
        self.run_tool("--check")
        self.assertFalse((self.root / PAGE).exists())

    def test_an_unknown_tag_in_a_test_is_named(self):
        self.write("tests/rows/rows_test.cc", TESTS.replace("row-02", "row-02 row-77"))
        self.assert_only_breach("tests/rows/rows_test.cc:4", "unknown tag row-77")

    def test_a_statement_without_test_or_reason_is_named(self):
        self.write("tests/rows/rows_test.cc", TESTS.replace("row-02", "row-01"))
        self.assert_only_breach("row-02", "neither a test nor a line")

    def test_an_open_statement_is_fine_with_its_reason_only(self):
        self.write("tests/rows/rows_test.cc", TESTS.replace("row-02", "row-01"))
        self.write(SPEC_FOLDER + "/open.txt", "# comment\n\nrow-02 not built yet\n")
        self.assertEqual(self.breaches(), [])
        self.assertIn("*open:* not built yet", (self.root / PAGE).read_text())
        self.write(SPEC_FOLDER + "/open.txt", "row-02\n")
        self.assertIn("row-02 has no reason", self.breaches()[0])

    def test_a_tested_statement_cannot_be_open(self):
        self.write(SPEC_FOLDER + "/open.txt", "row-02 not built yet\n")
        self.assert_only_breach("row-02", "although Rows.AreFull claims it")

    def test_an_unknown_or_repeated_tag_in_the_open_list_is_named(self):
        self.write(SPEC_FOLDER + "/open.txt", "row-99 who knows\n")
        self.assert_only_breach(SPEC_FOLDER + "/open.txt:1", "unknown tag row-99")
        self.write("tests/rows/rows_test.cc", TESTS.replace("row-02", "row-01"))
        self.write(SPEC_FOLDER + "/open.txt", "row-02 not built yet\nrow-02 again\n")
        self.assert_only_breach(SPEC_FOLDER + "/open.txt:2", "row-02 is listed twice")

    def test_normative_lines_and_scenarios_need_a_tag(self):
        self.write(SPEC_FILE, SPEC.replace("Details:", "- Rows SHALL rest."))
        self.assert_only_breach("spec.md:5", "no tag: - Rows SHALL rest.")
        self.write(SPEC_FILE, SPEC + "\n#### Scenario: Another\n- **THEN** nothing\n")
        self.assert_only_breach("no tag: Scenario: Another")

    def test_a_tag_given_twice_is_named(self):
        self.write(SPEC_FILE, SPEC.replace("row-02", "row-01"))
        self.assertIn("tag row-01 is given twice", self.breaches()[0])

    def test_active_changes_count_and_archived_ones_do_not(self):
        delta = "## ADDED Requirements\n### Requirement: Columns\n[column-01] Columns MUST exist.\n"
        self.write(SPEC_FOLDER + "/changes/archive/old/specs/rows/spec.md", delta)
        self.assertEqual(self.breaches(), [])
        self.write(SPEC_FOLDER + "/changes/new/specs/rows/spec.md", delta)
        self.assert_only_breach("column-01", "neither a test nor a line")

    def test_a_claim_needs_a_test_behind_it(self):
        self.write(
            "tests/rows/rows_test.cc", TESTS + "\n// spec: row-01\n\nTEST(Rows, TooFar) {}\n"
        )
        self.assert_only_breach("rows_test.cc:9", "no test follows this claim")

    def test_a_disabled_or_unbuilt_test_proves_nothing(self):
        self.write("tests/rows/rows_test.cc", TESTS.replace("AreShort", "DISABLED_AreShort"))
        self.assert_only_breach("Rows.DISABLED_AreShort is disabled")
        self.write("tests/rows/rows_test.cc", TESTS)
        self.write("tests/rows/CMakeLists.txt", "")
        self.assertIn(
            "Rows.AreShort is not built (rows_test.cc is not in tests/rows/CMakeLists.txt)",
            self.breaches()[0],
        )

    def test_an_empty_tree_is_a_breach(self):
        self.write(SPEC_FILE, "")
        self.write("tests/rows/rows_test.cc", "")
        self.assert_only_breach("no statement found")


if __name__ == "__main__":
    unittest.main()
