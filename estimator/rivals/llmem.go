package rivals

import (
	"fmt"

	"carma/configs/models"
	"carma/estimator/methods"
)

// LLMem follows Kim et al., IJCAI '24 (arXiv 2404.10933), for fine-tuning decoder-only
// transformers, in bytes on one GPU:
//
//	context + w ceil(P / C) C + s P' + w outputs + (w + 8) T V
//
// w is the size of a weight (2 in 16 bits and with autocast, else 4), P the number of
// parameters, P' the number of trained parameters, C the size of a chunk, s the
// optimizer's states per parameter, T the tokens of a batch, V the vocabulary. The parts
// are taken from the paper's abstract and from summaries of it: a base with the CUDA
// context; parameters in chunks, whose memory the gradients reuse; optimizer states;
// outputs of the transformer layers; and the lm-head.
//
// The paper's formulas were not available. carma's interpretation: a chunk is as large as
// the largest layer. s is 12 for Adam in 16 bits (a copy and two moments of 4 bytes each)
// and 8 in 32. The outputs of all operators except views count. The lm-head has logits,
// their copy in 4 bytes, and its gradient. ZeRO divides the states by the number of GPUs,
// and stage 3 the chunks too. Tensor parallelism is left out, because configurations do
// not have it.
type LLMem struct{}

// Name returns "llmem".
func (LLMem) Name() string { return "llmem" }

// Source names the method's publication.
func (LLMem) Source() string {
	return "Kim et al., IJCAI '24, arXiv 2404.10933; formulas partly our reading"
}

// Estimate computes the formula.
func (LLMem) Estimate(s methods.Subject) (methods.Answer, error) {
	c, n, err := config(s)
	if err != nil {
		return methods.Answer{}, err
	}
	head, err := languageHead(c)
	if err != nil {
		return methods.Answer{}, err
	}
	w := int64(4)
	switch c.Train.Precision {
	case models.AMP, models.BF16, models.FP16:
		w = 2
	}
	var chunks, states, outputs, logits sum
	if n.largest > 0 {
		chunks.add(w, (n.params-1)/n.largest+1, n.largest)
	}
	if err := llmemStates(c, w, &states); err != nil {
		return methods.Answer{}, err
	}
	for i := range c.Layers {
		if l := &c.Layers[i]; i != head && keepsOutput(l) {
			out, ok := elements(l.Out)
			outputs.bad = outputs.bad || !ok
			batch := n.batch
			if l.Whole {
				batch = 1
			}
			outputs.add(w, out, batch)
			outputs.add(scores(l), n.batch)
		}
	}
	out, ok := elements(c.Layers[head].Out)
	logits.add(w+8, out, n.batch)
	if !ok || chunks.bad || states.bad || outputs.bad || logits.bad {
		return methods.Answer{}, fmt.Errorf("model %s at batch size %d is out of range", c.Name, n.batch)
	}
	switch c.Train.Parallel {
	case models.ZeRO3:
		chunks.n = (chunks.n-1)/n.gpus + 1
		states.n /= n.gpus
	case models.ZeRO1, models.ZeRO2:
		states.n /= n.gpus
	}
	context := int64(contextBytes)
	if s.Environment != nil {
		context = s.Environment.ContextFor(false)
	}
	a, err := exactly(
		methods.Part{Name: "context", Bytes: context}, methods.Part{Name: "weights", Bytes: chunks.n}, methods.Part{Name: "optimizer", Bytes: states.n},
		methods.Part{Name: "activations", Bytes: outputs.n}, methods.Part{Name: "lm-head", Bytes: logits.n},
	)
	a.Warnings = []string{"Made for decoders: an encoder with a language head cannot be told from one."}
	return a, err
}

// llmemStates adds the optimizer's states of the trained parameters.
func llmemStates(c *models.Config, w int64, states *sum) error {
	per := 16 - 2*w // with Adam: 12 in 16 bits, 8 in 32
	switch c.Train.Optimizer {
	case "", models.Adam, models.AdamW:
	case models.SGD:
		per -= 8
	default:
		return fmt.Errorf("optimizer %s: %w", c.Train.Optimizer, methods.ErrNotApplicable)
	}
	for _, l := range c.Layers {
		for _, p := range l.Params {
			if !l.Tied && !l.Frozen {
				states.add(per, p)
			}
		}
	}
	return nil
}

// keepsOutput reports whether the layer makes a tensor that counts.
func keepsOutput(l *models.Layer) bool {
	switch l.Type {
	case models.View, models.Loss, models.CrossEntropy:
		return false
	}
	return !l.InPlace
}

// languageHead returns the index of the lm-head: the last linear layer, as wide as an
// embedding has rows, in a network of attention over tokens. Labels may be the only other
// input; encoders and pairs have more.
func languageHead(c *models.Config) (int, error) {
	head, attention := -1, false
	for i, l := range c.Layers {
		attention = attention || l.Type == models.Attention
		if l.Type == models.Linear && len(l.Out) > 0 {
			head = i
		}
	}
	if c.Family != models.Transformer || !attention || head < 0 || len(c.Inputs) > 2 {
		return 0, fmt.Errorf("%s is not a decoder with a language head: %w", c.Name, methods.ErrNotApplicable)
	}
	v := c.Layers[head].Out[len(c.Layers[head].Out)-1]
	for _, l := range c.Layers {
		if l.Type == models.Embedding && len(l.Params) > 0 && len(l.Out) > 0 {
			if e := l.Out[len(l.Out)-1]; e > 0 && l.Params[0]/e == v {
				return head, nil
			}
		}
	}
	return 0, fmt.Errorf("%s has no language head over its vocabulary: %w", c.Name, methods.ErrNotApplicable)
}
