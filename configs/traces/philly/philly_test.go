package philly

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"carma/configs/traces/joblog"
	"carma/configs/traces/synth"
)

// read returns a line for each entry: the job, or the fault.
func read(content string) ([]string, error) {
	var got []string
	err := Read(strings.NewReader(content), joblog.Sink{
		Job: func(j joblog.Job) {
			got = append(got, fmt.Sprintf("%d %s %s %s %d %d", j.Line, j.ID, j.User, j.State, j.GPUs, int(j.RunTime.Seconds())))
		},
		Broken: func(line int, what string) { got = append(got, fmt.Sprintf("%d: %s", line, what)) },
	})
	return got, err
}

func TestRead(t *testing.T) {
	content, err := os.ReadFile("testdata/cluster_job_log")
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(string(content))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"2 application_1500000000000_0001 u001 done 1 600",
		"23 application_1500000000000_0002 u002 killed 6 7200",
		"66 application_1500000000000_0003 u001 failed 0 0",
		"74 application_1500000000000_0004 u003 done 2 0",
		"96 application_1500000000000_0005 u003 done 1 0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	n := 0
	_ = Read(bytes.NewReader(content), joblog.Sink{Job: func(j joblog.Job) {
		if n++; n == 2 && j.Submitted != time.Date(2017, 10, 3, 9, 1, 0, 0, time.UTC) || n >= 3 && j.RunTime != joblog.Unknown {
			t.Errorf("job %d: %+v", n, j)
		}
	}})
}

// one returns a valid job on one line.
func one(id string) string {
	return `{"status":"Pass","jobid":"` + id + `","attempts":[],"submitted_time":"2017-10-03 09:00:00","user":"u"}`
}

