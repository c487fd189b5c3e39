package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fact is a line of the environment.
type fact struct{ Name, Value string }

// stage is a line that probe.py prints after a step.
type stage struct {
	Stage           string            `json:"stage"`
	Versions        map[string]string `json:"versions"`
	Folders         []string          `json:"folders"`
	Executable      string            `json:"executable"`
	CUDA            string            `json:"cuda"`
	GPU             bool              `json:"gpu"`
	Name            string            `json:"name"`
	Capability      string            `json:"capability"`
	CuDNN           string            `json:"cudnn"`
	Multiprocessors int               `json:"multiprocessors"`
	Reserved        int64             `json:"reserved"`
}

// contextStage is the memory of a process after a step, in bytes.
type contextStage struct {
	Stage    string `json:"stage"`
	Reserved int64  `json:"reserved"` // by PyTorch's allocator
	Process  int64  `json:"process"`  // as NVML lists the process, or 0 if not listed
	Device   int64  `json:"device"`   // in use on the card, less what was in use before
}

// open finds the card and the Python. The report lists missing tools. In a run that should
// measure, that is an error.
func (s *session) open(ctx context.Context) error {
	if err := s.findPython(ctx); err != nil {
		if !s.dryRun {
			return err
		}
		s.say("%v", err)
	}
	if s.dryRun {
		return nil
	}
	source, err := openCard(ctx, s.gpu)
	if err != nil {
		return fmt.Errorf("--gpu %s: %w; --dry-run tries the suite out without a GPU", s.gpu, err)
	}
	devices, err := source.GPUs(ctx)
	if err == nil && len(devices) != 1 {
		err = fmt.Errorf("--gpu %s: %d GPUs; name one card or one MIG instance", s.gpu, len(devices))
	}
	if err != nil {
		_ = source.Close()
		return err
	}
	s.card = &card{source, devices[0]}
	return nil
}

func (s *session) close() {
	if s.card != nil {
		_ = s.card.source.Close()
	}
}

// environment records the conditions of the measurements and the memory of a CUDA
// context.
func (s *session) environment(ctx context.Context) error {
	s.report.Facts = append(s.report.Facts, fact{"processor", fmt.Sprintf("%d cores, %s", runtime.NumCPU(), runtime.GOARCH)},
		fact{"kernel", kernel()}, fact{"control groups", cgroups()}, fact{"carma", s.version(ctx)})
	if err := s.cardFacts(ctx); err != nil {
		return err
	}
	if s.python == "" {
		return omitf("no Python with PyTorch on this machine")
	}
	s.report.Facts = append(s.report.Facts, s.versions()...)
	if s.card == nil {
		return omitf("no GPU to make a CUDA context on")
	}
	return s.context(ctx)
}

func (s *session) cardFacts(ctx context.Context) error {
	if s.card == nil {
		s.report.Facts = append(s.report.Facts, fact{"GPU", "none: simulated"})
		return nil
	}
	d := s.card.device
	first, err := s.card.sample(ctx)
	if err != nil {
		return err
	}
	s.report.GPU = d.Model
	s.report.Facts = append(s.report.Facts, fact{"GPU", d.Model}, fact{"memory for tasks, MiB", mib(int64(d.Capacity))},
		fact{"in use before, MiB", mib(int64(first.Used))}, fact{"activity from", first.Metrics})
	s.report.Facts = append(s.report.Facts, driverFacts(d.UUID)...)
	return nil
}

// context runs probe.py and reads the card between its steps.
func (s *session) context(ctx context.Context) error {
	p, err := s.startPeer(ctx, "probe.py")
	if err != nil {
		return err
	}
	defer p.end()
	var before int64
	for {
		var at stage
		if err := p.answer(ctx, &at); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if at.Stage == "imported" && !at.GPU {
			return errors.New("PyTorch sees no GPU, NVML does")
		}
		own, all, err := s.card.usedBy(ctx, p.cmd.Process.Pid)
		if err != nil {
			return err
		}
		switch at.Stage {
		case "imported":
			before = all
		case "context":
			s.report.Facts = append(s.report.Facts, fact{"cuDNN", at.CuDNN}, fact{"multiprocessors", strconv.Itoa(at.Multiprocessors)})
			fallthrough
		default:
			s.report.Context = append(s.report.Context, contextStage{at.Stage, at.Reserved, own, all - before})
		}
		if err := p.send("go"); err != nil {
			return err
		}
	}
}

// versions returns the versions of Python and its packages.
func (s *session) versions() (facts []fact) {
	for _, name := range slices.Sorted(maps.Keys(s.software.Versions)) {
		facts = append(facts, fact{name, s.software.Versions[name]})
	}
	if s.software.CUDA != "" {
		facts = append(facts, fact{"CUDA of PyTorch", s.software.CUDA})
	}
	return facts
}

// overhead returns the memory beyond PyTorch's allocator of a process with the libraries
// of a training, in bytes, or 0 if not measured.
func (r *report) overhead() int64 {
	if len(r.Context) == 0 {
		return 0
	}
	last := r.Context[len(r.Context)-1]
	if last.Process > 0 {
		return last.Process - last.Reserved
	}
	return last.Device - last.Reserved
}

func (s *session) version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, filepath.Join(s.bin, "carma"), "version").Output()
	if err != nil {
		return "unknown: " + err.Error()
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "carma ")
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown: " + err.Error()
	}
	return unix.ByteSliceToString(u.Release[:])
}

// noGroups is the entry for a machine without control groups.
const noGroups = "none mounted"

func cgroups() string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return "version 2"
	}
	if found, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs"); len(found) > 0 {
		return "version 1"
	}
	return noGroups
}

func mib(bytes int64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }
