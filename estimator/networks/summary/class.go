package summary

import (
	"strings"

	"carma/configs/models"
)

// classes maps names of PyTorch modules to layer types.
var classes = map[string]string{
	"Conv1d": models.Convolution, "Conv2d": models.Convolution, "Conv3d": models.Convolution, "Conv2dSame": models.Convolution,
	"ConvTranspose1d": models.ConvTranspose, "ConvTranspose2d": models.ConvTranspose, "ConvTranspose3d": models.ConvTranspose,
	"Linear": models.Linear, "NonDynamicallyQuantizableLinear": models.Linear, "Conv1D": models.Linear, "Bilinear": models.Linear,
	"Embedding": models.Embedding, "EmbeddingBag": models.EmbeddingBag, "MultiheadAttention": models.Attention,
	"LSTM": models.Recurrent, "GRU": models.Recurrent, "RNN": models.Recurrent,
	"BatchNorm1d": models.BatchNorm, "BatchNorm2d": models.BatchNorm, "BatchNorm3d": models.BatchNorm, "SyncBatchNorm": models.BatchNorm,
	"BatchNormAct2d": models.BatchNorm, "FrozenBatchNorm2d": models.BatchNorm,
	"LayerNorm": models.LayerNorm, "LayerNorm2d": models.LayerNorm, "RMSNorm": models.RMSNorm, "LlamaRMSNorm": models.RMSNorm, "T5LayerNorm": models.RMSNorm,
	"GroupNorm": models.GroupNorm, "InstanceNorm1d": models.InstanceNorm, "InstanceNorm2d": models.InstanceNorm, "InstanceNorm3d": models.InstanceNorm,
	"ReLU": models.ReLU, "ReLU6": models.ReLU6, "LeakyReLU": models.LeakyReLU, "PReLU": models.PReLU, "ELU": models.ELU, "SELU": models.SELU, "CELU": models.ELU,
	"GELU": models.GELU, "GELUActivation": models.GELU, "NewGELUActivation": models.GELU, "FastGELUActivation": models.GELU, "GELUTanh": models.GELU,
	"SiLU": models.SiLU, "SiLUActivation": models.SiLU, "Swish": models.SiLU, "Mish": models.Mish, "Softplus": models.Softplus,
	"Tanh": models.Tanh, "Sigmoid": models.Sigmoid, "Hardswish": models.HardSwish, "Hardsigmoid": models.HardSigmoid,
	"Softmax": models.Softmax, "Softmax2d": models.Softmax, "LogSoftmax": models.LogSoftmax,
	"Dropout": models.Dropout, "Dropout1d": models.Dropout, "Dropout2d": models.Dropout, "Dropout3d": models.Dropout, "AlphaDropout": models.Dropout,
	"StochasticDepth": models.Mul, "DropPath": models.Mul,
	"MaxPool1d": models.MaxPool, "MaxPool2d": models.MaxPool, "MaxPool3d": models.MaxPool, "AdaptiveMaxPool2d": models.MaxPool, "LastLevelMaxPool": models.MaxPool,
	"AvgPool1d": models.AvgPool, "AvgPool2d": models.AvgPool, "AvgPool3d": models.AvgPool,
	"AdaptiveAvgPool1d": models.Mean, "AdaptiveAvgPool2d": models.Mean, "AdaptiveAvgPool3d": models.Mean, "SelectAdaptivePool2d": models.Mean,
	"Upsample": models.Upsample, "UpsamplingNearest2d": models.Upsample, "UpsamplingBilinear2d": models.Upsample, "PixelShuffle": models.Copy,
	"ZeroPad2d": models.Pad, "ConstantPad2d": models.Pad, "ReflectionPad2d": models.Pad, "ReplicationPad2d": models.Pad,
	"Identity": models.View, "Flatten": models.View, "Unflatten": models.View,
	"CrossEntropyLoss": models.CrossEntropy, "NLLLoss": models.Loss, "MSELoss": models.Loss, "BCELoss": models.Loss, "BCEWithLogitsLoss": models.Loss, "L1Loss": models.Loss,
}

// typeOf is the layer type of a PyTorch module; not ok: unknown.
func typeOf(class string) (kind string, ok bool) {
	if kind, ok = classes[class]; ok {
		return kind, true
	}
	if strings.HasSuffix(class, "RMSNorm") {
		return models.RMSNorm, true
	}
	return models.OtherLayer, false
}

// detects reports whether a module of this class shows that the model detects
// objects.
func detects(class string) bool {
	return strings.Contains(class, "RegionProposal") || strings.Contains(class, "RoI") || strings.Contains(class, "RCNN") ||
		strings.HasPrefix(class, "SSD") || strings.HasPrefix(class, "RetinaNet") || strings.HasPrefix(class, "YOLO")
}
