package original

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"carma/internal/units"

	"pgregory.net/rapid"

	"carma/configs/traces"
	"carma/configs/workloads"
)

// submits returns a line for each submission.
func submits(s Script) string {
	var b strings.Builder
	for _, one := range s.Submits {
		b.WriteString(one.At.String() + " " + one.Rad + "\n")
	}
	return b.String()
}

// TestHandWritten: scripts that people wrote by hand.
func TestHandWritten(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"the older form", "python src/submit.py --task workloads/a.rad\nsleep 73\npython src/submit.py --task workloads/b.rad", "0s workloads/a.rad\n1m13s workloads/b.rad\n"},
		{"the newer form", "sleep 0\npython /home/x/src/submit.py --task /home/x/workloads/a.rad\nsleep 181\npython /home/x/src/submit.py --task /home/x/workloads/b.rad\nsleep 33\npython /home/x/src/submit.py --task /home/x/workloads/b.rad\n",
			"0s /home/x/workloads/a.rad\n3m1s /home/x/workloads/b.rad\n3m34s /home/x/workloads/b.rad\n"},
		{"several on a line", "sleep 1m; python3 submit.py --task=a.rad & sleep 0.5 1s && ./src/submit.py --task 'my jobs/b.rad' # last\n", "1m0s a.rad\n1m1.5s my jobs/b.rad\n"},
		{"no name", "submit.py\n", "0s task.txt\n"},
		{"quotes within a word", "python submit.py --task \"a b\"/'c'.rad\n", "0s a b/c.rad\n"},
	} {
		s, err := ParseScript("x.sh", strings.NewReader(c.script))
		if err != nil || submits(s) != c.want {
			t.Errorf("%s: %v\n%s", c.name, err, submits(s))
		}
	}
}

func TestBrokenScripts(t *testing.T) {
	const good = "python submit.py --task a.rad"
	for script, want := range map[string]string{
		"":                                   "x.sh:1: no submission; write for example",
		"sleep 3\n":                          "x.sh:1: no submission",
		good + "\nsleep\n":                   "x.sh:2: sleep needs a time; write for example sleep 73",
		good + "\nsleep soon\n":              `x.sh:2: sleep: "soon" is not a time from 0 to ten years`,
		good + "\nsleep ''\n":                `x.sh:2: sleep: "" is not a time`,
		good + "\nsleep m\n":                 `x.sh:2: sleep: "m" is not a time`,
		good + "\nsleep -3\n":                `x.sh:2: sleep: "-3" is not a time`,
		"sleep 3w\n" + good:                  `x.sh:1: sleep: "3w" is not a time`,
		"sleep 9999d\n" + good:               `x.sh:1: sleep: "9999d" is not a time`,
		"sleep 3000d\nsleep 3000d\n" + good:  "x.sh:2: sleep: more than ten years after the start",
		"#!/bin/sh\n\nfor i in a b\n":        `x.sh:3: "for" is neither sleep nor submit.py; only these are read`,
		good + "\npython train.py\n":         `x.sh:2: "python" is neither sleep nor submit.py`,
		"cd /x\n" + good:                     `x.sh:1: "cd" is neither`,
		"ruby submit.py --task a.rad":        `x.sh:1: "ruby" before submit.py is not python`,
		"python submit.py --task":            "x.sh:1: --task needs a path",
		"python submit.py --task --now":      `x.sh:1: --task: "--now" is not a path`,
		"python submit.py --tsk a.rad":       `x.sh:1: submit.py: unknown argument "--tsk"; it takes --task PATH`,
		"python submit.py a.rad":             `x.sh:1: submit.py: unknown argument "a.rad"`,
		"python submit.py --task $DIR/a":     "x.sh:1: $ is not understood",
		`python submit.py --task "$DIR/a"`:   "x.sh:1: $, ` and \\ are not understood; write the value out",
		"python submit.py --task 'a":         "x.sh:1: a quotation mark is not closed",
		good + " > log\n":                    "x.sh:1: > is not understood",
		good + " # carma: usr=ann\n":         `x.sh:1: # carma: unknown key "usr"; nearest: user`,
		good + " # carma: user=a user=b\n":   "x.sh:1: # carma: user a second time",
		good + " # carma: user=\"a\n":        "x.sh:1: # carma: user: a quotation mark is not closed",
		"sleep 1 # carma: user=ann\n" + good: "x.sh:1: a carma: comment stands behind one submission, not 0",
	} {
		_, err := ParseScript("x.sh", strings.NewReader(script))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v\n\twant %s", script, err, want)
		}
	}
}

