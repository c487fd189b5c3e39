// Package onnx runs small ONNX models in this process with ONNX Runtime, a shared
// library. The library is found and loaded when the first model runs, so it costs nothing
// before. Without a suitable library every run returns an error, and carma works without
// the models.
//
// The package does not depend on the meaning of the models.
package onnx

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Oldest is the first version of ONNX Runtime with the functions used here.
const Oldest = "1.24"

// ErrUnavailable is wrapped by every error that means that there is no usable library,
// for any model. [Status] contains the remedy.
var ErrUnavailable = errors.New("ONNX Runtime is off")

// Tensor is a dense array of numbers. The last dimension varies fastest.
type Tensor struct {
	Shape []int64
	Data  []float32
}

// Rows returns data as a tensor of n rows of equal length.
func Rows(n int, data []float32) Tensor {
	return Tensor{Shape: []int64{int64(n), int64(len(data) / max(n, 1))}, Data: data}
}

func (t Tensor) check() error {
	size := int64(1)
	for _, d := range t.Shape {
		if d <= 0 || d > 1<<31 || size > 1<<31/d {
			return fmt.Errorf("shape %v", t.Shape)
		}
		size *= d
	}
	if len(t.Shape) == 0 || size != int64(len(t.Data)) {
		return fmt.Errorf("shape %v with %d numbers", t.Shape, len(t.Data))
	}
	return nil
}

// Session is one model. It is safe for concurrent use, computes only on the caller's
// thread, and exists as long as the process.
type Session struct {
	name    string
	model   []byte
	inputs  []string
	outputs []string

	mu   sync.Mutex // guards runs and err until one of them is set
	runs runner
	err  error // error of the model; ErrUnavailable is not kept
}

// runner is a model in a loaded library. Its run is safe for concurrent use.
type runner interface {
	run(inputs []Tensor) ([]Tensor, error)
}

// New returns a session for a model with these inputs and outputs. It reads and loads
// nothing before the first [Session.Run]. The session keeps model.
func New(name string, model []byte, inputs, outputs []string) *Session {
	return &Session{name: name, model: model, inputs: slices.Clone(inputs), outputs: slices.Clone(outputs)}
}

// Run computes the outputs for inputs, both in the order of the names given to
// [New]. The error wraps [ErrUnavailable] if there is no library.
func (s *Session) Run(inputs ...Tensor) ([]Tensor, error) {
	if len(inputs) != len(s.inputs) {
		return nil, fmt.Errorf("model %s: %d inputs, it takes %d", s.name, len(inputs), len(s.inputs))
	}
	for i, t := range inputs {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("model %s: input %s: %w", s.name, s.inputs[i], err)
		}
	}
	r, err := s.open()
	if err != nil {
		return nil, err
	}
	out, err := r.run(inputs)
	if err != nil {
		return nil, fmt.Errorf("model %s: run: %w", s.name, err)
	}
	return out, nil
}

func (s *Session) open() (runner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs != nil || s.err != nil {
		return s.runs, s.err
	}
	if err := lib.load(); err != nil {
		return nil, fmt.Errorf("model %s: %w", s.name, err)
	}
	if len(s.model) == 0 {
		s.err = fmt.Errorf("model %s: it is empty", s.name)
		return nil, s.err
	}
	r, err := newRunner(s.model, s.inputs, s.outputs)
	if err != nil {
		s.err = fmt.Errorf("model %s: it cannot be read: %w", s.name, err)
		return nil, s.err
	}
	s.runs = r
	return r, nil
}

// State is the state of ONNX Runtime in this process.
type State struct {
	// On is set if a library is loaded, or a suitable one was found.
	On bool
	// Loaded is set if the library is loaded into this process.
	Loaded bool
	// Path and Version describe the library, as far as known.
	Path    string
	Version string
	// Why is one sentence: the reason why ONNX Runtime is off, and how to get it, or empty
	// if On.
	Why string
}

// Status returns the result of the search for the library, which the first run uses. It
// loads nothing.
func Status() State { return lib.status() }

// again is the time for which a failed search is cached. Somebody may install the library
// while the daemon runs.
const again = 10 * time.Second

// library is the library of this process. It is never unloaded, because that is
// not safe.
type library struct {
	mu    sync.Mutex
	state State
	tried time.Time
	err   error
}

var lib library

func (l *library) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Loaded {
		return nil
	}
	if l.err != nil && time.Since(l.tried) < again {
		return l.err
	}
	l.tried = time.Now()
	found, rejected := find()
	for _, c := range found {
		version, err := start(c.path)
		if err == nil {
			l.state, l.err = State{On: true, Loaded: true, Path: c.path, Version: version}, nil
			return nil
		}
		rejected = append(rejected, rejection{c.path, err})
	}
	l.err = fmt.Errorf("%w: %s", ErrUnavailable, why(rejected))
	return l.err
}

func (l *library) status() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Loaded {
		return l.state
	}
	if err := possible(); err != nil {
		return State{Why: err.Error()}
	}
	found, rejected := find()
	if len(found) == 0 {
		return State{Why: why(rejected)}
	}
	return State{On: true, Path: found[0].path, Version: found[0].version}
}

// HowToGet describes how to get the library.
const HowToGet = "get it with make onnxruntime, npm install -g onnxruntime-node or pip install onnxruntime, " +
	"or set CARMA_ONNXRUNTIME to a libonnxruntime.so of version " + Oldest + " or newer"

func why(rejected []rejection) string {
	if err := possible(); err != nil {
		return err.Error()
	}
	if len(rejected) == 0 {
		return "no library found; " + HowToGet
	}
	text := ""
	for i, r := range rejected {
		if i == 2 && len(rejected) > 3 {
			text += fmt.Sprintf("%d more; ", len(rejected)-2)
			break
		}
		text += fmt.Sprintf("%s: %v; ", r.path, r.err)
	}
	return text + HowToGet
}
