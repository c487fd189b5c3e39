package probe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/configs/models"
	"carma/containers"
	"carma/estimator/step"
)

// script is a program of testdata/scripts and the result of its probe.
type script struct {
	name string
	// needs are the modules that it imports; with !, that Python must lack it.
	needs string
	// launch are the arguments of Python before the program's name.
	launch string
	args   string // arguments after the program's name
	gpus   int    // one if 0
	// want is the configuration in short, see short, or the reason, in which * is for
	// any text.
	want  string
	again string // the reason why it is run again with values, or empty if it is not
	// live: the simulated step must agree with the bytes that PyTorch's tensors take, see
	// testdata/live.py, which does not count small ones. It is the number of its
	// optimizers, or 0 if not compared.
	live int
}

// short summarizes a configuration's training.
func short(c *models.Config) string {
	var trained, frozen int64
	bits := map[int]bool{}
	for _, l := range c.Layers {
		for _, n := range l.Params {
			switch {
			case l.Tied:
			case l.Frozen:
				frozen += n
			default:
				trained += n
			}
			if l.Bits != 0 {
				bits[l.Bits] = true
			}
		}
	}
	t := c.Train
	text := fmt.Sprintf("%s %s batch %d %s %s trained %d frozen %d", c.Name, c.Family, t.Batch, t.Precision, t.Optimizer, trained, frozen)
	for _, b := range []int{4, 8, 16, 32} {
		if bits[b] {
			text += fmt.Sprintf(" %d-bit", b)
		}
	}
	if t.Checkpointing {
		text += " checkpointed"
	}
	if t.GPUs > 1 {
		text += fmt.Sprintf(" %s over %d", t.Parallel, t.GPUs)
	}
	return text
}

// usage is the time and memory of a probe outside of a container.
type usage struct {
	wall, cpu time.Duration
	memory    int64 // bytes of the largest process
}

func (u usage) String() string {
	return fmt.Sprintf("%.0f s, %.0f s of processor, %.1f GiB", u.wall.Seconds(), u.cpu.Seconds(), float64(u.memory)/(1<<30))
}

func imports(t *testing.T, python, modules string) bool {
	t.Helper()
	for _, m := range strings.Fields(modules) {
		name, without := strings.CutPrefix(m, "!")
		err := exec.CommandContext(t.Context(), python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('"+name+"') is None)").Run()
		if (err != nil) != without {
			return false
		}
	}
	return true
}

// TestScripts probes training programs as people write them. Programs with packages that
// a Python lacks are left out: make probe-scripts PYTHON=... runs it with another.
func TestScripts(t *testing.T) {
	python := python3(t)
	ran := 0
	for _, s := range scripts {
		t.Run(strings.TrimSpace(s.name+" "+s.args), func(t *testing.T) {
			if !imports(t, python, s.needs) {
				t.Skip("this Python lacks one of " + s.needs)
			}
			ran++
			c, used, err := s.probe(t, python)
			got := ""
			if c != nil {
				got = short(c)
			}
			if failed, ok := errors.AsType[*FailedError](err); ok {
				got = failed.Reason
			}
			t.Logf("| %s | %s | %s", s.name, used, got)
			begin, end, _ := strings.Cut(s.want, "*")
			if c != nil && got != s.want || c == nil && (!strings.HasPrefix(got, begin) || !strings.HasSuffix(got, end)) {
				t.Errorf("got  %s\nwant %s", got, s.want)
			}
			if c != nil && len(c.Warnings) > 0 {
				t.Logf("%q", c.Warnings)
				s.checkAgain(t, c.Warnings[0])
			}
		})
	}
	if ran < 8 && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		t.Errorf("only %d scripts could be run", ran)
	}
}

