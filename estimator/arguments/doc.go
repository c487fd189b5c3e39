// Package arguments reads from the command line of a training program how it trains:
// batch size of a GPU, precision, sequence length, optimizer, adapters, checkpointing,
// sharding. It knows the arguments of the Trainer of the transformers library, of TRL and
// of the launchers torchrun, accelerate and deepspeed, and the files that they name. It
// ignores arguments that it does not know, and never fails.
//
// The names of arguments and their meaning come from transformers 5.23
// (TrainingArguments), TRL 1.16 (ModelConfig), accelerate 1.15 and DeepSpeed 0.19.
package arguments
