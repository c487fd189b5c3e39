"""Peak memory of training steps of ultralytics' networks for detection and segmentation, without a GPU and without weights.

    python yolo_steps.py ../step/testdata/yolo.csv

fills the column peak_bytes of rows that lack it; the table's head has the versions. standin.py says what is counted.
A step is that of ultralytics' trainer: the network and its loss under autocast, SGD with Nesterov momentum, a copy of
the network that follows its weights (EMA). Where shapes depend on the images, they are assumed: BOXES objects in an
image at most (four images are put together), and SHARE of the pairs of an anchor and an object lie within each other.
OWN anchors of an image learn a mask: ten for each object (tal_topk), of 25 objects. Masks have a quarter of the
image's sides (mask_ratio), and all of an image are in one (overlap_mask).
"""
import contextlib
import copy
import sys

import standin

BOXES, SHARE, OWN = 50, 0.03, 250


class Strides(list):
    """The strides as plain numbers: those of a fake tensor are not known."""

    def tolist(self):
        return list(self)


@contextlib.contextmanager
def objects(memory):
    """What belongs to an object is chosen by a table of truth values, OWN of which are true."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Objects(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.Tensor.__bool__:
                return True
            if func is torch.Tensor.__getitem__ and isinstance(args[1], torch.Tensor) and args[1].dtype == torch.bool:
                memory.share = OWN / args[1].numel()
                where = args[1].nonzero(as_tuple=True)
                memory.share = SHARE
                return args[0][where]
            return func(*args, **(kwargs or {}))

    with Objects():
        yield


def fake(torch, model):
    """Puts a model's tensors on the GPU that is not there."""
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is not None:
                module._parameters[name] = torch.nn.Parameter(torch.empty(p.shape), requires_grad=p.dtype.is_floating_point)
        for name, b in module._buffers.items():
            if b is not None:
                module._buffers[name] = torch.empty(b.shape, dtype=b.dtype)
    return model


def peak(row):
    import torch
    from ultralytics.cfg import get_cfg
    from ultralytics.nn.tasks import DetectionModel, SegmentationModel
    from ultralytics.utils.loss import v8DetectionLoss

    masks = row["model"].endswith("-seg")
    model = (SegmentationModel if masks else DetectionModel)(row["model"] + ".yaml", verbose=False)
    model.args = get_cfg()
    model.model[-1].stride = Strides([8.0, 16.0, 32.0])
    batch, image = int(row["batch"]), int(row["image"])
    v8DetectionLoss.preprocess = lambda self, targets, batch_size, scale_tensor: torch.empty(batch_size, BOXES, 5)
    with standin.gpu() as memory, objects(memory):
        fake(torch, model).train()
        for name, p in model.named_parameters():
            p.requires_grad = ".dfl" not in name
        ema = copy.copy(model), [torch.empty_like(t) for t in model.state_dict().values()]
        standin.count(memory, model)
        print(sum(p.numel() for p in model.parameters()), file=sys.stderr)
        memory.share = SHARE
        decayed = [p for n, p in model.named_parameters() if p.requires_grad and p.dim() > 1]
        others = [p for n, p in model.named_parameters() if p.requires_grad and p.dim() <= 1]
        make = torch.optim.SGD if row["optimizer"] == "sgd-momentum" else torch.optim.AdamW
        more = dict(momentum=0.937, nesterov=True) if row["optimizer"] == "sgd-momentum" else {}
        optimizer = make([{"params": decayed, "weight_decay": 5e-4}, {"params": others, "weight_decay": 0}], lr=0.01, foreach=True, **more)
        for _ in range(2):
            images = torch.empty(batch, 3, image, image, dtype=torch.uint8).float() / 255
            n = batch * 8
            data = {"img": images, "batch_idx": torch.empty(n), "cls": torch.empty(n, 1), "bboxes": torch.empty(n, 4)}
            if masks:
                data.update({name: torch.empty(batch, image // 4, image // 4, dtype=t) for name, t in {"masks": torch.uint8, "sem_masks": torch.float32}.items()})
            with torch.autocast("cuda", dtype=torch.float16, enabled=row["precision"] == "amp"):
                loss, _ = model(data)
                loss = loss.sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        del ema
    return memory.peak


if __name__ == "__main__":
    standin.fill(sys.argv[1], peak)
