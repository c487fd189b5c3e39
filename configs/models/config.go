package models

import (
	"slices"
	"strings"
)

// Schema is the version of the file format that this package writes.
const Schema = 1

// FromHF is the origin of a network that was read from a config.json of Hugging Face.
const FromHF = "transformers"

// Config is a model configuration: one network and how it is trained. See
// docs/estimators.md.
type Config struct {
	// Schema is the version of the file format.
	Schema int `json:"schema"`
	// Name of the model, for people: resnet50, bert_base.
	Name string `json:"name"`
	// Family is the kind of network; estimators are calibrated for each.
	Family Family `json:"family"`
	// Origin is the source of the layers: catalogue, transformers, probe, trace.
	Origin string `json:"origin,omitempty"`
	// Train are the settings of the training.
	Train Train `json:"train"`
	// Inputs are the tensors of one batch, per sample.
	Inputs []Input `json:"inputs"`
	// Layers are in the order of the forward pass.
	Layers []Layer `json:"layers"`
	// Warnings are facts that a reader had to assume, a sentence each.
	Warnings []string `json:"warnings,omitempty"`
}

// Family is a kind of network.
type Family string

// The families.
const (
	MLP         Family = "mlp"
	Conv        Family = "cnn"
	Transformer Family = "transformer"
	Recommender Family = "recommender"
	Detection   Family = "detection"
	Other       Family = "other"
)

// Train are the settings of a training. Zero values mean the defaults given
// below.
type Train struct {
	// Batch is the number of samples of one step on all GPUs together; at
	// least 1. With gradient accumulation it is the micro batch.
	Batch int `json:"batch"`
	// Accumulate is the number of backward passes before the optimizer's step; 0 and 1
	// mean one.
	Accumulate int `json:"accumulate,omitempty"`
	// Precision: fp32 (default), amp (autocast with 16-bit activations over
	// FP32 weights), bf16 or fp16 (weights and activations).
	Precision Precision `json:"precision,omitempty"`
	// Optimizer: adam (default), adamw, sgd, sgd-momentum, rmsprop, adagrad,
	// adafactor, adam8bit, adamw8bit, paged-adamw, paged-adamw8bit, lion, lion8bit,
	// muon, or none (inference and frozen weights).
	Optimizer Optimizer `json:"optimizer,omitempty"`
	// Implementation of the optimizer's step: foreach (default), fused or
	// for-loop.
	Implementation string `json:"implementation,omitempty"`
	// Masters: the optimizer updates 32-bit copies of 16-bit weights.
	Masters bool `json:"masters,omitempty"`
	// Attention: eager (single operations), sdpa or flash (one kernel); the layers' own
	// if empty.
	Attention string `json:"attention,omitempty"`
	// Padded: samples have different lengths, and the attention gets a mask.
	Padded bool `json:"padded,omitempty"`
	// Compile: torch.compile. It changes no figure, because its savings are not known.
	Compile bool `json:"compile,omitempty"`
	// Loss: full (default), or chunked: the logits of all tokens are never in memory at
	// once.
	Loss string `json:"loss,omitempty"`
	// Offload to the host's memory: optimizer, parameters, activations; several with
	// a comma between them.
	Offload string `json:"offload,omitempty"`
	// Checkpointing recomputes each block's activations in the backward pass.
	Checkpointing bool `json:"checkpointing,omitempty"`
	// EMA: a copy of the trained weights follows them, in 32 bits.
	EMA bool `json:"ema,omitempty"`
	// GPUs of the training; 0 and 1: one.
	GPUs int `json:"gpus,omitempty"`
	// Parallel: none (default), dp (DataParallel), ddp, zero1, zero2,
	// zero3, fsdp:full, fsdp:grad.
	Parallel Parallel `json:"parallel,omitempty"`
	// SequenceParallel is over how many GPUs the tokens of each sample are spread
	// (DeepSpeed-Ulysses, ring attention); 0 and 1: each sample is on one GPU.
	SequenceParallel int `json:"sequence_parallel,omitempty"`
	// ZeroGrad says when the gradients are set to none: before the forward pass (start,
	// the default), before the backward pass (backward), or after the optimizer's step
	// (end).
	ZeroGrad string `json:"zero_grad,omitempty"`
	// Cache: the script holds a language model's outputs until the next forward
	// pass is over, and with them the keys and values of its attention (use_cache
	// of the transformers library).
	Cache bool `json:"cache,omitempty"`
}

// Offloads reports whether what is offloaded to the host. With the parameters go
// their gradients and the optimizer's states.
func (t *Train) Offloads(what string) bool {
	if t.Offload == "" {
		return false // most trainings; it is asked for each weight
	}
	words := strings.Split(t.Offload, ",")
	return slices.Contains(words, what) || what == OffloadOptimizer && slices.Contains(words, OffloadParameters)
}

// The values of offloading.
const (
	OffloadOptimizer   = "optimizer"
	OffloadParameters  = "parameters"
	OffloadActivations = "activations"
)

// Precision of weights and activations.
type Precision string

// Precisions.
const (
	FP32 Precision = "fp32"
	AMP  Precision = "amp"
	BF16 Precision = "bf16"
	FP16 Precision = "fp16"
)

