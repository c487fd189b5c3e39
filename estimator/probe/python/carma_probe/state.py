"""Settings and state of this process that several modules share."""

import time

EXIT_DONE = 86  # the exit code of a process whose record is complete

# Seconds, number of GPUs, bytes (0: not known), and whether large tensors may go
# without values.
settings = {"timeout": 120.0, "gpus": 1, "memory": 0, "fake": 1}
began = time.monotonic()
torch_seen = False  # PyTorch is being imported
why_again = ""  # why the program was started again, see rerun.py


def elapsed():
    return time.monotonic() - began