// write writes a trace into a folder, in the original's form.
func write(t testing.TB, dir string, tr traces.Trace) string {
	files, err := FromTrace(tr)
	if err != nil {
		t.Fatal(err)
	}
	put := func(path string, write func(*bytes.Buffer) error) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "x.sh")
	put(path, func(b *bytes.Buffer) error { return files.Script.Write(b) })
	for name, f := range files.Rads {
		put(filepath.Join(dir, name), func(b *bytes.Buffer) error { return f.Write(b) })
	}
	return path
}

func readBack(t testing.TB, path string) traces.Trace {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := ReadScript(path, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// noLines returns the trace without the tasks' line numbers.
func noLines(t traces.Trace) traces.Trace {
	t.Tasks = append([]traces.Task(nil), t.Tasks...)
	for i := range t.Tasks {
		t.Tasks[i].Line = 0
	}
	return t
}

// TestRoundTrip: shipped and generated traces are written and read back as the
// same. Their own .rad files are used.
func TestRoundTrip(t *testing.T) {
	for _, name := range append(traces.Names(), "generated-3", "generated-4x200") {
		tr, err := traces.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		path := write(t, dir, tr)
		if got := readBack(t, path); !reflect.DeepEqual(noLines(got), noLines(tr)) {
			t.Errorf("%s: got %+v", name, got)
		}
		// Without .rad files, names that are not the original's are lost.
		if err := os.RemoveAll(filepath.Join(dir, "workloads")); err != nil {
			t.Fatal(err)
		}
		if got := readBack(t, path); len(got.Tasks) != len(tr.Tasks) {
			t.Errorf("%s: %d tasks", name, len(got.Tasks))
		}
	}
}

// TestRoundTripAny: the same for a trace with everything that a task can have.
func TestRoundTripAny(t *testing.T) {
	all := workloads.All()
	names := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a-zA-Z0-9_.é"'# =-]{0,8}x`), rapid.SampledFrom([]string{"vgg", "resnet2", "mnist_train", "Xception"}))
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		tr := traces.Trace{Name: rapid.StringMatching(`[a-z "]{0,5}x`).Draw(t, "name"), Description: names.Draw(t, "description"), Source: names.Draw(t, "source"), Campaign: "v2"}
		at := time.Duration(0)
		for range rapid.IntRange(1, 6).Draw(t, "tasks") {
			at += time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "gap"))
			w := rapid.SampledFrom(all).Draw(t, "workload")
			tr.Tasks = append(tr.Tasks, traces.Task{
				At: at, Workload: w.Name, GPUs: rapid.SampledFrom([]int{w.GPUs, 1, 2, 3}).Draw(t, "gpus"),
				Name: rapid.OneOf(names, rapid.SampledFrom(append([]string{""}, w.Aliases...))).Draw(t, "task"), User: names.Draw(t, "user"),
				Priority: rapid.SampledFrom([]string{"low", "", "high"}).Draw(t, "priority"), Mem: units.Bytes(rapid.SampledFrom([]int64{0, 1 << 20, 12345678901}).Draw(t, "mem")),
			})
		}
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		files, err := FromTrace(tr)
		if err != nil {
			t.Fatal(err)
		}
		for path, f := range files.Rads {
			var b bytes.Buffer
			_ = f.Write(&b)
			_ = os.MkdirAll(filepath.Join(sub, "workloads"), 0o755)
			if err := os.WriteFile(filepath.Join(sub, path), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var b bytes.Buffer
		if err := files.Script.Write(&b); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		got, err := ReadScript(filepath.Join(sub, "x.sh"), &b, Options{})
		if err != nil || !reflect.DeepEqual(noLines(got), noLines(tr)) {
			t.Fatalf("%v\n got %+v\nwant %+v\n%s", err, got, tr, text)
		}
	})
}

