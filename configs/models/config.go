package models

// Schema is the version of the file format that this package writes.
const Schema = 1

// Origins of imported configurations.
const (
	FromTorchsummary = "torchsummary"
	FromTorchinfo    = "torchinfo"
	FromTree         = "module-tree"
	FromONNX         = "onnx"
)

// Config is a model configuration: one network and how it is trained.
type Config struct {
	// Schema is the version of the file format.
	Schema int `json:"schema"`
	// Name of the model, for people: resnet50, bert_base.
	Name string `json:"name"`
	// Family chooses what is calibrated per kind of network.
	Family Family `json:"family"`
	// Origin says where the layers come from: catalogue, torchsummary,
	// torchinfo, module-tree, onnx, probe, trace.
	Origin string `json:"origin,omitempty"`
	// Train are the settings of the training.
	Train Train `json:"train"`
	// Inputs are the tensors of one batch, per sample.
	Inputs []Input `json:"inputs"`
	// Layers in the order of the forward pass.
	Layers []Layer `json:"layers"`
	// Warnings say what an import could not see.
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

// Train are the settings of a training. Zero values mean the defaults named.
type Train struct {
	// Batch is the number of samples of one step on all GPUs together; at
	// least 1. With gradient accumulation it is the micro batch.
	Batch int `json:"batch"`
	// Precision: fp32 (default), amp (autocast with 16-bit activations over
	// FP32 weights), bf16 or fp16 (weights and activations).
	Precision Precision `json:"precision,omitempty"`
	// Optimizer: adam (default), adamw, sgd, sgd-momentum, rmsprop, adagrad,
	// adafactor, adam8bit, lion, or none (inference and frozen weights).
	Optimizer Optimizer `json:"optimizer,omitempty"`
	// Implementation of the optimizer's step: foreach (default), fused or
	// for-loop.
	Implementation string `json:"implementation,omitempty"`
	// Checkpointing recomputes each block's activations in the backward pass.
	Checkpointing bool `json:"checkpointing,omitempty"`
	// GPUs the training runs on; 0 and 1: one.
	GPUs int `json:"gpus,omitempty"`
	// Parallel: none (default), dp (DataParallel), ddp, zero1, zero2, zero3.
	Parallel Parallel `json:"parallel,omitempty"`
}

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
	Lion        Optimizer = "lion"
	NoOptimizer Optimizer = "none"
)

// Parallel is how a training is spread over GPUs.
type Parallel string

// Kinds of parallelism.
const (
	NotParallel  Parallel = "none"
	DataParallel Parallel = "dp"
	DDP          Parallel = "ddp"
	ZeRO1        Parallel = "zero1"
	ZeRO2        Parallel = "zero2"
	ZeRO3        Parallel = "zero3"
)

// Input is one tensor of a batch.
type Input struct {
	// Shape of one sample, without the batch dimension.
	Shape []int64 `json:"shape"`
	// Bytes of an element; 0: 4. Token ids have 8.
	Bytes int `json:"bytes,omitempty"`
}

// Layer is one operation of the forward pass with one output.
type Layer struct {
	// Name is its path in the model, for people.
	Name string `json:"name,omitempty"`
	// Type is the operation, one of [Types].
	Type string `json:"type"`
	// Inputs are indices of the layers whose outputs it takes; -1 is the
	// first of the model's inputs, -2 the second. Empty: the layer before
	// (the first layer: the first input).
	Inputs []int `json:"inputs,omitempty"`
	// Out is the shape of its output for one sample, without the batch.
	Out []int64 `json:"out"`
	// Whole: the output is as large as Out whatever the batch is (a table of
	// positions, a reshaped weight).
	Whole bool `json:"whole,omitempty"`
	// Params are the numbers of elements of its parameter tensors.
	Params []int64 `json:"params,omitempty"`
	// Tied: its parameters are another layer's, so they are counted there.
	Tied bool `json:"tied,omitempty"`
	// Frozen: its parameters are not trained.
	Frozen bool `json:"frozen,omitempty"`
	// Kernel, Stride and Groups of convolutions and pools; empty: 1.
	Kernel []int64 `json:"kernel,omitempty"`
	Stride int64   `json:"stride,omitempty"`
	Groups int64   `json:"groups,omitempty"`
	// Heads of attention; Unfused attention keeps its score matrix.
	Heads   int64 `json:"heads,omitempty"`
	Unfused bool  `json:"unfused,omitempty"`
	// InPlace: the output takes its first input's place.
	InPlace bool `json:"in_place,omitempty"`
	// Block numbers the block that checkpointing recomputes as one, from 1;
	// 0: outside of blocks.
	Block int `json:"block,omitempty"`
	// Keeps replaces what layers of this type keep for the backward pass.
	Keeps *Keeps `json:"keeps,omitempty"`
}

// Keeps is what a layer keeps for the backward pass. Tensors that several
// layers keep are stored once.
type Keeps struct {
	// Inputs are positions in [Layer.Inputs].
	Inputs []int `json:"inputs,omitempty"`
	// Output: its own output.
	Output bool `json:"output,omitempty"`
	// Bytes of further tensors (masks, indices, statistics), per sample and
	// for the whole batch.
	Bytes int64 `json:"bytes,omitempty"`
	Whole int64 `json:"whole,omitempty"`
}