// Optimizer is the algorithm that updates the weights.
type Optimizer string

// Optimizers.
const (
	Adam        Optimizer = "adam"
	AdamW       Optimizer = "adamw"
	SGD         Optimizer = "sgd"
	SGDMomentum Optimizer = "sgd-momentum"
	RMSprop     Optimizer = "rmsprop"
	Adagrad     Optimizer = "adagrad"
	Adafactor   Optimizer = "adafactor"
	Adam8bit    Optimizer = "adam8bit"
	AdamW8bit   Optimizer = "adamw8bit"
	PagedAdamW  Optimizer = "paged-adamw"
	PagedAdamW8 Optimizer = "paged-adamw8bit"
	Lion        Optimizer = "lion"
	Lion8bit    Optimizer = "lion8bit"
	Muon        Optimizer = "muon" // for matrices in blocks; AdamW for the rest
	NoOptimizer Optimizer = "none"
)

// Parallel says how a training is distributed over GPUs.
type Parallel string

// Kinds of parallelism.
const (
	NotParallel  Parallel = "none"
	DataParallel Parallel = "dp"
	DDP          Parallel = "ddp"
	ZeRO1        Parallel = "zero1"
	ZeRO2        Parallel = "zero2"
	ZeRO3        Parallel = "zero3"
	FSDP         Parallel = "fsdp:full" // FULL_SHARD: weights, gradients, states
	FSDPGrad     Parallel = "fsdp:grad" // SHARD_GRAD_OP: weights stay together within a step
)

// Input is one tensor of a batch.
type Input struct {
	// Shape of one sample, without the batch dimension.
	Shape []int64 `json:"shape"`
	// Bytes of an element, 4 if 0. Token ids have 8.
	Bytes int `json:"bytes,omitempty"`
}

// Layer is one operation of the forward pass with one output.
type Layer struct {
	// Name is its path in the model, for people.
	Name string `json:"name,omitempty"`
	// Type is the operation, one of [Types].
	Type string `json:"type"`
	// Inputs are indices of the layers whose outputs it takes; -1 is the first of the
	// model's inputs, -2 the second. The default is the layer before, and for the first
	// layer the first input.
	Inputs []int `json:"inputs,omitempty"`
	// Holds are indices of earlier layers whose outputs the program still refers to while
	// this one runs, without using them: variables of a function that has not returned.
	Holds []int `json:"holds,omitempty"`
	// Out is the shape of its output for one sample, without the batch.
	Out []int64 `json:"out"`
	// Whole: the size of the output is Out whatever the batch is (a table of
	// positions, a reshaped weight).
	Whole bool `json:"whole,omitempty"`
	// Params are the numbers of elements of its parameter tensors.
	Params []int64 `json:"params,omitempty"`
	// Tied: its parameters belong to another layer and are counted there.
	Tied bool `json:"tied,omitempty"`
	// Frozen: its parameters are not trained.
	Frozen bool `json:"frozen,omitempty"`
	// Bits of each number of its parameters: 4 or 8 (quantized; not trained), 16 or 32;
	// the bits of the training's precision if 0.
	Bits int `json:"bits,omitempty"`
	// Kernel, Stride and Groups of convolutions and pools; 1 if empty.
	Kernel []int64 `json:"kernel,omitempty"`
	Stride int64   `json:"stride,omitempty"`
	Groups int64   `json:"groups,omitempty"`
	// Heads of attention; Unfused attention keeps its score matrix.
	Heads   int64 `json:"heads,omitempty"`
	Unfused bool  `json:"unfused,omitempty"`
	// Cell of a recurrent layer; nil for a layer of one direction, of any kind.
	Cell *Cell `json:"cell,omitempty"`
	// Cached: the model returns the layer's output for a cache; see [Train.Cache].
	Cached bool `json:"cached,omitempty"`
	// InPlace: the output overwrites the first input.
	InPlace bool `json:"in_place,omitempty"`
	// NoAutocast: it runs outside of autocast. Its output has the bits of its
	// parameters, or else of its inputs.
	NoAutocast bool `json:"no_autocast,omitempty"`
	// Block is the number of the block that checkpointing recomputes as one, from 1, or 0
	// if the layer is in no block.
	Block int `json:"block,omitempty"`
	// Keeps replaces the rule for the tensors that a layer of this type keeps for the
	// backward pass.
	Keeps *Keeps `json:"keeps,omitempty"`
}

// Keeps lists the tensors that a layer keeps for the backward pass. Tensors that several
// layers keep are stored once.
type Keeps struct {
	// Inputs are positions in [Layer.Inputs].
	Inputs []int `json:"inputs,omitempty"`
	// Wide are positions in [Layer.Inputs] too: of an input with 16-bit numbers, a
	// copy with 32-bit numbers is kept.
	Wide []int `json:"wide,omitempty"`
	// Output: its own output.
	Output bool `json:"output,omitempty"`
	// Bytes of other tensors (masks, indices, statistics), per sample and for the
	// whole batch.
	Bytes int64 `json:"bytes,omitempty"`
	Whole int64 `json:"whole,omitempty"`
}
