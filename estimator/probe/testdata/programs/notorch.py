import sys

sys.modules["torch"] = None
del sys.modules["torch"]
sys.path[:] = [p for p in sys.path if "carma" in p or p.endswith(("lib-dynload", ".zip"))] + [p for p in sys.path if p.rstrip("/").endswith(("python3.%d" % sys.version_info[1]))]
import torch
