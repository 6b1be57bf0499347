"""Settings given as Python's values reach a training as they are: args.json of a run of one step,
by the real program, has each of them.

usage: values_check.py PROGRAM
"""

import json
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

from pretend_install import ROOT, install

CONFIG = f"""\
global_max_length: 1024
model: {{model: {ROOT}/tests/golden/model/tiny_tied, torch_dtype: float32}}
training: {{output_dir: out, max_steps: 1, report_to: none, eval_strategy: "no"}}
custom: {{trainer_variant: sft, train_jsonl: {ROOT}/tests/golden/e2e/train.jsonl}}
"""
# A value of each kind, and texts that YAML would read as something else.
VALUES = {
    "training.learning_rate": 1e-05,
    "training.weight_decay": 0,
    "training.adam_beta2": 0.5,
    "training.warmup_steps": 0,
    "training.seed": 2**31 - 1,
    "training.max_grad_norm": 1e3,
    "training.save_strategy": "no",
    "training.per_device_train_batch_size": 1,
    "tuner.train_type": "lora",
    "tuner.target_modules": ["q_proj", "v_proj"],
    "tuner.use_dora": False,
    "custom.train_sample_limit": None,
    "template.system": ' "a": \\n #b\n- ü✓😀\u2028\x01 ',
    "custom.user_prompt": "null",
}
TEXTS = ["~", "true", "1e-3", "{x}", "", " ", "'q'", "%s", "@x", "a: b", "x\ty"]


class ValuesTest(unittest.TestCase):
    def trained(self, name, settings):
        """The settings of a run, by their paths."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = rematch.train("run.yaml", settings={**settings, "training.run_name": name})
        return json.loads((Path(run) / "args.json").read_text())

    def test_every_value_arrives(self):
        found = self.trained("values", VALUES)
        for key, value in VALUES.items():
            own = found
            for part in key.split("."):
                own = own[part]
            self.assertEqual(own, value, key)

    def test_texts_stay_texts(self):
        for number, text in enumerate(TEXTS):
            try:
                found = self.trained(f"text{number}", {"custom.user_prompt": text})
            except rematch.Error as error:
                self.assertEqual(text.strip(), "", error)  # refused, not replaced
            else:
                self.assertEqual(found["custom"]["user_prompt"], text)


if __name__ == "__main__":
    program = sys.argv.pop(1)
    with tempfile.TemporaryDirectory(prefix="rematch_values_") as directory:
        os.environ.update(install(directory, program))
        sys.path.insert(0, directory)
        import rematch

        work = Path(directory) / "work"
        work.mkdir()
        os.chdir(work)
        Path("run.yaml").write_text(CONFIG)
        unittest.main()
