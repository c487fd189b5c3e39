package models

// FamilyOf guesses the family of a network from its layers.
func FamilyOf(layers []Layer) Family {
	n := map[string]int{}
	for i := range layers {
		n[layers[i].Type]++
	}
	switch {
	case n[EmbeddingBag] > 0:
		return Recommender
	case n[BatchNorm] > n[LayerNorm]+n[RMSNorm] && n[Convolution] > n[Attention]+n[MatMul]:
		return Conv // attention between convolutions, as in YOLO11
	case n[Attention] > 0 || n[Embedding] > 0 && n[LayerNorm]+n[RMSNorm] > 0 || n[LayerNorm] > 0 && n[Softmax] > 1:
		return Transformer
	case n[Convolution] > 0:
		return Conv
	case n[Linear] > 0 && n[Recurrent] == 0:
		return MLP
	}
	return Other
}
