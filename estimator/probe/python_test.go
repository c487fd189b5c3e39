package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/configs/models"
	"carma/containers"
)

// torchPython returns a Python with PyTorch, or empty if there is none. TEST_PYTHON names
// one or several to try.
var torchPython = sync.OnceValue(func() string {
	for _, name := range append(strings.Fields(os.Getenv("TEST_PYTHON")), "python3", "/usr/bin/python3") {
		path, err := exec.LookPath(name)
		if err == nil && exec.Command(path, "-c", "import torch").Run() == nil {
			return path
		}
	}
	return ""
})

// python3 finds a Python with PyTorch, or skips the test. With CARMA_NEED_TORCH a
// missing one is an error.
func python3(t *testing.T) string {
	t.Helper()
	path := torchPython()
	if path == "" && os.Getenv("CARMA_NEED_TORCH") != "" {
		t.Fatal("no Python with PyTorch, and CARMA_NEED_TORCH is set")
	}
	if path == "" {
		t.Skip("no Python with PyTorch here (Debian: apt-get install python3-torch; TEST_PYTHON names another)")
	}
	return path
}

const testMark = "carma-probe-test"

// hear probes a program of testdata outside of a container.
func hear(t *testing.T, timeout, program string, args ...string) (*models.Config, error) {
	t.Helper()
	python := python3(t)
	folder, err := install(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, append([]string{filepath.Join("testdata/programs", program)}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "CARMA_PROBE="+testMark, "CARMA_PROBE_TIMEOUT="+timeout,
		"CARMA_PROBE_GPUS=2", "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1", "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	code := cmd.ProcessState.ExitCode()
	if code < 0 {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	h := newHearer(testMark)
	for line := range bytes.Lines(out) {
		h.line(line)
	}
	if bytes.Contains(out, []byte("trained to the end")) {
		t.Errorf("%s went on after its second step", program)
	}
	config, err := conclude(h, ending{Exit: containers.Exit{Code: code}}, Limits{}.withDefaults())
	if config != nil && len(config.Warnings) > 0 {
		t.Logf("%s: %q", program, config.Warnings)
	}
	if _, failed := errors.AsType[*FailedError](err); err != nil && !failed {
		t.Fatal(err)
	}
	return config, err
}

// direct counts the bytes that autograd keeps in a step of the program, without
// the probe.
func direct(t *testing.T, program string, args ...string) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python3(t), append([]string{"testdata/direct.py", "python", filepath.Join("testdata/programs", program)}, args...)...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Kept int64 }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return answer.Kept
}

// agree compares bytes that are kept. A number of eight bytes may be missing: the probe
// knows a storage by its address and size, and such a small one may be where another of
// its size was freed a moment before.
func agree(got, want int64) bool { return got == want || got == want-8 }

// kept returns the bytes that the layers of a configuration keep, counting each storage once.
func kept(c *models.Config) (total int64) {
	batch := int64(c.Train.Batch)
	size := func(shape []int64, whole bool, bytes int64) int64 {
		n, _ := elements(shape)
		if whole {
			return n * bytes
		}
		return n * bytes * batch
	}
	place := make([]int, len(c.Layers)) // for each layer: the layer that has its storage
	seen := map[int]bool{}
	storage := func(i int) {
		if i >= 0 {
			i = place[i]
		}
		if seen[i] {
			return
		}
		seen[i] = true
		if i >= 0 {
			total += size(c.Layers[i].Out, c.Layers[i].Whole, 4)
		} else {
			in := c.Inputs[-1-i]
			total += size(in.Shape, false, int64(in.Bytes))
		}
	}
	for i, l := range c.Layers {
		place[i] = i
		if l.InPlace {
			place[i] = place[l.Inputs[0]]
		}
		if l.Type == models.CrossEntropy { // its log-softmax, and the weight of all samples
			total += size(c.Layers[l.Inputs[0]].Out, false, 4) + 4
		}
		if l.Keeps == nil {
			continue
		}
		total += l.Keeps.Whole + l.Keeps.Bytes*batch
		for _, in := range l.Keeps.Inputs {
			storage(l.Inputs[in])
		}
		if l.Keeps.Output {
			storage(i)
		}
	}
	return total
}

func params(c *models.Config) (n int64) {
	for _, l := range c.Layers {
		if !l.Tied {
			for _, p := range l.Params {
				n += p
			}
		}
	}
	return n
}

func find(c *models.Config, kind string) (found []models.Layer) {
	for _, l := range c.Layers {
		if l.Type == kind {
			found = append(found, l)
		}
	}
	return found
}

func TestConvolutions(t *testing.T) {
	c, err := hear(t, "100", "cnn.py")
	if err != nil {
		t.Fatal(err)
	}
	if c.Family != models.Conv || c.Train.Batch != 8 || c.Train.Optimizer != models.SGDMomentum || c.Train.Precision != models.FP32 {
		t.Errorf("found %s, %+v", c.Family, c.Train)
	}
	// Layers: 3x3 of 3 by 16, batch norm, 3x3 of 4 by 32, batch norm, linear.
	if got, want := params(c), int64(432+16+32+1152+32+64+320+10); got != want {
		t.Errorf("%d parameters, want %d", got, want)
	}
	// For a dropout the GPU keeps a mask of bytes, the CPU one of floats.
	mask := int64(0)
	for _, l := range find(c, models.Dropout) {
		mask += l.Keeps.Bytes * 8
	}
	if got, want := kept(c)+3*mask, direct(t, "cnn.py"); !agree(got, want) || mask != 32*8 {
		t.Errorf("keeps %d bytes, and a mask of %d; autograd says %d", got, mask, want)
	}
	grouped := find(c, models.Convolution)[1]
	if grouped.Groups != 4 || grouped.Stride != 2 || !slices.Equal(grouped.Kernel, []int64{3, 3}) || !slices.Equal(grouped.Out, []int64{32, 8, 8}) {
		t.Errorf("second convolution: %+v", grouped)
	}
	if relu := find(c, models.ReLU); len(relu) != 2 || !relu[0].InPlace || relu[1].InPlace {
		t.Errorf("activations: %+v", relu)
	}
}

func TestTransformer(t *testing.T) {
	c, err := hear(t, "100", "transformer.py")
	if err != nil {
		t.Fatal(err)
	}
	if c.Family != models.Transformer || c.Train.Batch != 4 || c.Train.Optimizer != models.Adam || c.Train.Precision != models.AMP {
		t.Errorf("found %s, %+v", c.Family, c.Train)
	}
	layer := int64(3*32*32 + 3*32 + 32*32 + 32 + 2*64*32 + 64 + 32 + 4*32)
	if got, want := params(c), 100*32+12*32+2*layer+100*32+100; got != want {
		t.Errorf("%d parameters, want %d", got, want)
	}
	want := direct(t, "transformer.py")
	if got := kept(c); !agree(got, want) {
		t.Errorf("keeps %d bytes, autograd says %d", got, want)
	}
	if in := c.Inputs[0]; !slices.Equal(in.Shape, []int64{12}) || in.Bytes != 8 {
		t.Errorf("input %+v", in)
	}
	dropped, err := hear(t, "100", "transformer.py", "0.1")
	if err != nil || len(find(dropped, models.Dropout)) < 6 {
		t.Errorf("with dropout: %v, %+v", err, dropped)
	}
}

func TestCheckpointsAndShards(t *testing.T) {
	c, err := hear(t, "100", "shards.py")
	if err != nil {
		t.Fatal(err)
	}
	tr := c.Train
	if !tr.Checkpointing || tr.Parallel != models.DDP || tr.GPUs != 2 || tr.Batch != 8 || tr.Optimizer != models.Adam || tr.Precision != models.AMP {
		t.Errorf("found %+v", tr)
	}
	var tied, frozen, unused int
	blocks := map[int]int{}
	for _, l := range c.Layers {
		blocks[l.Block]++
		if l.Tied {
			tied++
		}
		if l.Frozen {
			frozen++
		}
		if l.Name == "(not used in this step)" {
			unused++
		}
	}
	if tied != 1 || frozen != 1 || unused != 1 || blocks[1] != 3 || blocks[3] != 3 {
		t.Errorf("%d tied, %d frozen, %d unused, blocks %v", tied, frozen, unused, blocks)
	}
	if got, want := params(c), int64(50*16+17*16+3*(17*64+65*16)+8*7); got != want {
		t.Errorf("%d parameters, want %d", got, want)
	}
}

func TestRecurrent(t *testing.T) {
	c, err := hear(t, "100", "lstm.py")
	if err != nil {
		t.Fatal(err)
	}
	if c.Train.Batch != 6 || c.Train.Optimizer != models.RMSprop {
		t.Errorf("found %+v", c.Train)
	}
	lstm := find(c, models.Recurrent)
	if len(lstm) != 1 || lstm[0].Keeps != nil || !slices.Equal(lstm[0].Out, []int64{9, 20}) {
		t.Errorf("recurrent layers: %+v", lstm)
	}
	if cell := lstm[0].Cell; cell == nil || *cell != (models.Cell{Kind: "lstm", Hidden: 20, Layers: 2, Directions: 1}) {
		t.Errorf("its cell: %+v", cell)
	}
	if got, want := params(c), int64(360+4*20*(12+20+2)+4*20*(20+20+2)+105); got != want {
		t.Errorf("%d parameters, want %d", got, want)
	}
}
