package original

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carma/configs/traces"
	"carma/configs/workloads"
	"carma/internal/units"
)

// Options configure how a script is read.
type Options struct {
	// Rads is a folder in which .rad files are found by their names. If empty, they are
	// found at the path in the script, relative to the script's folder or else to the
	// current one.
	Rads string
	// Campaign is the campaign for scripts that name no campaign: "v1", "v2" or "".
	Campaign string
}

// ReadScript reads a script and the .rad files that it names. A .rad file may be
// missing if the catalogue has a workload of its name, as for all .rad files of the
// original.
func ReadScript(path string, r io.Reader, o Options) (traces.Trace, error) {
	s, err := ParseScript(path, r)
	if err != nil {
		return traces.Trace{}, err
	}
	t := traces.Trace{
		Name: cmp.Or(s.Notes["name"], strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))), Description: s.Notes["description"],
		Source: s.Notes["source"], Campaign: cmp.Or(s.Notes["campaign"], o.Campaign, workloads.DefaultCampaign),
	}
	if t.Campaign != "v1" && t.Campaign != "v2" {
		return traces.Trace{}, fmt.Errorf("%s:1: unknown campaign %q; v1 or v2", path, t.Campaign)
	}
	known := map[string]kind{} // only for look-up
	for _, one := range s.Submits {
		k, seen := known[one.Rad]
		if !seen {
			if k, err = o.kind(path, one.Rad); err != nil {
				return traces.Trace{}, fmt.Errorf("%s:%d: %w", path, one.Line, err)
			}
			known[one.Rad] = k
		}
		task, err := k.task(one)
		if err == nil {
			_, err = k.workload.Campaign(t.Campaign)
		}
		if err != nil {
			return traces.Trace{}, fmt.Errorf("%s:%d: %w", path, one.Line, err)
		}
		t.Tasks = append(t.Tasks, task)
	}
	return t, nil
}

// ReadRad reads one .rad file as a trace of one task.
func ReadRad(path string, o Options) (traces.Trace, error) {
	k, err := o.kind(path, filepath.Base(path))
	if err != nil {
		return traces.Trace{}, err
	}
	t := traces.Trace{Name: base(path), Campaign: cmp.Or(o.Campaign, workloads.DefaultCampaign)}
	task, err := k.task(Submit{Rad: path, Line: 1})
	if err == nil {
		_, err = k.workload.Campaign(t.Campaign)
	}
	if err != nil {
		return traces.Trace{}, fmt.Errorf("%s: %w", path, err)
	}
	t.Tasks = []traces.Task{task}
	return t, nil
}

// base returns a file's name without folder and ending.
func base(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// kind is the content of a .rad file as a kind of task.
type kind struct {
	workload workloads.Profile
	gpus     int
}

// kind reads the .rad file that a script names.
func (o Options) kind(script, rad string) (kind, error) {
	if rest, ok := strings.CutPrefix(rad, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			rad = filepath.Join(home, rest)
		}
	}
	places := []string{rad}
	if !filepath.IsAbs(rad) {
		dir := filepath.Dir(script)
		places = []string{filepath.Join(dir, rad), rad}
	}
	if o.Rads != "" {
		places = []string{filepath.Join(o.Rads, filepath.Base(rad))}
	}
	for _, place := range places {
		f, err := os.Open(place)
		if os.IsNotExist(err) {
			continue
		} else if err != nil {
			return kind{}, err
		}
		defer f.Close()
		content, err := ParseRad(place, f)
		if err != nil {
			return kind{}, err
		}
		w, err := content.workload(base(rad))
		if err != nil {
			return kind{}, fmt.Errorf("%s: %w", place, err)
		}
		return kind{w, content.GPUs}, nil
	}
	if o.Rads != "" {
		return kind{}, fmt.Errorf("no file %s; is --rad the right folder?", places[0])
	}
	w, err := workloads.Find(base(rad))
	if err != nil {
		return kind{}, fmt.Errorf("no file %s, and %w; name the folder with --rad", places[0], err)
	}
	return kind{w, w.GPUs}, nil
}

// workload finds the workload of a .rad file. It is the workload that line 1 names, or else
// the workload with the file's name, or else the only workload with the command's program,
// batch size and GPUs.
func (f Rad) workload(name string) (workloads.Profile, error) {
	notes, err := parseNotes(f.Comment)
	if err != nil {
		return workloads.Profile{}, fmt.Errorf("line 1: %w", err)
	}
	if named, ok := notes["workload"]; ok {
		w, err := workloads.Find(named)
		if err != nil {
			err = fmt.Errorf("line 1: %w", err)
		}
		return w, err
	}
	if w, err := workloads.Find(name); err == nil {
		return w, nil
	}
	found := slices.DeleteFunc(workloads.ByModel(f.program()), func(w workloads.Profile) bool { return w.BatchSize != f.Batch || w.GPUs != f.GPUs })
	if len(found) == 1 {
		return found[0], nil
	}
	return workloads.Profile{}, fmt.Errorf("no one workload is named %s, or trains %s with a batch of %d on %d GPUs; write in line 1: %s workload=NAME; nearest: %s",
		name, cmp.Or(f.program(), "line 3"), f.Batch, f.GPUs, mark, strings.Join(workloads.Nearest(name), ", "))
}

