"""Checks of dev/check_references.py on small temporary trees; needs the standard library only."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).parents[2] / "dev/check_references.py"


class References(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        self.write(
            "docs/contract/BEHAVIOUR.md",
            "# B\n## 4 Rollout\n1. One interface.\n2. The oracle (4.1).\n\n## 5 Parse\nText.\n",
        )
        self.write("src/model/row.h", "// A row (BEHAVIOUR 4.2, 5).\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def breaches(self, name=None, text=None):
        if name:
            self.write(name, text)
        run = subprocess.run([sys.executable, TOOL, self.root], capture_output=True, text=True)
        lines = run.stdout.splitlines()
        self.assertEqual(run.returncode, 0 if len(lines) == 1 else 1, run.stdout + run.stderr)
        return lines[:-1]

    def test_a_tree_without_faults_passes(self):
        self.assertEqual(self.breaches(), [])

    def test_a_symbolic_link_is_found(self):
        (self.root / "src/model/copy.h").symlink_to("row.h")
        self.assertEqual(len(self.breaches()), 1)

    def test_a_section_or_an_item_that_is_not_there_is_found(self):
        self.assertEqual(
            self.breaches("src/a.cc", "// see BEHAVIOUR 4.3\n"),
            ["src/a.cc:1: docs/contract/BEHAVIOUR.md has no 4.3"],
        )
        self.assertEqual(
            self.breaches("src/a.cc", "// see BEHAVIOUR 4.1, 7.\n"),
            ["src/a.cc:1: docs/contract/BEHAVIOUR.md has no 7"],
        )
        self.assertEqual(
            self.breaches("src/a.cc", "// see BEHAVIOUR 4–6\n"),
            ["src/a.cc:1: docs/contract/BEHAVIOUR.md has no 6"],
        )

    def test_a_page_that_is_not_there_is_found(self):
        self.assertEqual(
            self.breaches("src/a.cc", "// see MODEL 2\n"),
            ["src/a.cc:1: docs/contract/ has no page MODEL"],
        )
        self.assertEqual(
            self.breaches("src/a.cc", "// see STAGES.md\n"),
            ["src/a.cc:1: docs/contract/ has no page STAGES"],
        )

    def test_the_contract_cites_itself_in_parentheses(self):
        self.assertEqual(
            self.breaches(
                "docs/contract/BEHAVIOUR.md",
                "## 4 Rollout\n1. As in (9.9).\n## 5 Parse\n1. x\n2. y\n",
            ),
            [
                "docs/contract/BEHAVIOUR.md:2: this page has no 9.9",
                "src/model/row.h:1: docs/contract/BEHAVIOUR.md has no 4.2",
            ],
        )

    def test_links_and_their_headings_are_followed(self):
        self.assertEqual(
            self.breaches(
                "docs/a.md", "[b](contract/BEHAVIOUR.md#4-rollout) [web](https://x.y/z)\n"
            ),
            [],
        )
        self.assertEqual(
            self.breaches("docs/a.md", "[b](b.md)\n"),
            ["docs/a.md:1: the link to b.md leads nowhere"],
        )
        self.assertEqual(
            self.breaches("docs/a.md", "[b](contract/BEHAVIOUR.md#6-x)\n"),
            ["docs/a.md:1: contract/BEHAVIOUR.md has no heading #6-x"],
        )

    def test_names_of_tests_in_pages_are_looked_for(self):
        self.write("tests/a_test.cc", "TEST_F(Row, HasASum) {\n")
        self.write("tests/CMakeLists.txt", "add_test(NAME Soak.EndsAlike COMMAND x)\n")
        self.assertEqual(
            self.breaches("docs/a.md", "`Row.HasASum`, `Row.*`, `Soak.EndsAlike`\n"), []
        )
        self.assertEqual(
            self.breaches("docs/a.md", "`Row.HasNone`\n"),
            ["docs/a.md:1: no test is called Row.HasNone"],
        )

    def test_file_names_in_comments_and_pages_are_looked_for(self):
        self.assertEqual(
            self.breaches("src/a.cc", "// as model/row.h and row.h do\n#include \"gone.h\"\n"), []
        )
        self.assertEqual(
            self.breaches("src/a.cc", "// as model/column.h does\n"),
            ["src/a.cc:1: there is no model/column.h"],
        )
        self.assertEqual(
            self.breaches("src/a.cc", "int x;  // column.h\n"), ["src/a.cc:1: there is no column.h"]
        )
        self.assertEqual(
            self.breaches("src/a.cc", 'say("see docs/gone.md");\n'),
            ["src/a.cc:1: there is no docs/gone.md"],
        )
        self.assertEqual(
            self.breaches("src/a.cc", "// seeds 001\n"),
            ['src/a.cc:1: "seeds 001" is not in this repository'],
        )


if __name__ == "__main__":
    unittest.main()
