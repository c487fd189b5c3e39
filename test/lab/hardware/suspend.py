"""Suspends CUDA processes by the driver's checkpoint functions (driver 570 and later) and writes the results as CSV.

    python suspend.py OUT sizes=2,16,48 training=resnet50,16,150 mps

sizes: a process that holds so many GiB, suspended twice. training: the same training three times, of which the
third is suspended ten times; once another one has the card meanwhile. mps: a client of an MPS server, and the server.
"""

import csv
import ctypes
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CPU = "SUSPEND_LIBRARY" in os.environ  # a library plays the driver: there is no GPU
COLUMNS = ["s", "what", "of", "nth", "result", "state", "lock_s", "checkpoint_s", "restore_s", "unlock_s", "card_before_mib", "card_after_mib", "listed_mib",
           "host_before_mib", "host_after_mib", "note"]
BEGAN = time.monotonic()
TIMES = 10
LIMIT = 25  # seconds that a call under MPS may take

out = None


def note(what, of, **more):
    row = dict(more, s=f"{time.monotonic() - BEGAN:.1f}", what=what, of=of)
    with open(out, "a", newline="") as f:
        csv.DictWriter(f, COLUMNS, restval="").writerow({k: "" if v is None else v for k, v in row.items()})
    print(row, flush=True)


class Driver:
    STATES = ("running", "locked", "checkpointed", "failed")

    def __init__(self):
        began = time.monotonic()
        self.lib = ctypes.CDLL(os.environ.get("SUSPEND_LIBRARY", "libcuda.so.1"))
        if not hasattr(self.lib, "cuCheckpointProcessLock"):
            sys.exit("the driver has no cuCheckpointProcessLock; driver 570 is the first that has")
        result = self.name(self.lib.cuInit(0))
        note("cuInit", "this process", result=result, lock_s=f"{time.monotonic() - began:.3f}")

    def name(self, result):
        text = ctypes.c_char_p()
        self.lib.cuGetErrorName(result, ctypes.byref(text))
        return text.value.decode() if text.value else str(result)

    def state(self, pid):
        state = ctypes.c_int(-1)
        result = self.lib.cuCheckpointProcessGetState(pid, ctypes.byref(state))
        return self.STATES[state.value] if result == 0 else self.name(result)

    def call(self, what, pid, timeout_ms=0):
        """The result's name and the seconds. All arguments' structures are 64 bytes and may be zero."""
        args = (ctypes.c_uint64 * 64)()
        args[0] = timeout_ms
        began = time.monotonic()
        result = getattr(self.lib, "cuCheckpointProcess" + what)(pid, ctypes.byref(args))
        return self.name(result), f"{time.monotonic() - began:.4f}"


_card = None


def card():
    """MiB in use on the card, and by the processes that NVML lists."""
    global _card
    if CPU:
        return 0, {}
    import pynvml

    if _card is None:
        pynvml.nvmlInit()
        _card = pynvml.nvmlDeviceGetHandleByUUID(os.environ["CUDA_VISIBLE_DEVICES"])
    used = pynvml.nvmlDeviceGetMemoryInfo(_card, pynvml.nvmlMemory_v2).used >> 20
    listed = pynvml.nvmlDeviceGetComputeRunningProcesses(_card) + pynvml.nvmlDeviceGetMPSComputeRunningProcesses(_card)
    return used, {p.pid: (p.usedGpuMemory or 0) >> 20 for p in listed}


