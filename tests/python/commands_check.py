"""rematch.train and the other commands from Python, with a program that only plays them
(toy_program.py). The notebook of the first run (notebook_check.py) uses the real one.

usage: commands_check.py

Exit 77 (skipped) where IPython is missing (scripts/setup --oracles).
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path
from unittest import mock

import numpy
from pretend_install import install

try:
    import IPython  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}; scripts/setup --oracles installs it")
    sys.exit(77)

RUN = "out/r\tun\u202e"  # a name that the program's texts for people escape
EVALUATION = {"eval_rollout_f1_iou50": 0.5, "eval_set": "a"}
ROWS = [{"step": 1, "loss": 4.0}, {"step": 1, **EVALUATION}, {"step": 2, "loss": None}]
ENDLESS = """
import rematch
def told(row): print("row", row["step"], flush=True)
try:
    rematch.train("endless.yaml", told)
except KeyboardInterrupt as stop:
    print("stopped:", stop, flush=True)
"""


class CommandsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rematch_commands_")
        self.addCleanup(directory.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(directory.name)

    def calls(self):
        return [json.loads(line) for line in Path("calls.jsonl").read_text().splitlines()]

    def arguments(self):
        return self.calls()[-1]["arguments"]

    def wait_for(self, is_true):
        end = time.monotonic() + 60
        while not is_true():
            self.assertLess(time.monotonic(), end, "it did not come")
            time.sleep(0.05)

    def start_endless(self, config="endless.yaml"):
        """A Python that trains without an end, as the first of a group, like a terminal's."""
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", ENDLESS.replace("endless.yaml", config)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.addCleanup(child.stdout.close)
        self.assertEqual(child.stdout.readline(), "row 1\n")
        return child

    # train
    # ---------------------------------------------------------------------------------------------

    def test_the_callback_gets_each_line_of_this_run_once(self):
        Path(RUN).mkdir(parents=True)
        Path(RUN, "logging.jsonl").write_text('{"step": 9, "loss": 1.0}\n' * 5)
        rows, printed = [], io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = rematch.train("steps.yaml", rows.append)
        self.assertEqual(rows, ROWS)
        self.assertEqual(printed.getvalue(), "")
        self.assertEqual((run.log.steps[5:], run.log.evaluations), ([ROWS[0], ROWS[2]], [ROWS[1]]))
        self.assertEqual(os.fspath(run), RUN)
        self.assertEqual(run.best, Path(RUN, "checkpoint-2"))
        self.assertEqual(run.last, run.best)
        self.assertEqual(repr(run), f"Run({RUN!r}, best='checkpoint-2')")

    def test_without_a_callback_progress_is_printed_and_warnings_are_warnings(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rematch.train("steps.yaml")
        self.assertIn("model     toy\n", printed.getvalue())
        self.assertNotIn("odd", printed.getvalue())
        self.assertEqual([str(one.message) for one in caught], ["odd\n  and odder"])
        self.assertEqual(caught[0].filename, __file__)

    def test_train_passes_settings_as_yaml(self):
        settings = {
            "training.max_steps": 6,
            "training.learning_rate": 2e-3,
            "training.save_strategy": "no",
            "training.eval_on_start": True,
            "custom.val_jsonl": Path("v.jsonl"),
            "template.system": "",
            "custom.user_prompt": "null ✓",
            "tuner.target_modules": ["a", Path("b")],
            "training.seed": numpy.int64(7),
            "training.weight_decay": numpy.float32(0.5),
        }
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rematch.train(Path("steps.yaml"), settings=settings, resume=True, device="cpu")
        given = self.arguments()
        self.assertEqual(given[:2], ["--resume", "--device=cpu"])
        self.assertEqual(
            given[3:-1:2],
            [
                "training.max_steps=6",
                "training.learning_rate=0.002",
                'training.save_strategy="no"',
                "training.eval_on_start=true",
                'custom.val_jsonl="v.jsonl"',
                'template.system=""',
                'custom.user_prompt="null ✓"',
                'tuner.target_modules=["a", "b"]',
                "training.seed=7",
                "training.weight_decay=0.5",
            ],
        )

    def test_a_value_that_yaml_lacks_is_refused_before_the_start(self):
        for value in ({1, 2}, object(), b"x", {("a",): 1}):
            with self.assertRaises(rematch.Error) as caught:
                rematch.train("steps.yaml", settings={"training.seed": value})
            self.assertEqual(caught.exception.where, "training.seed")
        self.assertFalse(Path("calls.jsonl").exists())

    def test_a_refused_training_raises_what_the_program_says(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaises(rematch.Error) as caught:
                rematch.train("refused.yaml")
        self.assertEqual((caught.exception.kind, caught.exception.what), ("config", "c"))
        self.assertEqual(printed.getvalue(), "")

    def test_ctrl_c_reaches_the_program_once_and_waits_for_its_save(self):
        child = self.start_endless()
        os.killpg(child.pid, signal.SIGINT)
        rest, _ = child.communicate(timeout=60)
        self.assertEqual(self.calls()[1:], [{"signal": signal.SIGINT}, {"saved": True}])
        self.assertEqual(
            rest.splitlines()[-1],
            f"stopped: saved {RUN}/checkpoint-3; "
            "continue with: rematch.train('endless.yaml', …, resume=True)",
        )

    def test_ctrl_c_names_the_run_that_took_another_name(self):
        child = self.start_endless("endless_again.yaml")
        os.killpg(child.pid, signal.SIGINT)
        rest, _ = child.communicate(timeout=60)
        self.assertIn(f"settings={{…, 'training.run_name': {Path(RUN).name!r}}}, resume=True", rest)

    def test_a_killed_python_lets_the_program_save(self):
        child = self.start_endless()
        child.kill()
        child.wait()
        self.wait_for(lambda: {"saved": True} in self.calls())
        self.assertEqual(self.calls()[1], {"signal": signal.SIGTERM})

    def test_what_the_callback_raises_comes_after_the_save(self):
        def stop(row):
            raise ZeroDivisionError

        with warnings.catch_warnings(), self.assertRaises(ZeroDivisionError):
            warnings.simplefilter("ignore")
            rematch.train("endless.yaml", stop)
        self.assertEqual(self.calls()[1:], [{"signal": signal.SIGINT}, {"saved": True}])

    def test_settings_in_the_callbacks_place_are_refused_before_a_start(self):
        with self.assertRaises(rematch.Error) as caught:
            rematch.train("steps.yaml", {"training.max_steps": 3})
        self.assertIn("settings=", caught.exception.fix)
        self.assertFalse(Path("calls.jsonl").exists())

    # the others
    # ---------------------------------------------------------------------------------------------

    def test_init_report_and_merge_give_what_they_wrote(self):
        config = rematch.init("base", Path("t.jsonl"), val="v.jsonl", stage=1)
        self.assertEqual(
            self.arguments(),
            ["--val=v.jsonl", "--out=rematch.yaml", "--stage1", "--", "base", "t.jsonl"],
        )
        self.assertEqual((os.fspath(config), repr(config)[:13]), ("rematch.yaml", "Configuration"))
        self.assertIn("&lt;p&gt;init&lt;/p&gt;", config._repr_html_())
        page = rematch.report(["a", config], out="page.html")
        self.assertEqual(self.arguments(), ["--out=page.html", "--", "a", "rematch.yaml"])
        self.assertIn('<iframe srcdoc="&lt;p&gt;report', page._repr_html_())
        rematch.report("a")
        self.assertEqual(self.arguments(), ["--out=report.html", "--", "a"])
        merged = rematch.merge("adapter", "merged", dtype="bfloat16")
        self.assertEqual(self.arguments(), ["--out=merged", "--dtype=bfloat16", "--", "adapter"])
        self.assertEqual(merged.path, Path("merged"))
        self.assertIn("wrote merged", merged._repr_html_())
        with self.assertRaises(rematch.Error):
            rematch.init("base", "t.jsonl", stage=3)

    def test_eval_and_probe_give_numbers_that_a_notebook_shows(self):
        scores = rematch.eval("run", "v.jsonl", settings={"a.b": 1}, answer_format="qwen_json")
        self.assertEqual(
            self.arguments(), ["--answer-format=qwen_json", "--set", "a.b=1", "run", "v.jsonl"]
        )
        self.assertEqual(scores, EVALUATION)
        self.assertEqual(str(scores), "F1 @ IoU 0.5  <.500>")
        self.assertEqual(scores._repr_html_(), "<pre>F1 @ IoU 0.5  &lt;.500&gt;</pre>")
        rematch.probe("stage2.yaml", samples=0)
        self.assertEqual(self.arguments(), ["--samples=0", "stage2.yaml", "--json"])
        probed = rematch.probe("stage2.yaml", samples=4)
        self.assertEqual(self.arguments(), ["--samples=4", "stage2.yaml", "--json"])
        self.assertEqual(probed["verdict"]["action"], "stop")
        for part in ("f1_iou50", "0.970", "verdict: stop"):
            self.assertIn(part, probed._repr_html_())

    def test_the_program_finds_the_libraries_of_a_torch_that_lies_elsewhere(self):
        import importlib.util

        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": "/mine"}):
            rematch.report("a")
        torch = Path(importlib.util.find_spec("torch").origin).parent
        self.assertEqual(self.calls()[-1]["libraries"], f"{torch}/lib:/mine")

    def test_the_program_starts_in_any_directory(self):
        """Python found the package by a relative path, and the directory has modules of names that
        Python's own have.
        """
        Path("site").symlink_to(Path(rematch.__file__).parents[1])
        Path("elsewhere").mkdir()
        for name in ("ctypes", "random", "rematch", "signal", "torch"):
            Path("elsewhere", f"{name}.py").write_text(f"raise ImportError('the wrong {name}')\n")
        Path("use.py").write_text(
            "import os, sys\nsys.path[:0] = sys.argv[1:]\nimport rematch\n"
            "os.chdir('elsewhere')\nrematch.report('a')\n"
        )
        here = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        for environment, path in ((here, ["site"]), ({**here, "PYTHONPATH": "site"}, [])):
            subprocess.run([sys.executable, "use.py", *path], env=environment, check=True)
            Path("elsewhere/report.html").unlink()

    def test_a_torch_of_another_release_is_refused(self):
        with mock.patch("rematch.installed._distribution") as known:
            known.return_value.configure_mock(requires=["torch==2.0.1"], version="2.13.0+cpu")
            with self.assertRaises(rematch.Error) as caught:
                rematch.report("a")
        self.assertEqual(caught.exception.kind, "environment")
        self.assertIn("it has torch 2.13.0;", caught.exception.what)
        self.assertFalse(Path("calls.jsonl").exists())

    # curves
    # ---------------------------------------------------------------------------------------------

    def test_the_live_plot_draws_each_row(self):
        shown = mock.Mock()
        with mock.patch("IPython.display.display", return_value=shown):
            draw = rematch.live_plot()
            for row in ROWS:
                draw(row)
        pages = [call.args[0].data for call in shown.update.call_args_list]
        self.assertEqual([page.count("<svg") for page in pages], [1, 2, 2])
        self.assertIn("step 2", pages[-1])
        self.assertIn("F1 @ IoU 0.5 0.5", pages[-1])

    def test_the_curves_are_those_of_the_last_run_in_the_log(self):
        from rematch.curves import page_of_run
        from rematch.logs import Log

        steps = [
            {"step": step, "loss": loss} for step, loss in ((1, 9.0), (50, 8.0), (1, 4.0), (2, 3.0))
        ]
        page = page_of_run(Log(steps, []), "<run>")
        self.assertIn("&lt;run&gt;", page)
        self.assertIn('points="237.0,26.0 428.0,174.0"', page)
        self.assertNotIn(">9<", page)

    def test_a_live_plot_needs_a_notebook(self):
        with mock.patch.dict(sys.modules, {"IPython.display": None}):
            with self.assertRaises(rematch.Error) as caught:
                rematch.live_plot()
        self.assertIn("IPython", caught.exception.what)


if __name__ == "__main__":
    if os.environ.get("REMATCH_PRETEND_INSTALL"):
        import rematch

        unittest.main(argv=sys.argv[:1])
    toy = Path(__file__).with_name("toy_program.py")
    with tempfile.TemporaryDirectory(prefix="rematch_install_") as place:
        given = {**install(place, toy), "REMATCH_PRETEND_INSTALL": "1"}
        sys.exit(subprocess.run([sys.executable, __file__], env=given, check=False).returncode)
