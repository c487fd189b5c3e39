"""BERT learns to classify sentences, with the Trainer of transformers."""
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return {"input_ids": torch.randint(5, 30000, (128,), generator=g), "attention_mask": torch.ones(128, dtype=torch.long),
                "labels": torch.tensor(i % 2)}


model = BertForSequenceClassification(BertConfig())
arguments = TrainingArguments("results", per_device_train_batch_size=32, num_train_epochs=1, learning_rate=2e-5, bf16=True,
                              logging_steps=1, report_to=[], save_strategy="no", dataloader_num_workers=2)
Trainer(model=model, args=arguments, train_dataset=Sentences(), eval_dataset=Sentences()).train()
