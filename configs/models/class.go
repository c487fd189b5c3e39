package models

import "strings"

// classes translates names of PyTorch modules.
var classes = map[string]string{
	"Conv1d": Convolution, "Conv2d": Convolution, "Conv3d": Convolution, "Conv2dSame": Convolution,
	"ConvTranspose1d": ConvTranspose, "ConvTranspose2d": ConvTranspose, "ConvTranspose3d": ConvTranspose,
	"Linear": Linear, "NonDynamicallyQuantizableLinear": Linear, "Conv1D": Linear, "Bilinear": Linear,
	"Embedding": Embedding, "EmbeddingBag": EmbeddingBag, "MultiheadAttention": Attention,
	"LSTM": Recurrent, "GRU": Recurrent, "RNN": Recurrent,
	"BatchNorm1d": BatchNorm, "BatchNorm2d": BatchNorm, "BatchNorm3d": BatchNorm, "SyncBatchNorm": BatchNorm,
	"BatchNormAct2d": BatchNorm, "FrozenBatchNorm2d": BatchNorm,
	"LayerNorm": LayerNorm, "LayerNorm2d": LayerNorm, "RMSNorm": RMSNorm, "LlamaRMSNorm": RMSNorm, "T5LayerNorm": RMSNorm,
	"GroupNorm": GroupNorm, "InstanceNorm1d": InstanceNorm, "InstanceNorm2d": InstanceNorm, "InstanceNorm3d": InstanceNorm,
	"ReLU": ReLU, "ReLU6": ReLU6, "LeakyReLU": LeakyReLU, "PReLU": PReLU, "ELU": ELU, "SELU": SELU, "CELU": ELU,
	"GELU": GELU, "GELUActivation": GELU, "NewGELUActivation": GELU, "FastGELUActivation": GELU, "GELUTanh": GELU,
	"SiLU": SiLU, "SiLUActivation": SiLU, "Swish": SiLU, "Mish": Mish, "Softplus": Softplus,
	"Tanh": Tanh, "Sigmoid": Sigmoid, "Hardswish": HardSwish, "Hardsigmoid": HardSigmoid,
	"Softmax": Softmax, "Softmax2d": Softmax, "LogSoftmax": LogSoftmax,
	"Dropout": Dropout, "Dropout1d": Dropout, "Dropout2d": Dropout, "Dropout3d": Dropout, "AlphaDropout": Dropout,
	"StochasticDepth": Mul, "DropPath": Mul,
	"MaxPool1d": MaxPool, "MaxPool2d": MaxPool, "MaxPool3d": MaxPool, "AdaptiveMaxPool2d": MaxPool, "LastLevelMaxPool": MaxPool,
	"AvgPool1d": AvgPool, "AvgPool2d": AvgPool, "AvgPool3d": AvgPool,
	"AdaptiveAvgPool1d": Mean, "AdaptiveAvgPool2d": Mean, "AdaptiveAvgPool3d": Mean, "SelectAdaptivePool2d": Mean,
	"Upsample": Upsample, "UpsamplingNearest2d": Upsample, "UpsamplingBilinear2d": Upsample, "PixelShuffle": Copy,
	"ZeroPad2d": Pad, "ConstantPad2d": Pad, "ReflectionPad2d": Pad, "ReplicationPad2d": Pad,
	"Identity": View, "Flatten": View, "Unflatten": View,
	"CrossEntropyLoss": CrossEntropy, "NLLLoss": Loss, "MSELoss": Loss, "BCELoss": Loss, "BCEWithLogitsLoss": Loss, "L1Loss": Loss,
}

// typeOf is the type of a PyTorch module; ok tells whether it is a known one.
func typeOf(class string) (kind string, ok bool) {
	if kind, ok = classes[class]; ok {
		return kind, true
	}
	if strings.HasSuffix(class, "RMSNorm") {
		return RMSNorm, true
	}
	return OtherLayer, false
}

// familyOf guesses the family from the layers and the classes seen.
func familyOf(layers []Layer, detector bool) Family {
	if detector {
		return Detection
	}
	n := map[string]int{}
	for i := range layers {
		n[layers[i].Type]++
	}
	switch {
	case n[EmbeddingBag] > 0:
		return Recommender
	case n[Attention] > 0 || n[Embedding] > 0 && n[LayerNorm]+n[RMSNorm] > 0 || n[LayerNorm] > 0 && n[Softmax] > 1:
		return Transformer
	case n[Convolution] > 0:
		return Conv
	case n[Linear] > 0 && n[Recurrent] == 0:
		return MLP
	}
	return Other
}

// FamilyOf guesses the family of a network from its layers.
func FamilyOf(layers []Layer) Family { return familyOf(layers, false) }

// detects tells from a module's class that the model finds objects.
func detects(class string) bool {
	return strings.Contains(class, "RegionProposal") || strings.Contains(class, "RoI") || strings.Contains(class, "RCNN") ||
		strings.HasPrefix(class, "SSD") || strings.HasPrefix(class, "RetinaNet") || strings.HasPrefix(class, "YOLO")
}
