"""GraphSAGE of PyTorch Geometric over a whole graph."""
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

nodes, edges = 20_000, 160_000
data = Data(x=torch.randn(nodes, 256), edge_index=torch.randint(0, nodes, (2, edges)), y=torch.randint(0, 40, (nodes,)))
data.train_mask = torch.rand(nodes) < 0.6


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = SAGEConv(256, 256), SAGEConv(256, 40)

    def forward(self, x, edges):
        x = F.dropout(F.relu(self.one(x, edges)), p=0.5, training=self.training)
        return self.two(x, edges)


model, data = Net().cuda(), data.cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(100):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    print(epoch, float(loss))
