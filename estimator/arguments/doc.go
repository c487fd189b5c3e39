// Package arguments reads the training's settings from the command line of a training
// program: batch size of a GPU, precision, sequence length, optimizer, adapters,
// checkpointing, sharding. It recognizes the arguments of the transformers library's
// Trainer, of TRL and of the launchers torchrun, accelerate and deepspeed, and reads the
// files that they name. It ignores unknown arguments, and never fails.
//
// The names and meanings of arguments come from transformers 5.23 (TrainingArguments),
// TRL 1.16 (ModelConfig), accelerate 1.15 and DeepSpeed 0.19.
package arguments
