package containers

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sample is a log tail. Its first line contains the exit of the container and the expected
// verdict.
type sample struct {
	exit   Exit
	facts  Facts
	class  Class
	rule   string
	demand int64
	lines  []string
}

func readSample(t testing.TB, path string) sample {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(b), "\n")
	s := sample{exit: Exit{Started: time.Unix(1, 0), Finished: time.Unix(2, 0)}}
	for _, field := range strings.Fields(strings.TrimPrefix(head, "#")) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "code":
			s.exit.Code, err = strconv.Atoi(value)
		case "class":
			s.class = Class(value)
		case "rule":
			s.rule = value
		case "framework", "kind", "source": // provenance
		case "demand":
			s.demand, err = strconv.ParseInt(value, 10, 64)
		case "facts":
			s.exit.OOMKilled = strings.Contains(value, "oom-killed")
			s.facts.Memory.CardFull = strings.Contains(value, "card-full")
			s.facts.EngineLost = strings.Contains(value, "engine-lost")
			s.facts.Stopped = strings.Contains(value, "stopped")
			if strings.Contains(value, "untouched") {
				s.facts.Memory = GPUMemory{Readings: 60, Span: time.Minute, Grant: 8 << 30}
			}
			if strings.Contains(value, "below") {
				s.facts.Memory = GPUMemory{Readings: 60, Seen: true, AtError: true, Peak: 1 << 30, Grant: 8 << 30}
			}
			if strings.Contains(value, "used-before") {
				s.facts.Memory = GPUMemory{Readings: 60, Seen: true, Peak: 4 << 30, Grant: 8 << 30}
			}
			if strings.Contains(value, "xid") {
				s.facts.GPUFault = "Xid 79: the GPU has fallen off the bus"
			}
		default:
			t.Fatalf("%s: unknown field %q", path, key)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	var tail Tail
	for l := range strings.Lines(body) {
		tail.Add(Stderr, []byte(strings.TrimSuffix(l, "\n")), false)
	}
	s.lines = tail.Lines()
	return s
}

func samples(t testing.TB) map[string]sample {
	t.Helper()
	paths, err := filepath.Glob("testdata/tails/*.txt")
	if err != nil || len(paths) < 60 {
		t.Fatalf("%d samples, %v", len(paths), err)
	}
	all := map[string]sample{}
	for _, p := range paths {
		all[strings.TrimSuffix(filepath.Base(p), ".txt")] = readSample(t, p)
	}
	return all
}

func TestClassifySamples(t *testing.T) {
	for name, s := range samples(t) {
		v := Classify(s.exit, s.lines, s.facts)
		if v.Class != s.class || s.rule != "" && v.Rule != s.rule || v.Demand != s.demand {
			t.Errorf("%s: %s by %q, demand %d; want %s by %q, demand %d\n\tevidence: %s",
				name, v.Class, v.Rule, v.Demand, s.class, s.rule, s.demand, v.Evidence)
		}
		if v.Message == "" || strings.Contains(v.Message, "\n") || v.Code != s.exit.Code {
			t.Errorf("%s: message %q, code %d", name, v.Message, v.Code)
		}
		if v.Rule != "" && v.Evidence == "" {
			t.Errorf("%s: no evidence", name)
		}
	}
}

// TestClassifyOutranksLog checks that exit code 0 is classified as ok and a stopped run as
// stopped, for any log.
func TestClassifyOutranksLog(t *testing.T) {
	for name, s := range samples(t) {
		if v := Classify(Exit{}, s.lines, s.facts); v.Class != ClassOK {
			t.Errorf("%s with exit code 0: %s", name, v.Class)
		}
		if v := Classify(Exit{Code: 137, OOMKilled: true}, s.lines, Facts{Stopped: true}); v.Class != ClassStopped {
			t.Errorf("%s, stopped by carma: %s", name, v.Class)
		}
	}
}

