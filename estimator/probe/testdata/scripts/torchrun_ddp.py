"""torchrun --nproc-per-node=2 torchrun_ddp.py: a convolutional network on several GPUs."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group(backend="nccl")
rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
layers, width = [], 3
for out in (64, 128, 256, 512):
    layers += [nn.Conv2d(width, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    width = out
net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))
net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
net = DistributedDataParallel(net.to(local), device_ids=[local])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
data = TensorDataset(torch.randn(256, 3, 64, 64), torch.randint(0, 100, (256,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler, num_workers=2, pin_memory=True)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.to(local, non_blocking=True)), y.to(local))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach())
        if rank == 0:
            print("loss", loss.item() / dist.get_world_size())
dist.destroy_process_group()
