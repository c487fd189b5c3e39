package step

import (
	"math"

	"carma/configs/models"
)

// keep fills in the tensors that the layer keeps for its gradient.
func (p *planner) keep(l *models.Layer, out *layer, v value, n int64) {
	if k := l.Keeps; k != nil {
		for _, at := range k.Inputs {
			if at >= 0 && at < len(out.inputs) {
				out.kept = append(out.kept, p.values[out.inputs[at]].storage)
			}
		}
		if k.Output {
			out.kept = append(out.kept, v.storage)
		}
		wide := p.keepWide(k.Wide, out)
		out.extra = bounded(wide + float64(k.Bytes)*p.samples() + float64(k.Whole))
		return
	}
	k := keepsOf(l)
	copies := 0.0
	masked := l.Type == models.Attention && p.masked(l)
	if k.input && needsInput(l) {
		for at, f := range out.inputs {
			switch v := p.values[f]; {
			case at > 2 && l.Type == models.Attention && p.unfused(l): // adding it to the scores keeps nothing
			case p.widens(l) && v.element == 2:
				copies += 2 * float64(v.bytes)
			case masked && at > 0 && at < 3 && !p.made(f, models.Copy): // keys and values, repeated for each head
				copies += float64(p.values[out.inputs[0]].bytes)
			case masked && at == 0 && p.made(f, models.View): // part of a joint projection
				copies += float64(v.bytes)
			case p.casts(l) && v.element == 4:
				copies += float64(min(v.bytes, p.storages[v.storage].bytes)) / 2
			case l.Bits == 32 && v.element == 2: // an adapter converts it to 32 bits and back
				copies += float64(v.bytes)
			default:
				out.kept = append(out.kept, v.storage)
			}
		}
	}
	if k.output {
		out.kept = append(out.kept, v.storage)
	}
	if k.clone {
		out.clone = v.bytes
	}
	out.extra = bounded(copies + float64(k.perOut)*float64(n))
	if l.Type == models.Attention {
		out.extra = bounded(copies + p.scores(l, out))
	}
	if l.Cell != nil && l.Type == models.Recurrent {
		out.extra = bounded(copies + p.reserve(l, v, n))
	}
}

// reserve returns the bytes that a recurrent layer keeps besides its input and output:
// cuDNN's reserve space and the initial states.
func (p *planner) reserve(l *models.Layer, v value, n int64) float64 {
	numbers, masks := l.Cell.Reserve(n)
	return (float64(numbers)+float64(l.Cell.States())*float64(p.batch))*float64(v.element) + float64(masks)
}

// made reports whether value is the output of a layer of that kind.
func (p *planner) made(value int32, kind string) bool {
	i := int(value) - p.inputs
	return i >= 0 && i < len(p.layers) && p.layers[i].kind == kind
}

// casts reports whether autocast gives the layer 16-bit copies of 32-bit inputs. Each
// layer gets its own copies and keeps them.
func (p *planner) casts(l *models.Layer) bool {
	return p.autocast && !l.NoAutocast && halves(l)
}

// widens reports whether autocast gives the layer 32-bit copies of 16-bit inputs.
func (p *planner) widens(l *models.Layer) bool {
	return p.autocast && !l.NoAutocast && full(l.Type)
}

// full reports whether autocast computes an operation in 32 bits.
func full(kind string) bool {
	switch kind {
	case models.LayerNorm, models.RMSNorm, models.GroupNorm, models.Softmax, models.LogSoftmax, models.Pow, models.CrossEntropy, models.Loss, models.Upsample:
		return true
	}
	return false
}

// halves reports whether autocast computes an operation in 16 bits. The output of
// bitsandbytes' 4-bit and 8-bit products has the type of their input (Linear4bit and
// MatMul8bitLt of 0.50).
func halves(l *models.Layer) bool {
	if l.Bits == 8 || l.Bits == 4 {
		return false
	}
	switch l.Type {
	case models.Convolution, models.ConvTranspose, models.Linear, models.MatMul, models.Attention, models.Recurrent:
		return true
	}
	return false
}

// keepWide keeps inputs in 32 bits. It returns the bytes of the necessary copies.
func (p *planner) keepWide(inputs []int, out *layer) (copies float64) {
	for _, at := range inputs {
		if at < 0 || at >= len(out.inputs) {
			continue
		}
		if v := p.values[out.inputs[at]]; v.element == 2 {
			copies += 2 * float64(v.bytes)
		} else {
			out.kept = append(out.kept, v.storage)
		}
	}
	return copies
}

// scores returns the bytes that attention keeps in addition to its operands. A fused
// kernel keeps one sum per row. Unfused attention keeps the scores after the softmax,
// which is computed in 32 bits.
func (p *planner) scores(l *models.Layer, out *layer) float64 {
	heads, rows, columns := p.grid(l, out)
	v := p.values[out.inputs[0]]
	if !p.unfused(l) {
		if p.masked(l) { // each layer makes the mask in the type of the queries
			return (4*heads*rows + rows*columns*float64(v.element)) * p.samples()
		}
		return 4 * heads * rows * p.samples()
	}
	each := 4.0 // after the softmax, in 32 bits
	if p.values[out.value].element == 2 {
		each += 2 // and the 16-bit copy for the next product
	}
	return each * heads * rows * columns * p.samples()
}

// grid returns the number of attention scores of a sample: heads, query tokens and key
// tokens.
func (p *planner) grid(l *models.Layer, out *layer) (heads, rows, columns float64) {
	heads = float64(max(l.Heads, 1))
	if p.values[out.inputs[0]].part {
		heads = float64(p.parted(max(l.Heads, 1)))
	}
	rows = float64(ahead(l.Out))
	columns = rows
	switch {
	case len(l.Inputs) > 3 && l.Inputs[3] >= 0: // a mask or bias; with windows, it has the window's width
		columns = float64(last(p.config.Layers[l.Inputs[3]].Out))
	case len(l.Inputs) > 1 && l.Inputs[1] >= 0 && len(p.config.Layers[l.Inputs[1]].Out) > 1: // keys
		columns = float64(ahead(p.config.Layers[l.Inputs[1]].Out))
	}
	return heads, rows, columns
}

// ahead returns the second last dimension, or 1 if there is none.
func ahead(shape []int64) int64 {
	if len(shape) < 2 {
		return 1
	}
	return shape[len(shape)-2]
}

func last(shape []int64) int64 {
	if len(shape) == 0 {
		return 1
	}
	return shape[len(shape)-1]
}

// unfused reports whether attention is computed without a fused kernel.
func (p *planner) unfused(l *models.Layer) bool {
	switch p.train.Attention {
	case "eager":
		return true
	case "sdpa", "flash":
		return false
	}
	return l.Unfused
}

// masked reports whether the kernel of attention gets a mask. PyTorch's
// scaled_dot_product_attention gets one if samples are padded; the transformers library
// then repeats keys and values. Flash attention takes the samples without padding.
func (p *planner) masked(l *models.Layer) bool {
	return p.train.Padded && p.train.Attention != "flash" && !p.unfused(l) && len(l.Inputs) >= 3
}

func bounded(x float64) int64 {
	return int64(min(max(x, 0), math.MaxInt64/1024))
}
