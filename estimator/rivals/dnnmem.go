package rivals

import (
	"slices"

	"carma/configs/models"
	"carma/estimator/methods"
	"carma/estimator/step"
)

// The memory of a process without tensors, in bytes, if no environment is given.
const (
	contextBytes     = 600 << 20
	convContextBytes = 250 << 20
)

// DNNMem follows Gao et al., ESEC/FSE '20 (DOI 10.1145/3368089.3417050). It analyses the
// computation graph and the framework's runtime. As in the paper:
//
//   - Weights, their gradients and the optimizer's states stay.
//   - Inputs and outputs of operators live while an operator needs them.
//   - Workspaces of convolutions and other ephemeral tensors live for one operator.
//   - The CUDA context is a constant.
//   - The framework's allocator rounds to blocks of 512 B in segments of 2 MiB and
//     more.
//
// The paper's full text was not available. This is carma's interpretation:
//
//   - An operator's gradient needs all its inputs and its output, so both live
//     until it is computed. Masks and indices are not counted.
//   - The workspace is the environment's, or none, instead of cuDNN's answer.
//   - The context is the environment's, or 600 MiB, 850 MiB with convolutions.
//   - Parallel training is estimated as a training of one GPU's batch with whole weights.
//   - The optimizer's step has no temporaries.
type DNNMem struct{}

// Name returns dnnmem.
func (DNNMem) Name() string { return "dnnmem" }

// Source names the method's publication.
func (DNNMem) Source() string {
	return "Gao et al., ESEC/FSE '20, DOI 10.1145/3368089.3417050; partly our reading"
}

// Estimate simulates the graph.
func (DNNMem) Estimate(s methods.Subject) (methods.Answer, error) {
	c, n, err := config(s)
	if err != nil {
		return methods.Answer{}, err
	}
	layers := closed(slices.Clone(c.Layers), models.CrossEntropy)
	for i := range layers {
		l := &layers[i]
		k := &models.Keeps{Output: l.Type != models.View}
		for at := range max(len(l.Inputs), 1) {
			k.Inputs = append(k.Inputs, at)
		}
		k.Bytes = scores(l)
		l.Keeps = k
	}
	env := step.Environment{Context: contextBytes, ConvContext: convContextBytes}
	if s.Environment != nil {
		env = *s.Environment
	}
	env.Allocator.Limit = 0
	r, err := step.Simulate(alone(c, n, layers, c.Train.Optimizer), &env)
	if err != nil {
		return methods.Answer{}, err
	}
	return exactly(
		methods.Part{Name: "context", Bytes: r.Context}, methods.Part{Name: "weights", Bytes: r.Parts[step.Weights]}, methods.Part{Name: "gradients", Bytes: r.Parts[step.Gradients]},
		methods.Part{Name: "optimizer", Bytes: r.Parts[step.States]}, methods.Part{Name: "activations", Bytes: r.Parts[step.Activations]},
		methods.Part{Name: "workspace", Bytes: r.Parts[step.Workspaces]}, methods.Part{Name: "fragmentation", Bytes: r.Reserved - sumOf(r.Parts[:])},
	)
}

func sumOf(parts []int64) (n int64) {
	for _, p := range parts {
		n += p
	}
	return n
}

// scores returns the size of the score matrix in attention without a fused kernel, in
// bytes per sample.
func scores(l *models.Layer) int64 {
	if l.Type != models.Attention || !l.Unfused || len(l.Out) < 2 {
		return 0
	}
	rows := l.Out[len(l.Out)-2]
	var n sum
	n.add(4, max(l.Heads, 1), rows, rows)
	if n.bad {
		return most // too large; the simulation refuses this size
	}
	return n.n
}
