"""Whisper small learns a language, with the Seq2SeqTrainer of transformers; the encoder stays as it is."""
import torch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, WhisperConfig, WhisperForConditionalGeneration

config = WhisperConfig(d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12,
                       encoder_ffn_dim=3072, decoder_ffn_dim=3072)
model = WhisperForConditionalGeneration(config)
model.freeze_encoder()
rows = [{"input_features": torch.randn(80, 3000), "labels": torch.randint(0, 50000, (96,))} for _ in range(16)]
arguments = Seq2SeqTrainingArguments("results", per_device_train_batch_size=8, learning_rate=1e-5, fp16=True, max_steps=10, report_to=[],
                                     save_strategy="no", predict_with_generate=False)
Seq2SeqTrainer(model=model, args=arguments, train_dataset=rows).train()
