package traces

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carma/configs/workloads"
	"carma/internal/suggest"
	"carma/internal/units"
)

//go:embed *.yaml
var files embed.FS

// Trace is a list of submissions.
type Trace struct {
	Name        string
	Description string
	Source      string
	// Campaign is the source of its run times and memory: "v1" or "v2". Every workload of
	// the trace was measured in that campaign.
	Campaign string
	Tasks    []Task // sorted by arrival
}

// Task is one submission.
type Task struct {
	At       time.Duration // since the start of the trace
	Workload string        // name of a profile, never an alias
	GPUs     int           // at least 1
	Name     string        // may be empty
	User     string        // may be empty
	Priority string        // one of Priorities, or empty for normal
	Mem      units.Bytes   // declared per GPU, or 0
	Line     int           // line in the file, from 1, or 0 if generated
}

// Priorities lists the words for priorities in a trace, the lowest first. [Task] has an
// empty text instead of normal.
var Priorities = []string{"low", normal, "high"}

const normal = "normal"

// Limits on untrusted input.
const (
	maxSize  = 16 << 20 // bytes of a file
	maxTasks = 100_000
	maxGPUs  = 64
	maxAt    = 10 * 365 * 24 * time.Hour
)

// Names lists the shipped traces, sorted.
func Names() []string {
	paths, _ := fs.Glob(files, "*.yaml") // the pattern is valid
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(p, ".yaml")
	}
	return paths
}

// Read reads the trace with this path. If there is no such file, it returns the shipped
// trace with this name, or generates the trace generated-SEED or generated-SEEDxTASKS
// (see [Generate]).
func Read(path string) (Trace, error) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		if stat, err := f.Stat(); err == nil && stat.IsDir() {
			return Trace{}, fmt.Errorf("%s: a folder, not a trace", path)
		}
		return Parse(path, f)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Trace{}, fmt.Errorf("read trace: %w", err)
	}
	name := strings.TrimSuffix(path, ".yaml")
	if content, err := files.ReadFile(name + ".yaml"); err == nil {
		return Parse(name+".yaml", bytes.NewReader(content))
	}
	if strings.HasPrefix(name, generated) || name == "generated" {
		return readGenerated(name)
	}
	return Trace{}, fmt.Errorf("%s: no such file, and no shipped trace of that name; nearest: %s", path,
		strings.Join(suggest.Names(filepath.Base(name), append(Names(), generated+"1"), 3), ", "))
}

// Parse reads a trace: CSV if name ends in .csv, else YAML. Errors begin with
// name.
func Parse(name string, r io.Reader) (Trace, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxSize+1))
	if err != nil {
		return Trace{}, fmt.Errorf("read trace: %w", err)
	}
	if len(content) > maxSize {
		return Trace{}, fmt.Errorf("%s: larger than %d MiB", name, maxSize>>20)
	}
	p := &parser{file: name}
	if strings.EqualFold(filepath.Ext(name), ".csv") {
		err = p.csv(content)
	} else {
		err = p.yaml(content)
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return Trace{}, err
	}
	slices.SortStableFunc(p.trace.Tasks, func(a, b Task) int { return int(max(-1, min(1, a.At-b.At))) })
	return p.trace, nil
}

// parser builds a trace from either form.
type parser struct {
	file         string
	campaignLine int
	trace        Trace
}

func (p *parser) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.file, line, fmt.Sprintf(format, args...))
}

// check checks the trace as a whole.
func (p *parser) check() error {
	t := &p.trace
	if t.Campaign == "" {
		t.Campaign = workloads.DefaultCampaign
	}
	if t.Campaign != "v1" && t.Campaign != "v2" {
		return p.errorf(p.campaignLine, "unknown campaign %q; v1 or v2", t.Campaign)
	}
	if t.Name == "" {
		t.Name = strings.TrimSuffix(filepath.Base(p.file), filepath.Ext(p.file))
	}
	if len(t.Tasks) == 0 {
		return p.errorf(1, "no tasks; write at least one, for example {at: 0, workload: mnist_train}")
	}
	for _, task := range t.Tasks {
		w, err := workloads.Find(task.Workload)
		if err != nil {
			return p.errorf(task.Line, "%v", err)
		}
		if _, err := w.Campaign(t.Campaign); err != nil {
			return p.errorf(task.Line, "%v", err)
		}
	}
	return nil
}