def host(pid):
    """MiB of host memory of a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return next(int(line.split()[1]) >> 10 for line in f if line.startswith("VmRSS"))
    except (OSError, StopIteration):
        return None


def suspend(driver, pid, of, nth=None, **more):
    used, _ = card()
    before = host(pid)
    lock, lock_s = driver.call("Lock", pid, 10000)
    row = dict(more, nth=nth, lock_s=lock_s, card_before_mib=used, host_before_mib=before)
    if lock != "CUDA_SUCCESS":
        note("suspend", of, result="lock: " + lock, state=driver.state(pid), **row)
        return False
    done, seconds = driver.call("Checkpoint", pid)
    used, listed = card()
    note("suspend", of, result=done, state=driver.state(pid), checkpoint_s=seconds, card_after_mib=used, listed_mib=listed.get(pid), host_after_mib=host(pid), **row)
    if done != "CUDA_SUCCESS":
        undone, seconds = driver.call("Unlock", pid)
        note("unlock after it failed", of, result=undone, state=driver.state(pid), unlock_s=seconds)
    return done == "CUDA_SUCCESS"


def resume(driver, pid, of, nth=None):
    before = host(pid)
    restored, restore_s = driver.call("Restore", pid)
    unlocked, unlock_s = driver.call("Unlock", pid)
    used, listed = card()
    ok = restored == unlocked == "CUDA_SUCCESS"
    note("resume", of, nth=nth, result="CUDA_SUCCESS" if ok else f"restore: {restored}, unlock: {unlocked}", state=driver.state(pid), restore_s=restore_s, unlock_s=unlock_s,
         card_after_mib=used, listed_mib=listed.get(pid), host_before_mib=before, host_after_mib=host(pid))
    return ok


HOLD = """
import sys, torch
device, n = sys.argv[2], int(float(sys.argv[1]) * (1 << 28))
random = torch.Generator(device=device)
parts = [torch.randint(-2**31, 2**31 - 1, (min(n, 1 << 26),), dtype=torch.int32, device=device, generator=random) for _ in range(max(1, n >> 26))]
total = lambda: sum(int(p.to(torch.int64).sum()) for p in parts)
first = total()
print("ready", flush=True)
for line in sys.stdin:
    print("the same" if total() == first else "CHANGED", flush=True)
"""


def environment(more=None):
    return dict(os.environ, PYTHONUNBUFFERED="1", CUBLAS_WORKSPACE_CONFIG=":4096:8", **more or {})


def hold(gib, more=None):
    """A process with so much memory that answers whether its content is unchanged."""
    p = subprocess.Popen([sys.executable, "-c", HOLD, str(gib), "cpu" if CPU else "cuda"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(more))
    if p.stdout.readline().strip() != "ready":
        p.kill()
        note("a process does not come up", f"{gib:g} GiB")
        return None
    return p


def contents(p):
    try:
        p.stdin.write("?\n")
        p.stdin.flush()
        return p.stdout.readline().strip() or f"it has ended with {p.wait(5)}"
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"{type(e).__name__}: {e}"


def sizes(driver, *list_):
    for gib in map(float, list_):
        of = f"a process with {gib:g} GiB"
        p = hold(gib)
        for nth in (1, 2):
            if not p or not suspend(driver, p.pid, of, nth) or not resume(driver, p.pid, of, nth):
                break
            note("contents", of, nth=nth, result=contents(p))
        if p:
            p.kill()
            p.wait()


TRAIN = """
import sys, torch
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.deterministic = True
from carma_train import cli
sys.exit(cli.main(sys.argv[1:]))
"""


def train(log, model, batch, steps):
    with open(log, "w") as f:
        return subprocess.Popen([sys.executable, "-c", TRAIN, model, "--batch-size", batch, "--steps", steps, "--device", "cpu" if CPU else "cuda", "--gpus", "1", "--report", "0"],
                                stdout=f, stderr=subprocess.STDOUT, env=environment())


def losses(log):
    """Losses by step, as printed."""
    with open(log) as f:
        words = (line.split() for line in f)
        return {int(w[1]): w[3] for w in words if len(w) > 3 and w[0] == "step" and w[2] == "loss"}


def training(driver, model, batch, steps):
    of, logs = f"{model}, batch {batch}", [f"{out}.{i}.log" for i in range(3)]
    for log in logs[:2]:
        began = time.monotonic()
        code = train(log, model, batch, steps).wait()
        note("undisturbed", of, result=f"exit code {code}", note=f"{len(losses(log))} steps in {time.monotonic() - began:.1f} s with start")
    p = train(logs[2], model, batch, steps)
    times = 0
    for nth in range(1, TIMES + 1):
        want = int(steps) * nth // (TIMES + 2)
        while len(losses(logs[2])) < want and p.poll() is None:
            time.sleep(0.02)
        if p.poll() is not None or not suspend(driver, p.pid, of, nth, note=f"after step {len(losses(logs[2]))}"):
            break
        if nth == TIMES // 2:
            other(of, logs[2])
        if not resume(driver, p.pid, of, nth):
            break
        times += 1
    try:
        code = p.wait(90)
    except subprocess.TimeoutExpired:
        p.kill()
        code = "none: it hangs"
    first, second, third = map(losses, logs)
    same = lambda a, b: "equal" if a == b else f"differ from step {next((k for k in sorted(a) if a[k] != b.get(k)), '?')} on"
    last = max(first, default=0)
    note("training", of, nth=times, result=f"exit code {code}", note=f"losses of all {len(first)} steps: undisturbed runs {same(first, second)}, suspended one {same(first, third)}; "
         f"the last {first.get(last)}, {second.get(last)}, {third.get(last)}")
    for log in logs:
        os.remove(log)


def other(of, log):
    """Another training while one is suspended."""
    before, name = len(losses(log)), out + ".other.log"
    began = time.monotonic()
    code = train(name, "mnist_cnn", "64", "100").wait()
    note("another training meanwhile", of, result=f"exit code {code}", note=f"mnist_cnn, {len(losses(name))} steps, {time.monotonic() - began:.1f} s with start; "
         f"the suspended one went on {len(losses(log)) - before} steps")
    os.remove(name)


def within(seconds, call):
    """The call's result; None if it takes longer."""
    got = []
    t = threading.Thread(target=lambda: got.append(call()), daemon=True)
    t.start()
    t.join(seconds)
    return got[0] if got else None


