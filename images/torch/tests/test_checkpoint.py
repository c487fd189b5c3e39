"""A training that is stopped and goes on has the same losses as one that is not stopped."""

import os
import signal
import tempfile
import unittest

import torch

from carma_train import state
from carma_train.usage import UsageError

from . import program


class Checkpoint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def same(self, *args, signal=signal.SIGTERM):
        """Trains with a stop at any step, and without one, for the same number of steps."""
        to = ("--checkpoint", os.path.join(self.folder, "new", "checkpoint"))
        code, before, saved = program.train(*args, *to, "--steps", 1000000, stop_at=5, signal=signal)
        self.assertEqual((code, saved["state"]), (75, "saved"))
        steps = saved["step"] + 8
        code, after, result = program.train(*args, *to, "--steps", steps)
        self.assertEqual((code, result["state"], result["steps"], result["step"]), (0, "finished", 8, steps))
        code, want, result = program.train(*args, "--steps", steps)
        self.assertEqual((code, sorted(want)), (0, list(range(1, steps + 1))))
        self.assertEqual({**before, **after}, want)
        self.assertEqual(min(after), max(before) + 1)
        self.assertGreater(len(set(want.values())), steps // 2, "losses that repeat tell nothing")

    def test_made_on_the_device(self):
        self.same("mnist_cnn", "--batch-size", 16)

    def test_by_a_loader_with_processes(self):
        self.same("mnist_cnn", "--batch-size", 16, "--synthetic", "cpu", "--workers", 1, signal=signal.SIGUSR1)

    def test_momentum_and_autocast(self):
        self.same("mnist_cnn", "--batch-size", 16, "--optimizer", "sgd-momentum", "--precision", "amp")

    def test_two_processes(self):
        self.same("mnist_cnn", "--batch-size", 16, "--gpus", 2)

    def test_files_over_several_epochs(self):
        text = os.path.join(self.folder, "wiki.tokens")
        with open(text, "w", encoding="utf-8") as f:
            for i in range(14):
                f.write(f" = Heading {i} = \n" if i % 3 == 0 else f"word{i} says word{i % 4} again\n\n")
        self.same("xlnet_base", "--layers", 1, "--batch-size", 4, "--seq-len", 6, "--data", text, "--optimizer", "sgd")

    def test_stopped_without_a_folder(self):
        code, _, result = program.train("mlp_128x2", "--steps", 100000, stop_at=3)
        self.assertEqual((code, result["state"]), (143, "stopped"))

    def test_finished_is_not_trained_again(self):
        args = ("mlp_128x2", "--batch-size", 8, "--steps", 3, "--checkpoint", self.folder)
        program.train(*args)
        code, losses, result = program.train(*args)
        self.assertEqual((code, losses, result["steps"], result["step"]), (0, {}, 0, 3))

    def test_of_another_training(self):
        program.train("mlp_128x2", "--batch-size", 8, "--steps", 1, "--checkpoint", self.folder)
        for more, want in ((("--batch-size", 16), "batch_size 8, not 16"), (("--batch-size", 8, "--gpus", 2), "processes 1, not 2")):
            code, _, err = program.run("mlp_128x2", *more, "--checkpoint", self.folder, "--device", "cpu")
            self.assertEqual((code, len(err.splitlines())), (2, 1), err)
            self.assertIn(want, err)

    def test_broken(self):
        with open(os.path.join(self.folder, state.NAME), "wb") as f:
            f.write(b"no checkpoint")
        with self.assertRaisesRegex(UsageError, "cannot be read .*; remove it"):
            state.load(self.folder, {})

    def test_save_that_fails_leaves_the_old_one(self):
        state.save(self.folder, {"made_with": {"model": "x"}, "step": 1})
        with self.assertRaises(Exception):
            state.save(self.folder, {"made_with": {}, "step": 2, "unsaveable": lambda: 0})
        self.assertEqual(len(os.listdir(self.folder)), 2, "a part of the second is there")
        self.assertEqual(state.load(self.folder, {"model": "x"})["step"], 1)
        self.assertEqual(os.listdir(self.folder), [state.NAME])

    def test_replaces_the_old_one(self):
        for step in (1, 2):
            state.save(self.folder, {"made_with": {}, "step": step, "net": {"w": torch.ones(2)}})
        self.assertEqual(state.load(self.folder, {})["step"], 2)


if __name__ == "__main__":
    unittest.main()
