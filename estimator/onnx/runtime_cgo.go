//go:build cgo && linux

package onnx

import (
	"errors"
	"fmt"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"
)

// possible returns the reason why this build could never load a library, or nil if it
// could.
func possible() error { return nil }

// start loads the library at path into this process.
func start(path string) (version string, err error) {
	ort.SetSharedLibraryPath(path)
	if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
		return "", fmt.Errorf("it does not load (wrong version, or a library it needs is missing): %w", err)
	}
	return ort.GetVersion(), nil
}

type session struct {
	s       *ort.DynamicAdvancedSession
	inputs  int
	outputs int
}

func newRunner(model []byte, inputs, outputs []string) (runner, error) {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer options.Destroy()
	// The models are tiny, so threads would cost more than they save. An arena
	// would never return its memory.
	err = errors.Join(options.SetIntraOpNumThreads(1), options.SetInterOpNumThreads(1),
		options.SetCpuMemArena(false), options.SetMemPattern(false))
	if err != nil {
		return nil, err
	}
	s, err := ort.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, options)
	if err != nil {
		return nil, err
	}
	return &session{s, len(inputs), len(outputs)}, nil
}

func (s *session) run(inputs []Tensor) ([]Tensor, error) {
	var pins runtime.Pinner // during Run the library keeps pointers into the inputs
	defer pins.Unpin()
	in := make([]ort.Value, s.inputs)
	defer func() { destroy(in) }()
	for i, t := range inputs {
		pins.Pin(&t.Data[0])
		v, err := ort.NewTensor(ort.Shape(t.Shape), t.Data)
		if err != nil {
			return nil, err
		}
		in[i] = v
	}
	out := make([]ort.Value, s.outputs)
	defer func() { destroy(out) }()
	if err := s.s.Run(in, out); err != nil {
		return nil, err
	}
	results := make([]Tensor, len(out))
	for i, v := range out {
		t, ok := v.(*ort.Tensor[float32])
		if !ok {
			return nil, errors.New("an output is not of float32 numbers")
		}
		results[i] = Tensor{
			Shape: append([]int64(nil), t.GetShape()...),
			Data:  append([]float32(nil), t.GetData()...),
		}
	}
	return results, nil
}

func destroy(values []ort.Value) {
	for _, v := range values {
		if v != nil {
			v.Destroy()
		}
	}
}
