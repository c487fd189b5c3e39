package models

import (
	"slices"
	"strings"
)

// Schema is the version of the file format that this package writes.
const Schema = 1

// FromHF is the origin of a network that was read from a config.json of Hugging Face.
const FromHF = "transformers"

// Config is a model configuration: a network and the settings of its training. See
// docs/estimators.md.
type Config struct {
	// Schema is the version of the file format.
	Schema int `json:"schema"`
	// Name is the name of the model, for people: resnet50, bert_base.
	Name string `json:"name"`
	// Family is the kind of network. Estimators are calibrated for each kind.
	Family Family `json:"family"`
	// Origin is the source of the layers: catalogue, transformers, probe, trace.
	Origin string `json:"origin,omitempty"`
	// Train contains the settings of the training.
	Train Train `json:"train"`
	// Inputs lists the tensors of one batch, per sample.
	Inputs []Input `json:"inputs"`
	// Layers lists the layers in the order of the forward pass.
	Layers []Layer `json:"layers"`
	// Warnings lists assumptions of the reader, a sentence each.
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

// Train contains the settings of a training. Zero values mean the defaults given below.
type Train struct {
	// Batch is the number of samples of one step on all GPUs together; at
	// least 1. With gradient accumulation it is the micro batch.
	Batch int `json:"batch"`
	// Accumulate is the number of backward passes before the optimizer's step; 0 and 1
	// mean one.
	Accumulate int `json:"accumulate,omitempty"`
	// Precision is fp32 (default), amp (autocast with 16-bit activations over FP32 weights),
	// bf16 or fp16 (weights and activations).
	Precision Precision `json:"precision,omitempty"`
	// Optimizer is adam (default), adamw, sgd, sgd-momentum, rmsprop, adagrad, adafactor,
	// adam8bit, adamw8bit, paged-adamw, paged-adamw8bit, lion, lion8bit, muon, or none
	// (inference and frozen weights).
	Optimizer Optimizer `json:"optimizer,omitempty"`
	// Implementation is the implementation of the optimizer's step: foreach (default), fused
	// or for-loop.
	Implementation string `json:"implementation,omitempty"`
	// Masters is set if the optimizer updates 32-bit copies of 16-bit weights.
	Masters bool `json:"masters,omitempty"`
	// Attention is eager (single operations), sdpa or flash (one kernel), or empty for the
	// layers' own.
	Attention string `json:"attention,omitempty"`
	// Padded is set if samples have different lengths, and the attention gets a mask.
	Padded bool `json:"padded,omitempty"`
	// Compile is set if the program uses torch.compile. It changes no figure, because its
	// savings are unknown.
	Compile bool `json:"compile,omitempty"`
	// Loss is full (default), or chunked: the logits of all tokens are never in memory at
	// once.
	Loss string `json:"loss,omitempty"`
	// Offload lists the parts offloaded to host memory, separated by commas: optimizer,
	// parameters, activations.
	Offload string `json:"offload,omitempty"`
	// Checkpointing recomputes each block's activations in the backward pass.
	Checkpointing bool `json:"checkpointing,omitempty"`
	// EMA is set if the program keeps a 32-bit moving average of the trained weights.
	EMA bool `json:"ema,omitempty"`
	// GPUs is the number of GPUs of the training; 0 and 1 mean one.
	GPUs int `json:"gpus,omitempty"`
	// Parallel is none (default), dp (DataParallel), ddp, zero1, zero2, zero3, fsdp:full,
	// fsdp:grad.
	Parallel Parallel `json:"parallel,omitempty"`
	// SequenceParallel is the number of GPUs over which the tokens of each sample are spread
	// (DeepSpeed-Ulysses, ring attention). 0 and 1 mean that each sample is on one GPU.
	SequenceParallel int `json:"sequence_parallel,omitempty"`
	// ZeroGrad is the time at which the gradients are set to none: before the forward pass
	// (start, the default), before the backward pass (backward), or after the optimizer's
	// step (end).
	ZeroGrad string `json:"zero_grad,omitempty"`
	// Cache is set if the script keeps a language model's outputs until the end of the next
	// forward pass, including the keys and values of its attention (use_cache of the
	// transformers library).
	Cache bool `json:"cache,omitempty"`
}

// Offloads reports whether what is offloaded to the host. Offloading the parameters also
// offloads their gradients and the optimizer's states.
func (t *Train) Offloads(what string) bool {
	if t.Offload == "" {
		return false // most trainings; Offloads is called for each weight
	}
	words := strings.Split(t.Offload, ",")
	return slices.Contains(words, what) || what == OffloadOptimizer && slices.Contains(words, OffloadParameters)
}

// The parts that can be offloaded.
const (
	OffloadOptimizer   = "optimizer"
	OffloadParameters  = "parameters"
	OffloadActivations = "activations"
)

// Precision is the precision of weights and activations.
type Precision string

// The precisions.
const (
	FP32 Precision = "fp32"
	AMP  Precision = "amp"
	BF16 Precision = "bf16"
	FP16 Precision = "fp16"
)

// Optimizer is the algorithm that updates the weights.
type Optimizer string

// The optimizers.
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

// Parallel is the way in which a training is distributed over GPUs.
type Parallel string

// The kinds of parallelism.
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
	// Shape is the shape of one sample, without the batch dimension.
	Shape []int64 `json:"shape"`
	// Bytes is the size of an element, or 0 for 4. Token ids have 8.
	Bytes int `json:"bytes,omitempty"`
}

