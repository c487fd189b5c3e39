"""A DCGAN: two networks and two optimizers in turn."""
import torch
from torch import nn


def up(a, b, stride=2, padding=1):
    return [nn.ConvTranspose2d(a, b, 4, stride, padding, bias=False), nn.BatchNorm2d(b), nn.ReLU(True)]


def down(a, b):
    return [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, inplace=True)]


maker = nn.Sequential(*up(100, 512, 1, 0), *up(512, 256), *up(256, 128), *up(128, 64), nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh()).cuda()
judge = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True), *down(64, 128), *down(128, 256), *down(256, 512),
                      nn.Conv2d(512, 1, 4, 1, 0, bias=False), nn.Flatten()).cuda()
first = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
second = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
loss = nn.BCEWithLogitsLoss()
images = torch.utils.data.DataLoader(torch.randn(512, 3, 64, 64), batch_size=128, shuffle=True)
yes, no = torch.ones(128, 1).cuda(), torch.zeros(128, 1).cuda()
for epoch in range(5):
    for real in images:
        fake = maker(torch.randn(128, 100, 1, 1, device="cuda"))
        wrong = loss(judge(real.cuda()), yes) + loss(judge(fake.detach()), no)
        first.zero_grad()
        wrong.backward()
        first.step()
        right = loss(judge(fake), yes)
        second.zero_grad()
        right.backward()
        second.step()
        print(wrong.item(), right.item())