// checkAgain checks the probe's reason for a second run. With an old PyTorch the first run
// already has values.
func (s script) checkAgain(t *testing.T, said string) {
	t.Helper()
	if strings.HasSuffix(said, ", with values") {
		return
	}
	if strings.Contains(said, "first run") != (s.again != "") || !strings.Contains(said, s.again) {
		t.Errorf("it says %q, want a second run for %q", said, s.again)
	}
}

// TestScriptsLive compares the simulated step of a probed program with the bytes
// that its tensors take in PyTorch, without allocator, context and workspaces.
func TestScriptsLive(t *testing.T) {
	if os.Getenv("CARMA_PROBE_LIVE") == "" {
		t.Skip("takes long; make probe-scripts runs it")
	}
	python := python3(t)
	var sum float64
	var n int
	for _, s := range scripts {
		if s.live == 0 || !imports(t, python, s.needs) {
			continue
		}
		c, _, err := s.probe(t, python)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := step.Simulate(c, &step.Environment{Name: "plain"})
		if err != nil {
			t.Error(err)
			continue
		}
		want := s.peak(t, python)
		off := float64(got.Allocated)/float64(want) - 1
		t.Logf("| %s | %.2f GiB | %.2f GiB | %+.1f %% |", s.name, float64(got.Allocated)/(1<<30), float64(want)/(1<<30), 100*off)
		sum += math.Abs(off)
		n++
	}
	t.Logf("%d scripts, mean error %.1f %%", n, 100*sum/float64(max(n, 1)))
	if n > 0 && sum/float64(n) > 0.1 {
		t.Errorf("mean error %.1f %%, want at most 10", 100*sum/float64(n))
	}
}

// peak returns the largest number of bytes that the script's tensors take at one time.
func (s script) peak(t *testing.T, python string) int64 {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, filepath.Join(dir, "testdata/live.py"), filepath.Join(dir, "python"),
		filepath.Join(dir, "../training"), filepath.Join(dir, "testdata/scripts", s.name+".py"), strconv.Itoa(s.live))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=2", "PYTHONDONTWRITEBYTECODE=1", "HF_HUB_OFFLINE=1", "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Peak int64 }
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &answer); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return answer.Peak
}

// probe runs the script with the limits of a probe's container, but without a container.
func (s script) probe(t *testing.T, python string) (*models.Config, usage, error) {
	t.Helper()
	folder, err := install(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join("testdata/scripts", s.name+".py"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, slices.Concat(strings.Fields(s.launch), []string{path}, strings.Fields(s.args))...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "CARMA_PROBE="+testMark, "CARMA_PROBE_TIMEOUT="+cmp.Or(os.Getenv("TEST_PROBE_SECONDS"), "120"), fmt.Sprint("CARMA_PROBE_MEMORY=", 8<<30),
		fmt.Sprint("CARMA_PROBE_GPUS=", max(1, s.gpus)), "OMP_NUM_THREADS=2", "PYTHONDONTWRITEBYTECODE=1", "TMPDIR="+t.TempDir(), "HF_HUB_OFFLINE=1")
	return probeOf(t, cmd)
}

// probeOf runs a program with the probe in it until it has printed its result.
func probeOf(t *testing.T, cmd *exec.Cmd) (*models.Config, usage, error) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a launcher's programs end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	began := time.Now()
	out, err := cmd.CombinedOutput()
	state := cmd.ProcessState
	if state == nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	used := usage{wall: time.Since(began), cpu: state.UserTime() + state.SystemTime()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		used.memory = r.Maxrss << 10
	}
	h := newHearer(testMark)
	for line := range bytes.Lines(out) {
		h.line(line)
	}
	c, err := conclude(h, ending{Exit: containers.Exit{Code: state.ExitCode()}, late: state.ExitCode() < 0}, Limits{}.withDefaults())
	if _, failed := errors.AsType[*FailedError](err); err != nil && !failed {
		t.Fatalf("%v\n%s", err, out)
	}
	if c == nil {
		t.Logf("%s", out[max(0, len(out)-3000):])
	}
	return c, used, err
}
