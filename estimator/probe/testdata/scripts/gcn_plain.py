"""A graph convolution written by hand, with a sparse sum over edges."""
import torch
from torch import nn

nodes, edges, features = 5000, 40_000, 300
x, source, target = torch.randn(nodes, features), torch.randint(0, nodes, (edges,)), torch.randint(0, nodes, (edges,))
labels = torch.randint(0, 7, (nodes,)).cuda()
known = torch.nonzero(torch.rand(nodes) < 0.3).squeeze(1).cuda()


class Layer(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.linear = nn.Linear(a, b)

    def forward(self, x, source, target):
        x = self.linear(x)
        return torch.zeros_like(x).index_add_(0, target, x[source])


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Layer(features, 128), Layer(128, 7)

    def forward(self, x, source, target):
        return self.two(torch.relu(self.one(x, source, target)), source, target)


model = GCN().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
x, source, target = x.cuda(), source.cuda(), target.cuda()
for epoch in range(50):
    model.train()
    loss = nn.functional.cross_entropy(model(x, source, target)[known], labels[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(x, source, target).argmax(1)[known] == labels[known]).float().mean().item()
    print(epoch, loss.item(), right)
