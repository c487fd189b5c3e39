import sys

import torch
from torch import nn

dropout = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
vocabulary, width, length, batch = 100, 32, 12, 4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(1, length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=dropout, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.head(self.encoder(self.embedding(ids) + self.position))


model = Model().to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.cuda.amp.GradScaler()
for step in range(4):
    ids = torch.randint(0, vocabulary, (batch, length), device="cuda")
    with torch.cuda.amp.autocast():
        out = model(ids)
        loss = nn.functional.cross_entropy(out.view(-1, vocabulary), ids.view(-1))
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
print("trained to the end", loss.item())