def mps(driver):
    folders = {"CUDA_MPS_PIPE_DIRECTORY": out + ".pipe", "CUDA_MPS_LOG_DIRECTORY": out + ".log"}
    for f in folders.values():
        os.makedirs(f, exist_ok=True)
    ask = lambda text, *args: subprocess.run(["nvidia-cuda-mps-control", *args], input=text, text=True, capture_output=True, env=environment(folders), timeout=20).stdout
    ask("", "-d")
    client, neighbour = hold(2, folders), hold(1, folders)
    try:
        server = int(ask("get_server_list\n").split()[0])
        note("MPS", "clients", result=" ".join(ask(f"get_client_list {server}\n").split()), note=f"the client is {client.pid}")
        for of, pid in (("a client of MPS", client.pid), ("the MPS server", server)):
            note("before", of, state=driver.state(pid))
            ok = within(LIMIT, lambda: suspend(driver, pid, of))
            if ok:
                ok = within(LIMIT, lambda: resume(driver, pid, of))
            if ok is None:
                note("hangs", of, result=f"no answer in {LIMIT} s", state=within(5, lambda: driver.state(pid)))
            for who, p in (("client", client), ("neighbour", neighbour)):
                note("afterwards", of, result=within(15, lambda: contents(p)) or "no answer in 15 s", note="the " + who)
            if ok is None:
                return
    finally:
        for p in (client, neighbour):
            p.kill()
        within(20, lambda: ask("quit\n"))


def main():
    global out
    out = sys.argv[1]
    with open(out, "w", newline="") as f:
        csv.writer(f).writerow(COLUMNS)
    driver = Driver()
    for arg in sys.argv[2:]:
        name, _, values = arg.partition("=")
        try:
            {"sizes": sizes, "training": training, "mps": mps}[name](driver, *values.split(",") if values else ())
        except Exception as e:
            note("error", arg, result=f"{type(e).__name__}: {e}")
    sys.stdout.flush()
    os._exit(0)  # without waiting for a call that hangs


if __name__ == "__main__":
    main()
