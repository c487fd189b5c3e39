"""Peak memory of training steps of torchvision's networks for dense prediction, without a GPU and without weights.

    python dense_steps.py ../step/testdata/dense.csv

fills the column peak_bytes of rows that lack it; the table's head has the versions. standin.py says what is counted.
A step is that of torchvision's reference scripts: the network and its losses under autocast where the row says so, then
the optimizer. Segmentation has the second classifier and its loss (aux_loss), as the scripts have it with --aux-loss.
Detection has a backbone that was trained before: its first layers are frozen, as the library does then. dense_detection.py
has the sizes that depend on the images.
"""
import sys

import dense_detection
import standin
from yolo_steps import fake


gpu = standin.gpu


def labels(torch, row):
    """A network that gives each pixel a class, and its loss."""
    from torchvision.models import segmentation

    make = getattr(segmentation, row["model"])
    more = {} if row["model"].startswith("lraspp") else {"aux_loss": True}
    model = make(weights=None, weights_backbone=None, num_classes=21, **more)

    def loss(images, batch, image):
        target = torch.empty(batch, image, image, dtype=torch.int64)
        # Held until the next step's are there, as by the script.
        loss.out = model(images)
        parts = [torch.nn.functional.cross_entropy(x, target, ignore_index=255) for x in loss.out.values()]
        return parts[0] if len(parts) == 1 else parts[0] + 0.5 * parts[1]

    loss.images = lambda batch, image: torch.empty(batch, 3, image, image)
    return model, loss


def peak(row):
    import torch

    kind = dense_detection if "_fpn" in row["model"] else sys.modules[__name__]
    model, loss_of = kind.labels(torch, row)
    batch, image = int(row["batch"]), int(row["image"])
    with kind.gpu() as memory:
        trained = [p.requires_grad for p in model.parameters()]
        fake(torch, model).train()
        for p, grad in zip(model.parameters(), trained):
            p.requires_grad = grad
        standin.count(memory, model)
        print(sum(p.numel() for p in model.parameters()), sum(p.numel() for p in model.parameters() if p.requires_grad), file=sys.stderr)
        trained = [p for p in model.parameters() if p.requires_grad]
        if row["optimizer"] == "sgd-momentum":
            optimizer = torch.optim.SGD(trained, lr=0.01, momentum=0.9, foreach=True)
        else:
            optimizer = torch.optim.AdamW(trained, foreach=True)
        for _ in range(2):
            images = loss_of.images(batch, image)
            with torch.autocast("cuda", dtype=torch.float16, enabled=row["precision"] == "amp"):
                loss = loss_of(images, batch, image)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return memory.peak


if __name__ == "__main__":
    standin.fill(sys.argv[1], peak)
