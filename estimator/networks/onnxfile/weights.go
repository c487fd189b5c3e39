package onnxfile

import "strings"

// trained guesses whether a tensor of the file is a parameter. A single number is
// one only if its name is a module's. Integers and buffers are none. Its use
// decides further (statistics of a batch norm, factors).
func trained(t *tensor) bool {
	if !real(t.kind) || buffer(t.name) {
		return false
	}
	return product(t.dims) > 1 || learned(t.name) && !generated(t.name)
}

// learned reports whether a single number with this name is trained.
func learned(name string) bool {
	for _, word := range []string{".", "scale", "weight", "gamma", "alpha", "temperature"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// generated reports whether an exporter has made up this name, so that it is not
// a module's.
func generated(name string) bool {
	for _, prefix := range []string{"/", "onnx::", "val_", "_val", "const", "scalar_tensor", "Constant"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.Contains(name, "Constant") || strings.Trim(name, "0123456789") == ""
}

// buffer reports whether the name is that of a tensor that PyTorch's modules hold
// but do not train.
func buffer(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch last {
	case "running_mean", "running_var", "num_batches_tracked", "inv_freq", "original_inv_freq", "position_ids", "token_type_ids",
		"attn_mask", "relative_position_index", "relative_coords_table", "anchors", "mean", "std":
		return true
	}
	return strings.HasSuffix(last, "_mask") || strings.HasSuffix(last, "_cached")
}

// filled reports whether a tensor of equal numbers stands for a weight, as in
// files without weights. It counts only in places where weights are used.
func (n *network) filled(v *value) bool {
	if !real(v.kind) || product(v.shape) < 2 || len(v.uses) == 0 || len(v.uses) > maxUses {
		return false
	}
	for _, use := range v.uses {
		c := &n.calls[use]
		first, last := 1, 2
		switch c.op {
		case "Conv", "ConvTranspose", "Gemm", "LayerNormalization":
		case "BatchNormalization":
			last = 4
		default:
			return false
		}
		for i := range c.in {
			if n.arg(c, i) == v && (i < first || i > last) {
				return false
			}
		}
	}
	return true
}
