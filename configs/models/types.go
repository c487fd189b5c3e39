package models

// Types of layers. The importers translate names of PyTorch modules into these.
const (
	Convolution   = "conv"           // 1 to 3 dimensions, by the kernel's length
	ConvTranspose = "conv_transpose" // transposed convolution
	Linear        = "linear"
	Embedding     = "embedding"
	EmbeddingBag  = "embedding_bag"
	Attention     = "attention" // inputs query, key, value; fused unless Unfused
	MatMul        = "matmul"    // product of two activations
	Recurrent     = "recurrent" // an LSTM or GRU layer

	BatchNorm    = "batch_norm"
	LayerNorm    = "layer_norm"
	RMSNorm      = "rms_norm"
	GroupNorm    = "group_norm"
	InstanceNorm = "instance_norm"

	ReLU        = "relu"
	ReLU6       = "relu6"
	LeakyReLU   = "leaky_relu"
	PReLU       = "prelu"
	ELU         = "elu"
	SELU        = "selu"
	GELU        = "gelu"
	SiLU        = "silu"
	Mish        = "mish"
	Softplus    = "softplus"
	Tanh        = "tanh"
	Sigmoid     = "sigmoid"
	HardSwish   = "hard_swish"
	HardSigmoid = "hard_sigmoid"
	Softmax     = "softmax"
	LogSoftmax  = "log_softmax"

	Dropout  = "dropout"
	MaxPool  = "max_pool"
	AvgPool  = "avg_pool"
	Upsample = "upsample"
	Pad      = "pad"
	Mean     = "mean" // mean over dimensions; also adaptive average pooling to 1x1

	Pow    = "pow"
	Add    = "add"
	Mul    = "mul"
	Concat = "concat"
	Copy   = "copy" // a new tensor that keeps nothing for the backward pass: contiguous, roll, cast
	View   = "view" // shares the input's storage: flatten, reshape, slice, identity

	CrossEntropy = "cross_entropy"
	Loss         = "loss" // any other loss, a scalar
	OtherLayer   = "other"
)

// Types lists every type of layer.
func Types() []string {
	return []string{
		Convolution, ConvTranspose, Linear, Embedding, EmbeddingBag, Attention, MatMul, Recurrent,
		BatchNorm, LayerNorm, RMSNorm, GroupNorm, InstanceNorm,
		ReLU, ReLU6, LeakyReLU, PReLU, ELU, SELU, GELU, SiLU, Mish, Softplus, Tanh, Sigmoid,
		HardSwish, HardSigmoid, Softmax, LogSoftmax,
		Dropout, MaxPool, AvgPool, Upsample, Pad, Mean,
		Pow, Add, Mul, Concat, Copy, View,
		CrossEntropy, Loss, OtherLayer,
	}
}
