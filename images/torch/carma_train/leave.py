"""Leaving the GPU when carma asks for it, and coming back.

The folder CARMA_LEAVE has carma's order; task/ below it is ours: the offer and the answers. The protocol is in runner/suspend/leave/doc.go.
It needs nothing of PyTorch or of this package: copy the file into your own program.

    leave = Leave()
    leave.offer()
    for batch in loader:
        train(batch)
        if leave.asked():
            leave.go(to_host, to_gpu, stop=lambda: stopping)
"""

import os
import time

VARIABLE = "CARMA_LEAVE"
PROTOCOL = "carma-leave 1"
PAUSE = 0.05  # seconds between two looks at the order while we are away


class Leave:
    """Our end of the folder; without one, nothing is ever asked."""

    def __init__(self, folder=None):
        self.folder = os.environ.get(VARIABLE) if folder is None else folder
        self.answered = 0  # number of the last order that has an answer

    def offer(self):
        """Says that we leave when asked. An order of before, to a program that has ended, is answered."""
        if not self.folder:
            return
        self._write("offer", PROTOCOL)
        _, number = self.order()
        if number:
            self._answer(f"here {number}", number)

    def order(self):
        """The last order: its word and number; ("", 0): there is none."""
        try:
            with open(os.path.join(self.folder, "order"), encoding="ascii") as f:
                word, number = f.readline().split()
            return word, int(number)
        except (OSError, TypeError, ValueError):
            return "", 0

    def asked(self):
        """Whether there is an order without an answer. It costs a look at a file."""
        return bool(self.folder) and self.order()[1] > self.answered

    def go(self, away, back, stop=lambda: False, agree=None):
        """Does what is asked: away() leaves the GPU, and back() returns to it when that is asked. stop() ends the wait.

        agree(*flags) makes processes that train together do the same; of those, only one may have the folder.
        Returns whether we are on the GPU: False only if stop() has ended the wait. What away or back raises is told to
        carma, and the other one of the two is called."""
        agree = agree or (lambda *flags: flags)
        here = True
        while True:
            word, number = self.order() if self.folder else ("", 0)
            leaves, returns, stops = agree(number > self.answered and word == "leave", number > self.answered and word == "return", stop())
            if stops and not here:
                return False
            if leaves or returns:
                problem = ""
                if leaves == here:
                    problem = attempt(away if leaves else back)
                    (failed,) = agree(bool(problem))
                    if failed:  # perhaps half-way, perhaps in another process: all go to where they were
                        problem = problem or "another process of the task cannot"
                        (back if leaves else away)()
                    else:
                        here = returns
                self._answer(f"cannot {number} {problem}" if problem else f"{'here' if here else 'left'} {number}", number)
            if here:
                return True
            time.sleep(PAUSE)

    def _answer(self, line, number):
        if self.folder and number:
            self.answered = number
            self._write("answer", line)

    def _write(self, name, line):
        """Replaces a file of ours in one step. A folder that is gone is nobody's who asks."""
        path = os.path.join(self.folder, "task", name)
        try:
            with open(path + ".new", "w", encoding="utf-8") as f:
                f.write(line + "\n")
            os.replace(path + ".new", path)
        except OSError:
            self.folder = None


def attempt(do):
    """The first line of what went wrong; empty: nothing."""
    try:
        do()
    except Exception as e:  # memory that is short, above all
        return (str(e).splitlines() or [type(e).__name__])[0][:200]
    return ""
