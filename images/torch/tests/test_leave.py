"""A training that leaves its GPU when asked, and returns, has the same losses as one that is left alone."""

import os
import signal
import tempfile
import time
import unittest

from carma_train.leave import PROTOCOL, Leave

from . import program

PATIENCE = 120  # seconds


class Folder:
    """carma's end of the folder."""

    def __init__(self, case):
        folder = tempfile.TemporaryDirectory()
        case.addCleanup(folder.cleanup)
        self.case, self.path, self.n = case, folder.name, 0
        os.mkdir(os.path.join(self.path, "task"))

    def give(self, word):
        self.n += 1
        path = os.path.join(self.path, "order")
        with open(path + ".new", "w") as f:
            f.write(f"{word} {self.n}\n")
        os.replace(path + ".new", path)

    def read(self, name):
        try:
            with open(os.path.join(self.path, "task", name)) as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def wait(self, want):
        end = time.monotonic() + PATIENCE
        while self.read("answer") != f"{want} {self.n}\n":
            if time.monotonic() > end:
                self.case.fail(f"no answer {want} {self.n}: {self.read('answer')!r}")
            time.sleep(0.01)


class Training(unittest.TestCase):
    def lines(self, p, upto=None):
        """Losses by step; upto: only until that step."""
        losses = {}
        for line in p.stdout:
            words = line.split()
            if words[0] == "step":
                losses[int(words[1])] = words[3]
                if int(words[1]) == upto:
                    break
        return losses

    def start(self, *args):
        folder = Folder(self)
        p = program.start(*args, "--device", "cpu", "--report", 0, env={"CARMA_LEAVE": folder.path})
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return folder, p

    def same(self, *args):
        args = (*args, "--steps", 600)
        folder, p = self.start(*args)
        losses = {}
        for last in (5, 100):
            losses.update(self.lines(p, last))
            folder.give("leave")
            folder.wait("left")
            time.sleep(0.3)
            folder.give("return")
            folder.wait("here")
        losses.update(self.lines(p))
        self.assertEqual((p.wait(), folder.read("offer")), (0, PROTOCOL + "\n"))
        code, want, _ = program.train(*args)
        self.assertEqual((code, sorted(want)), (0, list(range(1, 601))))
        self.assertEqual(losses, want)

    def test_adam(self):
        self.same("mlp_128x2", "--batch-size", 8)

    def test_momentum_and_autocast(self):
        self.same("mlp_128x2", "--batch-size", 8, "--optimizer", "sgd-momentum", "--precision", "amp")

    def test_two_processes(self):
        self.same("mlp_128x2", "--batch-size", 8, "--gpus", 2)

    def test_nothing_is_trained_meanwhile(self):
        folder, p = self.start("mlp_128x2", "--batch-size", 8, "--steps", 100000000)
        self.lines(p, 3)
        folder.give("leave")
        folder.wait("left")
        os.set_blocking(p.stdout.fileno(), False)
        time.sleep(0.2)
        while p.stdout.buffer.raw.read(1 << 16):  # printed before
            pass
        time.sleep(0.5)
        self.assertFalse(p.stdout.buffer.raw.read(1 << 16))

    def test_stopped_while_away(self):
        to = ("mlp_128x2", "--batch-size", 8, "--checkpoint", os.path.join(Folder(self).path, "checkpoint"))
        folder, p = self.start(*to, "--steps", 100000000)
        before = self.lines(p, 5)
        folder.give("leave")
        folder.wait("left")
        p.send_signal(signal.SIGTERM)
        before.update(self.lines(p))
        self.assertEqual(p.wait(), 75)
        steps = max(before) + 5
        code, after, _ = program.train(*to, "--steps", steps)
        _, want, _ = program.train("mlp_128x2", "--batch-size", 8, "--steps", steps)
        self.assertEqual((code, {**before, **after}), (0, want))


class Protocol(unittest.TestCase):
    def setUp(self):
        self.folder = Folder(self)
        self.leave = Leave(self.folder.path)
        self.leave.offer()
        self.did = []

    def go(self, away=None, back=None, stop=lambda: False):
        return self.leave.go(away or (lambda: self.did.append("away")), back or (lambda: self.did.append("back")), stop)

    def test_not_asked(self):
        self.assertFalse(self.leave.asked())
        self.assertTrue(self.go())
        self.assertEqual(self.did, [])

    def test_cannot_leave(self):
        def fails():
            raise MemoryError("no room\nfor it")

        self.folder.give("leave")
        self.assertTrue(self.leave.asked())
        self.assertTrue(self.go(away=fails))
        self.assertEqual((self.folder.read("answer"), self.did), ("cannot 1 no room\n", ["back"]))
        self.assertFalse(self.leave.asked())

    def test_cannot_return_at_first(self):
        times = []

        def back():
            times.append(1)
            if len(times) == 1:
                self.folder.give("return")
                raise RuntimeError("CUDA out of memory")
            self.did.append("back")

        self.folder.give("leave")
        self.assertTrue(self.go(away=lambda: (self.did.append("away"), len(times) or self.folder.give("return")), back=back))
        self.assertEqual((self.folder.read("answer"), self.did), ("here 3\n", ["away", "away", "back"]))

    def test_called_off(self):
        self.folder.give("leave")
        self.folder.give("return")
        self.assertTrue(self.go())
        self.assertEqual((self.folder.read("answer"), self.did), ("here 2\n", []))

    def test_stopped(self):
        self.folder.give("leave")
        self.assertFalse(self.go(stop=lambda: True))
        self.assertEqual((self.folder.read("answer"), self.did), ("left 1\n", ["away"]))

    def test_of_before(self):
        self.folder.give("leave")
        again = Leave(self.folder.path)
        again.offer()
        self.assertEqual((again.asked(), self.folder.read("answer")), (False, "here 1\n"))

    def test_no_folder(self):
        for folder in ("", "/nowhere"):
            leave = Leave(folder)
            leave.offer()
            self.assertFalse(leave.asked())

    def test_garbage(self):
        for text in (b"leave", b"leave x", b"\xff 1", b"", b"leave 1 2 3"):
            with open(os.path.join(self.folder.path, "order"), "wb") as f:
                f.write(text)
            self.assertFalse(self.leave.asked(), text)


if __name__ == "__main__":
    unittest.main()