// Layer is one operation of the forward pass with one output.
type Layer struct {
	// Name is its path in the model, for people.
	Name string `json:"name,omitempty"`
	// Type is the operation, one of [Types].
	Type string `json:"type"`
	// Inputs lists the indices of the layers whose outputs the layer takes. -1 is the first
	// of the model's inputs, -2 the second. The default is the preceding layer, and for the
	// first layer the first input.
	Inputs []int `json:"inputs,omitempty"`
	// Holds lists earlier layers by index. While this layer runs, the program still
	// references their outputs without using them, as variables of a function that has not
	// returned.
	Holds []int `json:"holds,omitempty"`
	// Out is the shape of its output for one sample, without the batch.
	Out []int64 `json:"out"`
	// Whole is set if the size of the output is Out regardless of the batch (a table of
	// positions, a reshaped weight).
	Whole bool `json:"whole,omitempty"`
	// Params lists the numbers of elements of its parameter tensors.
	Params []int64 `json:"params,omitempty"`
	// Tied is set if its parameters belong to another layer and are counted there.
	Tied bool `json:"tied,omitempty"`
	// Frozen is set if its parameters are not trained.
	Frozen bool `json:"frozen,omitempty"`
	// Bits is the size of each number of its parameters: 4 or 8 (quantized; not trained), 16
	// or 32, or 0 for the training's precision.
	Bits int `json:"bits,omitempty"`
	// Kernel, Stride and Groups belong to convolutions and pools; empty means 1.
	Kernel []int64 `json:"kernel,omitempty"`
	Stride int64   `json:"stride,omitempty"`
	Groups int64   `json:"groups,omitempty"`
	// Heads is the number of attention heads. Unfused attention stores its score matrix.
	Heads   int64 `json:"heads,omitempty"`
	Unfused bool  `json:"unfused,omitempty"`
	// Cell describes a recurrent layer. It is nil for any layer of one direction.
	Cell *Cell `json:"cell,omitempty"`
	// Cached is set if the model returns the layer's output for a cache; see [Train.Cache].
	Cached bool `json:"cached,omitempty"`
	// InPlace is set if the output overwrites the first input.
	InPlace bool `json:"in_place,omitempty"`
	// NoAutocast is set if the layer runs outside of autocast. Its output then has the bits
	// of its parameters, or else of its inputs.
	NoAutocast bool `json:"no_autocast,omitempty"`
	// Block is the number of the block that checkpointing recomputes as one, from 1, or 0
	// if the layer is in no block.
	Block int `json:"block,omitempty"`
	// Keeps replaces the default rule for the tensors that a layer of this type keeps for
	// the backward pass.
	Keeps *Keeps `json:"keeps,omitempty"`
}

// Keeps lists the tensors that a layer keeps for the backward pass. Tensors that several
// layers keep are stored once.
type Keeps struct {
	// Inputs lists positions in [Layer.Inputs].
	Inputs []int `json:"inputs,omitempty"`
	// Wide also lists positions in [Layer.Inputs]: for an input of 16-bit numbers, a 32-bit
	// copy is kept.
	Wide []int `json:"wide,omitempty"`
	// Output: its own output.
	Output bool `json:"output,omitempty"`
	// Bytes is the size of other tensors (masks, indices, statistics), per sample and for
	// the whole batch.
	Bytes int64 `json:"bytes,omitempty"`
	Whole int64 `json:"whole,omitempty"`
}
