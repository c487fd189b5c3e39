"""A training that runs when told to, for measuring two at a time. Arguments are carma_train's.

A line "run AT WARM SECONDS" on standard input makes it train from AT (seconds of time.time) for
WARM seconds that are not counted and SECONDS that are, without a break; it answers with the steps
completed in these and the time they took. Then it goes on for another WARM seconds, so that a task
measured beside it is not alone before its end. "end" ends it.
"""

import collections
import json
import sys
import time

import torch

from carma_train import cli, parallel, train

AHEAD = 2  # steps that may be in flight, so that the GPU does not wait for Python


class Steps:
    """Steps in flight; completed ones are counted when the device has done them."""

    def __init__(self, training):
        self.training, self.batches = training, training.batches()
        self.cuda = training.device.type == "cuda"

    def run(self, start, warm, seconds):
        time.sleep(max(0, start - time.time()))
        flight, began = collections.deque(), time.monotonic()
        first = last = None  # times of the last completed step before the counted time, and in it
        done = 0
        while True:
            self.training.one(next(self.batches))
            flight.append(self.mark())
            if len(flight) <= AHEAD:
                continue
            self.wait(flight.popleft())
            now = time.monotonic()
            late = now - began - warm
            if late <= 0 or first is None:
                first = now
            elif late <= seconds or not done:
                done, last = done + 1, now
            if done and late > seconds + warm:
                break
        self.training.wait()
        return {"steps": done, "seconds": last - first}

    def mark(self):
        if not self.cuda:
            return None
        event = torch.cuda.Event(blocking=True)
        event.record()
        return event

    def wait(self, event):
        if event is not None:
            event.synchronize()


def say(**what):
    print(json.dumps(what), flush=True)


def main():
    job = cli.checked(sys.argv[1:] + ["--steps", str(1 << 40)])
    cli.placed(job)
    steps = Steps(train.Training(job, parallel.Alone()))
    steps.run(0, 0, 0)  # load libraries and choose kernels now, not while others are measured
    memory = train.memory(steps.training.device)
    say(stage="ready", samples=steps.training.samples, reserved=memory["max_memory_reserved"])
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["end"]:
            return
        say(stage="ran", **steps.run(*map(float, words[1:4])))


if __name__ == "__main__":
    main()