func TestBroken(t *testing.T) {
	entry := func(with string) string {
		return `{"status":"Pass","jobid":"x","submitted_time":"2017-10-03 09:00:00",` + with + `}`
	}
	for _, c := range []struct{ name, content, want string }{
		{"lines without an array", one("a") + "\n" + one("b") + "\n", "1 a|2 b"},
		{"all on one line", "[" + one("a") + "," + one("b") + "]", "1 a|1 b"},
		{"an empty array", "[]", ""},
		{"a state", "[\n{\"status\":\"Passed\",\"jobid\":\"x\"},\n" + one("b") + "]", `2: unknown status "Passed"; nearest: Pass|3 b`},
		{"no id", "[\n{\"status\":\"Pass\"}]", "2: jobid is missing"},
		{"no submission", "[{\"status\":\"Pass\",\"jobid\":\"x\",\"submitted_time\":\"None\"}]", "1: submitted_time is missing"},
		{"a time", "[{\"status\":\"Pass\",\"jobid\":\"x\",\"submitted_time\":\"yesterday\"}]", `1: submitted_time "yesterday" is not a time`},
		{"the end before the start", "[" + entry(`"attempts":[{"start_time":"2017-10-03 09:00:01","end_time":"2017-10-03 09:00:00"}]`) + "]", "1: end_time 2017-10-03 09:00:00 is before start_time"},
		{"a type", "[" + entry(`"attempts":3`) + "]", "1: not a job: cannot unmarshal number"},
		{"a syntax", "[\n" + entry(`"user":`) + ",\n" + one("b") + "\n]", "2: not a job: invalid character|3 b"},
		{"a number", "[\n17,\n" + one("b") + "\n]", "2: not a job: an object in braces belongs here|3 b"},
		{"a string that is not closed", "[\n" + one("a") + ",\n{\"status\":\"Pa,\n" + one("b") + "\n]", "2 a|3: a brace of the job that begins here is not closed|4 b"},
		{"a brace that is not closed", "[\n" + one("a") + ",\n{\"status\":\"Pass\",\n" + one("b") + "\n]", "2 a|3: a brace of the job that begins here is not closed|4 b"},
		{"cut off within a job", "[\n" + one("a") + ",\n{\"status\":", "2 a|3: the file ends within the job that begins here"},
		{"cut off after a job", "[\n" + one("a") + ",\n", "2 a|3: the file ends before the array does: it may have been cut off"},
		{"more after the array", "[" + one("a") + "]\n]", "1 a|2: ']' after the end of the array"},
		{"too long", "[\n{\"vc\":\"" + strings.Repeat("x", joblog.MaxEntry) + "\"},\n" + one("b") + "]", "2: longer than 1 MiB|3 b"},
	} {
		got, err := read(c.content)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		want := strings.Split(c.want, "|")
		if c.want == "" {
			want = nil
		}
		if len(got) != len(want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: %q, want %q", c.name, got[i], want[i])
			}
		}
	}
	for content, want := range map[string]string{"": "1: no jobs", "\n\n": "3: no jobs", "\nstatus": "2: not a log of jobs: it begins with 's'"} {
		if _, err := read(content); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestBrokenBraceInDepth: in an indented log, a missing brace loses only one job.
func TestBrokenBraceInDepth(t *testing.T) {
	var log bytes.Buffer
	if err := synth.Philly(&log, synth.Options{Jobs: 30, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(log.String(), "\n")
	for i, line := range lines {
		if i < 60 || strings.TrimSpace(line) != "}" && strings.TrimSpace(line) != "}," {
			continue
		}
		cut := append(append([]string{}, lines[:i]...), lines[i+1:]...)
		got, err := read(strings.Join(cut, "\n"))
		good := 0
		for _, g := range got {
			if !strings.Contains(strings.Fields(g)[0], ":") {
				good++
			}
		}
		if err != nil || good != 29 {
			t.Errorf("without line %d: %d good jobs of 30, %v", i+1, good, err)
		}
	}
}

func TestSynthetic(t *testing.T) {
	for _, n := range []int{0, 1, 2, 600} {
		var a, b bytes.Buffer
		if err := synth.Philly(&a, synth.Options{Jobs: n, Seed: 3}); err != nil {
			t.Fatal(err)
		}
		_ = synth.Philly(&b, synth.Options{Jobs: n, Seed: 3})
		got, err := read(a.String())
		if err != nil || len(got) != n || a.String() != b.String() {
			t.Errorf("%d jobs of %d, %v; equal: %v", len(got), n, err, a.String() == b.String())
		}
		for _, g := range got {
			if strings.Contains(strings.Fields(g)[0], ":") {
				t.Error(g)
			}
		}
	}
}

// FuzzRead: in any file, every entry is a valid job, or is reported with a line
// of the file, in order.
func FuzzRead(f *testing.F) {
	f.Add(`[{"status":"Pass","jobid":"a","attempts":[{"start_time":"None","end_time":null,"detail":[{"gpus":["g"]}]}],"submitted_time":"2017-10-03 09:00:00"}]`)
	f.Add("[" + one("a") + ",\n{\"status\":\"Pa,\n" + one("b") + "\n]")
	f.Add(`{"status":"Pass","jobid":"\u0000","attempts":[{"detail":[{"gpus":[1,{}]}]}],"submitted_time":"2017-10-03 09:00:00"}`)
	f.Fuzz(func(t *testing.T, content string) {
		lines, last := strings.Count(content, "\n")+1, 0
		at := func(line int) {
			if line < max(1, last) || line > lines {
				t.Errorf("line %d of %d after %d", line, lines, last)
			}
			last = line
		}
		err := Read(strings.NewReader(content), joblog.Sink{
			Job: func(j joblog.Job) {
				at(j.Line)
				if j.ID == "" || j.GPUs < 0 || j.GPUs > joblog.MaxGPUs || j.RunTime < joblog.Unknown || j.RunTime > joblog.MaxTime || j.Submitted.IsZero() || j.State == "" {
					t.Errorf("%+v", j)
				}
			},
			Broken: func(line int, what string) {
				at(line)
				if what == "" || strings.Contains(what, "\n") {
					t.Errorf("%q", what)
				}
			},
		})
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Error(err)
		}
	})
}
