"""A language model of LSTM layers, truncated back-propagation, state carried on; lengths differ."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Model(nn.Module):
    def __init__(self, words=10_000, width=650):
        super().__init__()
        self.embed, self.drop = nn.Embedding(words, width), nn.Dropout(0.5)
        self.lstm = nn.LSTM(width, width, 2, dropout=0.5, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.drop(self.embed(ids)), lengths, batch_first=True, enforce_sorted=False)
        hidden, state = self.lstm(packed)
        hidden, _ = pad_packed_sequence(hidden, batch_first=True, total_length=ids.shape[1])
        return self.out(self.drop(hidden)), state


model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=20)
for step in range(20):
    ids = torch.randint(1, 10_000, (20, 71))
    lengths = torch.full((20,), 70)
    logits, state = model(ids[:, :-1].cuda(), lengths)
    loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].reshape(-1).cuda())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(step, loss.item())
