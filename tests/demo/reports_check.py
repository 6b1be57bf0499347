"""Checks of dev/demo/report.py and scripts/count_tests.py; needs the standard library only."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, ROOT / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


class Reports(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.root = Path(self.temporary.name)

    def write(self, name, content):
        path = self.root / name
        path.write_text(content)
        return path

    def junit(self, *cases):
        return self.write("results.xml", f"<testsuite>{''.join(cases)}</testsuite>")

    def test_evaluations_stand_side_by_side(self):
        before = self.write(
            "a.json", json.dumps({"eval_rollout_f1_iou50": 0.351, "eval_rollout_gt_objects": 2300})
        )
        after = self.write(
            "b.json", json.dumps({"eval_rollout_f1_iou50": 0.48, "eval_rollout_gt_objects": 2300})
        )
        lines = run("dev/demo/report.py", f"before={before}", f"after={after}").stdout.splitlines()
        self.assertEqual(lines[0].split(), ["before", "after", "gain"])
        self.assertIn(
            ["F1", "@", "IoU", "0.5", "0.351", "0.480", "+0.129"], [line.split() for line in lines]
        )
        self.assertEqual(lines[-1].split()[-3:], ["2300", "2300", "+0"])

    def test_counts_end_the_output(self):
        path = self.junit(
            '<testcase name="a" status="run"/>',
            '<testcase name="b" status="run"/>',
            '<testcase name="c" status="notrun"><skipped '
            'message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
            "<system-out>x.cc:2: Skipped\nno vLLM here\n</system-out></testcase>",
        )
        result = run("scripts/count_tests.py", path)
        self.assertEqual(
            result.stdout.splitlines(), ["skipped 1: no vLLM here", "2 passed, 0 failed, 1 skipped"]
        )
        self.assertEqual(result.returncode, 0)

    def test_failures_and_missing_programs_fail(self):
        path = self.junit(
            '<testcase name="a" status="run"/>',
            '<testcase name="b" status="fail"><failure message=""/></testcase>',
            '<testcase name="c_NOT_BUILT" status="notrun"><skipped message="Unable to find '
            'executable"/></testcase>',
        )
        result = run("scripts/count_tests.py", path)
        self.assertEqual(result.stdout.splitlines()[-1], "1 passed, 2 failed, 0 skipped")
        self.assertEqual(result.returncode, 1)

    def test_a_programs_cases_count_in_its_place(self):
        self.write(
            "model_test.cases.xml",
            '<testsuites><testsuite><testcase name="A" classname="Model" status="run" '
            'result="completed"/>'
            '<testcase name="B" classname="Model" status="run" result="completed"><failure '
            'message="no"/></testcase>'
            '<testcase name="C" classname="Model" status="run" result="skipped"><skipped '
            'message="x.cc:2&#x0A;no GPU&#x0A;"/></testcase>'
            "</testsuite></testsuites>",
        )
        path = self.junit(
            '<testcase name="model_test" status="fail"/>',
            '<testcase name="crashed_test" status="fail"><system-out>[ RUN ] A.B\nlibgomp: Thread '
            'creation failed\n</system-out></testcase>',
        )
        lines = run("scripts/count_tests.py", path).stdout.splitlines()
        self.assertEqual(
            lines,
            [
                "skipped 1: no GPU",
                "failed: Model.B",
                "    no",
                "failed: crashed_test",
                "    libgomp: Thread creation failed",
                "1 passed, 2 failed, 1 skipped",
            ],
        )

    def test_what_passes_when_run_again_is_named(self):
        path = self.junit(
            '<testcase name="a" status="run"/>',
            '<testcase name="b" status="fail"><system-out>no answer in 5 s</system-out></testcase>',
            '<testcase name="c" status="fail"/>',
        )
        self.write(
            "results.again.xml",
            '<testsuite><testcase name="b" status="run"/><testcase name="c" '
            'status="fail"/></testsuite>',
        )
        result = run("scripts/count_tests.py", path)
        self.assertEqual(
            result.stdout.splitlines(),
            [
                "failed once: b",
                "    no answer in 5 s",
                "failed: c",
                "2 passed, 1 failed, 0 skipped",
            ],
        )
        self.assertEqual(result.returncode, 1)

    def test_no_tests_at_all_is_a_failure(self):
        result = run("scripts/count_tests.py", self.junit())
        self.assertEqual((result.stdout, result.returncode), ("0 passed, 0 failed, 0 skipped\n", 1))


if __name__ == "__main__":
    unittest.main()