func TestClassifyStart(t *testing.T) {
	started := time.Unix(5, 0)
	tests := []struct {
		exit Exit
		want Class
		msg  string
	}{
		{Exit{Code: 127, Error: "exec: \"pyhton\": executable file\nnot found"}, ClassCannotStart,
			`cannot start: exec: "pyhton": executable file not found`},
		{Exit{Code: 128, Error: `could not select device driver "" with capabilities: [[gpu]]`}, ClassInfrastructure, ""},
		{Exit{Code: 128, Error: "nvidia-container-cli: initialization error: driver not loaded"}, ClassInfrastructure, ""},
		{Exit{Code: 126, Finished: started}, ClassCannotStart, ""},
		{Exit{Code: 127, Started: started, Finished: started}, ClassProgram, "exit code 127 (command not found)"},
		{Exit{Code: 137, Started: started}, ClassProgram, "killed (signal 9)"},
		{Exit{Code: 143, Started: started}, ClassProgram, "terminated (signal 15)"},
		{Exit{Code: 139, Started: started}, ClassProgram, "crashed (segmentation fault, signal 11)"},
		{Exit{Code: 158, Started: started}, ClassProgram, "ended by signal 30"},
		{Exit{Code: 255, Started: started}, ClassProgram, "exit code 255"},
		{Exit{Code: 255, Started: started, Lost: true}, ClassInfrastructure, "the container engine lost it"},
	}
	for _, tc := range tests {
		v := Classify(tc.exit, nil, Facts{})
		if v.Class != tc.want || !strings.Contains(v.Message, tc.msg) {
			t.Errorf("%+v: %s, %q; want %s, %q", tc.exit, v.Class, v.Message, tc.want, tc.msg)
		}
	}
}

func TestClassifyFirstMatch(t *testing.T) {
	// One rank runs out of memory, then MPS ends another one.
	tail := []string{
		"[rank1]: Traceback (most recent call last):",
		"[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.",
		"[rank0]: Traceback (most recent call last):",
		"[rank0]: RuntimeError: CUDA error: the MPS client has been terminated by the server",
	}
	v := Classify(Exit{Code: 1, Started: time.Unix(1, 0)}, tail, Facts{})
	if v.Class != ClassGPUOOM || !strings.HasPrefix(v.Evidence, "torch.OutOfMemoryError") {
		t.Errorf("%+v, want the first of two matches", v)
	}
	if got := v.Message; got != "out of GPU memory (PyTorch)" {
		t.Errorf("message = %q", got)
	}
}

func TestClassifyNamesTheBug(t *testing.T) {
	s := readSample(t, "testdata/tails/plain-bug.txt")
	v := Classify(s.exit, s.lines, s.facts)
	if want := "exit code 1: ZeroDivisionError: division by zero"; v.Message != want {
		t.Errorf("message = %q, want %q", v.Message, want)
	}
}

func FuzzClassify(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.exit.Code, strings.Join(s.lines, "\n"), s.facts.Memory.CardFull)
	}
	f.Fuzz(func(t *testing.T, code int, log string, full bool) {
		var tail Tail
		for l := range strings.Lines(log) {
			tail.Add(Stdout, []byte(strings.TrimSuffix(l, "\n")), false)
		}
		v := Classify(Exit{Code: code, Started: time.Unix(1, 0)}, tail.Lines(), Facts{Memory: GPUMemory{CardFull: full}})
		switch {
		case (code == 0) != (v.Class == ClassOK):
			t.Errorf("code %d: %s", code, v.Class)
		case v.Class == ClassGPUOOM && v.Rule == "":
			t.Errorf("out of memory without a match: %+v", v)
		case v.Demand < 0 || v.Demand > 1<<52 || v.Demand > 0 && v.Class == ClassOK:
			t.Errorf("demand %d", v.Demand)
		case strings.ContainsAny(v.Message, "\r\n") || v.Message == "" || len(v.Message) > 800:
			t.Errorf("message %q", v.Message)
		}
	})
}