// program returns the name of the command's program without folders and ending.
func (f Rad) program() string {
	for word := range strings.FieldsSeq(f.Command) {
		if strings.HasSuffix(word, ".py") {
			return base(word)
		}
	}
	return ""
}

// task makes the task of a submission.
func (k kind) task(s Submit) (traces.Task, error) {
	t := traces.Task{At: s.At, Workload: k.workload.Name, GPUs: k.gpus, Name: base(s.Rad), Line: s.Line}
	for _, key := range noteKeys {
		v, ok := s.Notes[key]
		if !ok {
			continue
		}
		switch key {
		case "name":
			t.Name = v
		case "user":
			t.User = v
		case "priority":
			if !slices.Contains(traces.Priorities, v) {
				return t, fmt.Errorf("%s unknown priority %.40q; low, normal or high", mark, v)
			}
			if t.Priority = v; v == "normal" {
				t.Priority = ""
			}
		case "mem":
			m, err := units.ParseBytes(v)
			if err != nil || m < units.MiB {
				return t, fmt.Errorf("%s mem %.40q is not an amount of memory; write for example 12G", mark, v)
			}
			t.Mem = m
		default:
			return t, fmt.Errorf("%s %s belongs to the script, not to a submission", mark, key)
		}
	}
	return t, nil
}

// Files is a trace in the original's form.
type Files struct {
	Script Script
	Rads   map[string]Rad // by the path in the script
}

// FromTrace turns a trace into the original's form. ReadScript reads it back as
// the same trace.
func FromTrace(t traces.Trace) (Files, error) {
	out := Files{Script: Script{Notes: Notes{}}, Rads: map[string]Rad{}}
	for key, v := range map[string]string{"name": t.Name, "campaign": t.Campaign, "description": t.Description, "source": t.Source} {
		if v != "" {
			out.Script.Notes[key] = v
		}
	}
	for _, task := range t.Tasks {
		w, err := workloads.Find(task.Workload)
		if err != nil {
			return Files{}, err
		}
		path := "workloads/" + radName(w, task) + ".rad"
		if _, there := out.Rads[path]; !there {
			if out.Rads[path], err = newRad(w, task.GPUs, t.Campaign); err != nil {
				return Files{}, err
			}
		}
		out.Script.Submits = append(out.Script.Submits, Submit{At: task.At, Rad: path, Notes: notes(task, base(path))})
	}
	return out, nil
}

// radName returns the task's own name if the original uses that name for the workload,
// otherwise the workload's name.
func radName(w workloads.Profile, t traces.Task) string {
	name := w.Name
	if slices.Contains(w.Aliases, t.Name) {
		name = t.Name
	}
	if t.GPUs != w.GPUs {
		name = fmt.Sprintf("%s-on-%d", name, t.GPUs)
	}
	return name
}

// notes returns the facts about a task that its .rad file lacks.
func notes(t traces.Task, rad string) Notes {
	n := Notes{}
	if t.Name != rad {
		n["name"] = t.Name
	}
	if t.User != "" {
		n["user"] = t.User
	}
	if t.Priority != "" && t.Priority != "normal" {
		n["priority"] = t.Priority
	}
	if t.Mem > 0 {
		n["mem"] = fmt.Sprint(int64(t.Mem))
	}
	return n
}

// newRad describes a workload. Its command must be filled in, because the original's
// programs are not part of carma.
func newRad(w workloads.Profile, gpus int, campaign string) (Rad, error) {
	c, err := w.Campaign(campaign)
	if err != nil {
		return Rad{}, err
	}
	estimate := func(b units.Bytes) float64 {
		if b == 0 {
			return NoEstimate
		}
		return inMiB(b)
	}
	return Rad{
		Comment: Notes{"workload": w.Name}.String(), Environment: "conda activate tf",
		Command: fmt.Sprintf("python workloads/%s.py --batch_size %d --epochs %d", w.Model, w.BatchSize, w.Epochs),
		Model:   fmt.Sprintf("%s_%d.model", w.Model, w.BatchSize), Dataset: w.Dataset, Batch: w.BatchSize, GPUs: gpus,
		Peak: inMiB(c.Memory), Horus: estimate(w.Estimates.Horus), FakeTensor: estimate(w.Estimates.FakeTensor), GPUMemNet: estimate(w.Estimates.GPUMemNet),
	}, nil
}

func inMiB(b units.Bytes) float64 { return float64(b) / float64(units.MiB) }
