import torch

torch.nn.Linear(4, 4).cuda()
raise FileNotFoundError("no data set in /data")
