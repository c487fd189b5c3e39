import torch

all = [torch.ones(1 << 26).cuda() for _ in range(64)]  # 16 GiB
