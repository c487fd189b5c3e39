"""Peak memory of training steps of PyTorch Geometric's networks on a whole graph, without a GPU.

    python gnn_steps.py ../step/testdata/gnn.csv

fills the column peak_bytes of rows that lack it; the table's head has the versions. standin.py says what is counted.
Self-loops are assumed to be missing in the graph: how many there are depends on its edges.
"""
import sys

import standin


def peak(row):
    import torch
    import torch_geometric.nn.conv.gat_conv as gat
    import torch_geometric.nn.conv.gcn_conv as gcn
    from torch_geometric.nn import models

    nodes, edges, features, hidden, layers, classes, heads = (
        int(row[k] or 1) for k in ("nodes", "edges", "features", "hidden", "layers", "classes", "heads"))

    def with_loops(edge_index, edge_attr=None, fill_value=None, num_nodes=None):
        loops = torch.arange(nodes).unsqueeze(0).repeat(2, 1)
        edge_index = torch.cat([edge_index.clone(), loops], dim=1)
        if edge_attr is not None:
            edge_attr = torch.cat([edge_attr, torch.ones(nodes)])
        return edge_index, edge_attr

    gcn.add_remaining_self_loops = with_loops
    gat.add_self_loops = with_loops
    gat.remove_self_loops = lambda edge_index, edge_attr=None: (edge_index.clone(), edge_attr)
    kind = {"gcn": models.GCN, "gat": models.GAT, "graphsage": models.GraphSAGE}[row["model"]]
    more = {"heads": heads} if row["model"] == "gat" else {}
    with standin.gpu() as memory:
        model = kind(features, hidden, layers, classes, dropout=0.5, **more).train()
        standin.count(memory, model)
        print(sum(p.numel() for p in model.parameters()), file=sys.stderr)
        x, y = torch.empty(nodes, features), torch.empty(nodes, dtype=torch.int64)
        edge_index = torch.empty(2, edges, dtype=torch.int64)
        optimizer = torch.optim.Adam(model.parameters(), foreach=True)
        for _ in range(2):
            loss = torch.nn.functional.cross_entropy(model(x, edge_index), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return memory.peak


if __name__ == "__main__":
    standin.fill(sys.argv[1], peak)
