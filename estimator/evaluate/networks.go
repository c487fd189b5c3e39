package evaluate

import (
	"fmt"
	"strconv"
	"strings"

	"carma/configs/models"
)

// layerTypes maps layer names in the networks' tables to types.
var layerTypes = map[string]string{
	"conv2d": models.Convolution, "linear": models.Linear, "bn2d": models.BatchNorm, "bn": models.BatchNorm,
	"dropout": models.Dropout, "avgpool": models.Mean, "softmax": models.Softmax, "identity": models.View,
	"relu": models.ReLU, "tanh": models.Tanh, "sigmoid": models.Sigmoid, "prelu": models.PReLU, "silu": models.SiLU,
	"leakyrelu": models.LeakyReLU, "gelu": models.GELU, "softplus": models.Softplus, "elu": models.ELU,
	"selu": models.SELU, "mish": models.Mish,
}

// chain turns a list of type:outputs:parameters into layers. Outputs are for one sample.
// Each layer takes the output of its predecessor.
func chain(list string, channels, side int64) ([]models.Layer, error) {
	var layers []models.Layer
	in := channels
	for i, item := range strings.Split(list, ";") {
		part := strings.Split(item, ":")
		if len(part) != 3 {
			return nil, fmt.Errorf("layer %d, %q, is not type:outputs:parameters", i+1, item)
		}
		kind, ok := layerTypes[part[0]]
		if !ok {
			return nil, fmt.Errorf("layer %d: unknown type %q", i+1, part[0])
		}
		out, err := strconv.ParseInt(part[1], 10, 64)
		if err != nil || out <= 0 {
			return nil, fmt.Errorf("layer %d: outputs %q is not a positive number", i+1, part[1])
		}
		params, err := strconv.ParseInt(part[2], 10, 64)
		if err != nil || params < 0 {
			return nil, fmt.Errorf("layer %d: parameters %q is not a number", i+1, part[2])
		}
		l := models.Layer{Type: kind, Out: []int64{out}}
		switch kind {
		case models.Convolution:
			c := max(out/(side*side), 1)
			l.Params = split(params, c)
			l.Kernel = kernel(params, in, c)
			l.Out = []int64{c, max(out/c, 1)}
			in = c
		case models.Linear:
			l.Params = split(params, out)
		case models.BatchNorm:
			l.Params = []int64{params / 2, params / 2}
		case models.PReLU:
			if params > 0 {
				l.Params = []int64{params}
			}
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// split separates the bias of a layer with out outputs from its weights.
func split(params, out int64) []int64 {
	if params <= out {
		return []int64{params}
	}
	return []int64{params - out, out}
}

// kernel computes the side of a convolution's square kernel from the number of parameters
// and the channels.
func kernel(params, in, out int64) []int64 {
	for k := int64(1); k <= 11; k++ {
		if params == k*k*in*out+out || params == k*k*in*out {
			return []int64{k, k}
		}
	}
	return []int64{3, 3}
}
