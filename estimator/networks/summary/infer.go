package summary

import "carma/configs/models"

// filter has the facts about a convolution that follow from its parameters.
type filter struct {
	kernel []int64
	groups int64
	bias   bool
}

// depthwise means that every output channel has one input channel.
const depthwise = -1

// convolution finds the kernel of a convolution from cin to cout channels with
// this many parameters. groups may be depthwise.
func convolution(cin, cout, groups, params int64, dims int) (filter, bool) {
	if groups == depthwise {
		groups = cin
	}
	if cin < 1 || cout < 1 || cin%groups != 0 || cout%groups != 0 {
		return filter{}, false
	}
	each := models.Times(cin/groups, cout)
	for _, bias := range []bool{false, true} {
		weights := params
		if bias {
			weights -= cout
		}
		if weights < each || weights%each != 0 {
			continue
		}
		if kernel := kernelOf(weights/each, dims); kernel != nil {
			return filter{kernel, groups, bias}, true
		}
	}
	return filter{}, false
}

// kernelOf is a common kernel with this many elements: a cube, or a row.
func kernelOf(elements int64, dims int) []int64 {
	for k := int64(1); k <= 64; k++ {
		n := int64(1)
		for range dims {
			n *= k
		}
		if n > elements {
			break
		}
		if n == elements && (k%2 == 1 || k <= 4 || k%8 == 0 || k == 14) {
			kernel := make([]int64, dims)
			for i := range kernel {
				kernel[i] = k
			}
			return kernel
		}
	}
	if dims == 2 && (elements == 3 || elements == 5 || elements == 7 || elements == 11) {
		return []int64{1, elements}
	}
	return nil
}

// linear finds how many features a linear layer takes. It prefers a number that
// fits the shape before, then one with a bias.
func linear(out, params int64, before []int64) (in int64, bias bool) {
	if out < 1 || params%out != 0 {
		return 0, false
	}
	each := params / out
	if takes(before, each) && !takes(before, each-1) {
		return each, false
	}
	return each - 1, true
}

// takes reports whether a linear layer of so many features can take a shape: by
// its last dimension, or flattened.
func takes(shape []int64, features int64) bool {
	return features > 0 && len(shape) > 0 && (shape[len(shape)-1] == features || models.Product(shape) == features || shape[0] == features)
}

// strideOf is the factor by which a convolution or pool shrinks its input.
func strideOf(in, out []int64) int64 {
	if len(in) < 2 || len(out) != len(in) {
		return 0
	}
	a, b := in[len(in)-1], out[len(out)-1]
	return max(1, (a+b/2)/max(1, b))
}

// image guesses the shape of the image that the first convolution takes. It uses
// the convolution's output and parameters, and bounds of the elements of a sample
// (least, most; 0: unknown).
func image(out []int64, params int64, least, most float64) []int64 {
	dims := len(out) - 1
	for _, channels := range []int64{3, 1, 2, 4, 6, 12, 16, 32, 64} {
		f, ok := convolution(channels, out[0], 1, params, dims)
		if !ok || f.kernel[0] != f.kernel[dims-1] {
			continue
		}
		side, score := int64(0), 1e18
		for stride := int64(1); stride <= 16; stride *= 2 {
			for pad := int64(0); pad <= f.kernel[0]/2; pad++ {
				for slack := range stride {
					n := (out[dims]-1)*stride + f.kernel[dims-1] - 2*pad + slack
					elements := float64(models.Times(channels, power(n, dims)))
					if n < 1 || most > 0 && (elements < least || elements > most) {
						continue
					}
					s := float64(abs(n - out[dims]*stride)) // prefer exact multiples
					if n%32 != 0 && n != 28 && n != 299 {
						s += 100
					}
					if most == 0 {
						s += float64(200 * (stride - min(stride, 2)))
					}
					if s < score {
						side, score = n, s
					}
				}
			}
		}
		if side == 0 {
			continue
		}
		shape := []int64{channels}
		for i := 1; i <= dims; i++ {
			// The sides have the proportion of the output's.
			shape = append(shape, max(1, models.Times(side, out[i])/max(1, out[dims])))
		}
		return shape
	}
	return nil
}

func power(n int64, dims int) int64 {
	p := int64(1)
	for range dims {
		p = models.Times(p, n)
	}
	return p
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
