// Package arguments reads from the command line of a training program how it trains:
// batch size of a GPU, precision, sequence length, optimizer, adapters, checkpointing,
// sharding. It knows the arguments of the Trainer of the transformers library, of TRL
// and of the launchers torchrun, accelerate and deepspeed, and the files that they
// name. What it does not know it leaves alone; it never fails.
//
// The names of arguments and their meaning are those of transformers 5.23
// (TrainingArguments), TRL 1.16 (ModelConfig), accelerate 1.15 and DeepSpeed 0.19.
package arguments
