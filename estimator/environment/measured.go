package environment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/atomicwriter"
)

// Measured contains the figures of a machine, as the program of carma doctor --calibrate
// prints them after [Mark]. Memory is in bytes.
type Measured struct {
	// Context is the memory of a process before its first tensor. CuDNN is the memory
	// that the convolution library adds when it is loaded. CuBLAS is the workspace of a
	// handle. NCCL is the memory of a communicator of two GPUs on each, or 0 if not
	// measured.
	Context int64 `json:"context"`
	CuDNN   int64 `json:"cudnn"`
	CuBLAS  int64 `json:"cublas"`
	NCCL    int64 `json:"nccl,omitempty"`
	// Spread is the largest difference between two measurements of a figure.
	Spread int64 `json:"spread"`
	// Torch and CUDA are versions, for messages.
	Torch string `json:"torch,omitempty"`
	CUDA  string `json:"cuda,omitempty"`
	// Error is the reason why nothing was measured, or empty.
	Error string `json:"error,omitempty"`
}

// Mark begins the line with the figures.
const Mark = "carma-calibrate "

const (
	mib        = 1 << 20
	mostFigure = 64 << 30
	// mostSpread is the largest accepted difference between two measurements. The driver
	// allocates memory in pieces of 2 MiB.
	mostSpread = 32 * mib
)

// ReadMeasured finds the figures in the lines that the program has printed. It refuses
// values that no machine has, and figures whose measurements differ too much.
func ReadMeasured(lines []string) (m Measured, err error) {
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, Mark) })
	if i < 0 {
		return m, errors.New("the program printed no figures")
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[i], Mark)), &m); err != nil {
		return m, fmt.Errorf("the program's figures: %w", err)
	}
	switch {
	case m.Error != "":
		return m, errors.New(m.Error)
	case m.Context < 16*mib || m.Context > mostFigure:
		return m, fmt.Errorf("a context of %d bytes is not possible", m.Context)
	case m.CuDNN < -mostSpread || m.CuDNN > mostFigure || m.CuBLAS < 0 || m.CuBLAS > mostFigure || m.NCCL < 0 || m.NCCL > mostFigure:
		return m, fmt.Errorf("figures of %d, %d and %d bytes for cuDNN, cuBLAS and NCCL are not possible", m.CuDNN, m.CuBLAS, m.NCCL)
	case m.Spread > mostSpread:
		return m, fmt.Errorf("two measurements differ by %d MiB: somebody else used the GPU meanwhile; try again when it is idle", m.Spread/mib)
	}
	m.CuDNN = max(m.CuDNN, 0)
	return m, nil
}

// Of returns base with the figures m, which were measured at the time at. models are the
// machine's GPU models, capacity is the memory of a GPU that processes can use, in bytes.
func (m Measured) Of(base Environment, models []string, capacity int64, at time.Time) (Environment, error) {
	e := base
	e.Name = "here-" + at.UTC().Format("2006-01-02-1504")
	e.About = strings.TrimSpace(fmt.Sprintf("this machine, PyTorch %s with CUDA %s", m.Torch, m.CUDA))
	e.Fitted = "context, cuBLAS, cuDNN and NCCL: carma doctor --calibrate; the rest as in " + base.Name
	e.GPUs = slices.Compact(slices.Sorted(slices.Values(models)))
	e.Context, e.ConvContext, e.CuBLAS, e.NCCL, e.Capacity = m.Context, m.CuDNN, m.CuBLAS, m.NCCL, capacity
	return e, e.check()
}

// keptIn returns the path of the machine's own environment in a data folder.
func keptIn(folder string) string { return filepath.Join(folder, "environment.json") }

// Keep writes the machine's own environment into a data folder. The write is atomic.
func Keep(folder string, e Environment) error {
	body, err := json.MarshalIndent([]Environment{e}, "", "  ")
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(keptIn(folder), append(body, '\n'), 0o644)
}

// Kept reads the machine's own environment. It returns false if there is none, or if it
// was measured on other GPU models.
func Kept(folder string, models []string) (e Environment, ok bool, err error) {
	f, err := os.Open(keptIn(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	defer func() { _ = f.Close() }()
	all, err := Read(f)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("it has %d environments, not one", len(all))
	}
	if err != nil {
		return e, false, fmt.Errorf("%s: %w; carma doctor --calibrate writes it anew", keptIn(folder), err)
	}
	e = all[0]
	return e, slices.Equal(e.GPUs, slices.Compact(slices.Sorted(slices.Values(models)))), nil
}
