"""Numbers of parameters of models of the transformers library, made on the meta device, without weights.

    python transformers_params.py ../networks/hf ../networks/hf/testdata/parameters.csv

writes, for each row of the table (model, head), the column params with the library as installed. It prints the models
of the hub whose number of parameters is another one than that of their class (architectures).
"""
import csv
import sys

import torch
import transformers

import transformers_heads


def count(config, auto):
    config = dict(config)
    kind, classes = config.pop("model_type"), config.get("architectures") or []
    made = transformers.AutoConfig.for_model(kind, **config)
    if auto is None:
        auto = getattr(transformers, classes[0]) if classes else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = auto._from_config(made) if hasattr(auto, "_from_config") else auto.from_config(made)
        transformers_heads.as_loaded(torch, model, config)
    return sum(p.numel() for p in model.parameters())


def main():
    hub, table = sys.argv[1:3]
    configs = transformers_heads.configs(hub)
    rows = list(csv.DictReader(line for line in open(table) if not line.startswith("#")))
    head = [line for line in open(table) if line.startswith("#")]
    for row in rows:
        row["params"] = count(configs[row["model"]], transformers_heads.Head(row).auto(transformers, configs[row["model"]]["model_type"]))
    with open(table, "w", newline="") as f:
        f.writelines(head)
        w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        w.writeheader()
        w.writerows(rows)
    for m in transformers_heads.hub(hub):
        if "architectures" in m["config"]:
            n = count(m["config"], None)
            if n != m["params"]:
                print(m["names"][0], n)


if __name__ == "__main__":
    main()
