"""The table of measured trainings."""

import csv
import io
import json
import subprocess
import unittest
from unittest import mock

from carma_train import measure

from . import program


class Measure(unittest.TestCase):
    def test_on_the_cpu(self):
        code, out, err = program.run("--models", "mlp-128x2,mnist_cnn", "--batches", "2,4", "--steps", 5, "--device", "cpu", module="carma_train.measure")
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual((code, [(r["model"], r["batch_size"], r["status"], r["steps"]) for r in rows]),
                         (0, [(m, b, "ok", "5") for m in ("mlp_128x2", "mnist_cnn") for b in "24"]), err)
        for row in rows:
            self.assertGreater(float(row["step_seconds"]), 0)
            self.assertEqual({k: v for k, v in row.items() if k.endswith("_bytes") or k == "driver"}, dict.fromkeys(
                ("max_reserved_bytes", "max_allocated_bytes", "device_used_bytes", "used_before_bytes", "context_bytes", "driver"), "NA"))

    def test_failure_is_a_row(self):
        code, out, _ = program.run("--models", "mlp_128x2,resnet18", "--batches", "2", "--steps", 1, "--device", "cpu", "--", "--image-size", "32", module="carma_train.measure")
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(code, 1)
        self.assertIn("exit 2: carma-train: --image-size", rows[0]["status"])
        self.assertEqual((rows[1]["status"], rows[1]["step_seconds"]), ("ok", "NA"))

    def test_refused(self):
        for argv, want in ((("--models", "resnet8"), "the nearest is resnet18"), (("--batches", "1,0"), "'0' is not a whole number"),
                           (("--out", "/no/such/file"), "No such file")):
            code, _, err = program.run(*argv, module="carma_train.measure")
            self.assertEqual((code, len(err.splitlines())), (2, 1), err)
            self.assertIn(want, err)

    def of_gpu(self, run):
        args = measure.parser().parse_args(["--steps", "5"])
        with mock.patch.object(measure, "in_use", return_value=(7 << 20, "1.2")), mock.patch.object(subprocess, "run", run):
            return measure.one(args, "resnet18", 8)

    def test_context(self):
        told = dict.fromkeys(measure.TOLD, 1) | {"device_used": 1000 << 20, "memory_reserved": 400 << 20}
        row = self.of_gpu(lambda *a, **k: mock.Mock(returncode=0, stdout="step 1\nresult " + json.dumps(told), stderr=""))
        self.assertEqual((row["context_bytes"], row["used_before_bytes"], row["driver"]), ((1000 - 400 - 7) << 20, 7 << 20, "1.2"))

    def test_out_of_memory(self):
        err = "Traceback ...\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
        self.assertEqual(self.of_gpu(lambda *a, **k: mock.Mock(returncode=1, stdout="", stderr=err))["status"], "oom")


if __name__ == "__main__":
    unittest.main()