func TestReadScript(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("own.rad", rad(0, ""))
	put("two.rad", rad(8, "2"))
	put("named.rad", rad(1, "# carma: workload=vgg"))
	put("wrong.rad", rad(1, "# carma: workload=vggg"))
	put("broken.rad", rad(8, "x"))
	put("other/vgg.rad", rad(1, "# carma: workload=resnet3"))
	for _, c := range []struct {
		script  string
		o       Options
		want    string // workloads, or part of the error
		gpus    int
		failing bool
	}{
		{"python submit.py --task own.rad", Options{}, "resnet50-imagenet-bs64", 1, false},               // found by program and batch size
		{"python submit.py --task named.rad", Options{}, "vgg16-imagenet-bs32", 1, false},                // found by line 1
		{"python submit.py --task /nowhere/resnet3.rad", Options{}, "resnet50-imagenet-bs128", 1, false}, // found by its name in the original
		{"python submit.py --task vgg.rad", Options{Rads: dir + "/other"}, "resnet50-imagenet-bs128", 1, false},
		{"python submit.py --task gpt2_large_2.rad", Options{}, "gpt2-large-wikitext2-bs8-2gpu", 2, false},
		{"sleep 1\npython submit.py --task nothing.rad", Options{}, `x.sh:2: no file `, 0, true},
		{"python submit.py --task vgg.rad", Options{Rads: dir}, "x.sh:1: no file ", 0, true},
		{"python submit.py --task two.rad", Options{}, "two.rad: no one workload is named two, or trains resnet50 with a batch of 64 on 2 GPUs; write in line 1: # carma: workload=NAME", 0, true},
		{"python submit.py --task wrong.rad", Options{}, `wrong.rad: line 1: unknown workload "vggg"; nearest: vgg`, 0, true},
		{"\npython submit.py --task broken.rad", Options{}, "broken.rad:8: number of GPUs", 0, true},
		{"python submit.py --task dlrm.rad", Options{Campaign: "v1"}, "x.sh:1: dlrm-criteo-bs32768 was not measured in campaign v1", 0, true},
		{"python submit.py --task vgg.rad # carma: priority=urgent", Options{}, `x.sh:1: # carma: unknown priority "urgent"; low, normal or high`, 0, true},
		{"python submit.py --task vgg.rad # carma: mem=12", Options{}, `x.sh:1: # carma: mem "12" is not an amount`, 0, true},
		{"python submit.py --task vgg.rad # carma: campaign=v1", Options{}, "x.sh:1: # carma: campaign belongs to the script", 0, true},
		{"# carma: campaign=v3\npython submit.py --task vgg.rad", Options{}, `x.sh:1: unknown campaign "v3"; v1 or v2`, 0, true},
	} {
		tr, err := ReadScript(filepath.Join(dir, "x.sh"), strings.NewReader(c.script), c.o)
		if c.failing {
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %s", c.script, err, c.want)
			}
			continue
		}
		if err != nil || tr.Tasks[0].Workload != c.want || tr.Tasks[0].GPUs != c.gpus || tr.Name != "x" || tr.Campaign != "v2" {
			t.Errorf("%s: %+v %v", c.script, tr, err)
		}
	}
	if tr, err := ReadRad(filepath.Join(dir, "own.rad"), Options{}); err != nil || len(tr.Tasks) != 1 || tr.Tasks[0].Workload != "resnet50-imagenet-bs64" || tr.Tasks[0].Name != "own" {
		t.Errorf("%+v %v", tr, err)
	}
	if _, err := ReadRad(filepath.Join(dir, "broken.rad"), Options{}); err == nil || !strings.Contains(err.Error(), "broken.rad:8: ") {
		t.Error(err)
	}
}

// FuzzScript: for any file the answer is submissions in order, or one line that
// names a line of the file. A script that is written is read as the same
// submissions.
func FuzzScript(f *testing.F) {
	f.Add("python src/submit.py --task workloads/a.rad\nsleep 73\npython src/submit.py --task 'b c.rad' # carma: name=\"\\\"\" mem=5\n")
	f.Add("# carma: name=x campaign=v1\nsleep 1m 0.5; submit.py & ")
	f.Fuzz(func(t *testing.T, content string) {
		s, err := ParseScript("x.sh", strings.NewReader(content))
		if err != nil {
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "x.sh:") {
				t.Errorf("%q", err)
			}
			return
		}
		last := time.Duration(0)
		for i := range s.Submits {
			one := &s.Submits[i]
			if one.At < last || one.Rad == "" || one.Line < 1 || one.Line > strings.Count(content, "\n")+1 {
				t.Errorf("%+v after %v", one, last)
			}
			last = one.At
			if strings.ContainsAny(one.Rad, "'\x00") {
				return // we do not write such names
			}
		}
		var b bytes.Buffer
		if err := s.Write(&b); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		again, err := ParseScript("x.sh", &b)
		if err != nil || submits(again) != submits(s) {
			t.Errorf("%v\n%q\n%s\n%s", err, text, submits(again), submits(s))
		}
	})
}
