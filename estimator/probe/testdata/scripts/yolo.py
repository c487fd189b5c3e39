"""YOLO11n of ultralytics learns from a folder of images; the command line of ultralytics does the same."""
import os
import tempfile

import numpy as np
from PIL import Image
from ultralytics import YOLO

folder = tempfile.mkdtemp()
rng = np.random.default_rng(1)
for part in ("train", "val"):
    os.makedirs(f"{folder}/images/{part}")
    os.makedirs(f"{folder}/labels/{part}")
    for i in range(32):
        Image.fromarray(rng.integers(0, 255, (320, 320, 3), dtype=np.uint8)).save(f"{folder}/images/{part}/{i}.jpg")
        with open(f"{folder}/labels/{part}/{i}.txt", "w") as f:
            for _ in range(3):
                f.write("%d %.3f %.3f %.3f %.3f\n" % (rng.integers(0, 3), *rng.uniform(0.3, 0.7, 2), *rng.uniform(0.1, 0.3, 2)))
with open(f"{folder}/data.yaml", "w") as f:
    f.write(f"path: {folder}\ntrain: images/train\nval: images/val\nnames: [a, b, c]\n")
model = YOLO("yolo11n.yaml")
model.train(data=f"{folder}/data.yaml", epochs=3, batch=8, imgsz=320, workers=2, device=0, project=folder, plots=False, amp=False)
