package containers

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

type startSample struct{ scope, code, device, source, msg string }

func startSamples(t *testing.T) []startSample {
	t.Helper()
	b, err := os.ReadFile("testdata/starts.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []startSample
	for l := range strings.Lines(string(b)) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		head, rest, _ := strings.Cut(l, " | ")
		source, msg, ok := strings.Cut(rest, " | ")
		f := strings.Fields(head)
		if !ok || len(f) != 3 {
			t.Fatalf("not a sample: %s", l)
		}
		all = append(all, startSample{f[0], f[1], strings.Trim(f[2], "-"), source, msg})
	}
	return all
}

// TestStartFaults: each message of an engine about a failed start gives the right scope
// (R4, R6).
func TestStartFaults(t *testing.T) {
	used := map[string]bool{}
	for _, s := range startSamples(t) {
		for _, msg := range []string{s.msg, CleanMessage(s.msg)} {
			f := ReadStartFault(msg)
			switch {
			case s.scope == "none":
				if f != nil || SubmitterFault(msg) || MachineFault(msg) {
					t.Errorf("%s: %+v for %s", s.source, f, msg)
				}
				continue
			case s.code == "-":
				if f != nil || !SubmitterFault(msg) || MachineFault(msg) {
					t.Errorf("%s: %+v for %s", s.source, f, msg)
				}
				continue
			case f == nil:
				t.Errorf("%s: nothing is known of %s", s.source, msg)
				continue
			}
			used[f.Code] = true
			if string(f.Scope) != s.scope || f.Code != s.code || strings.HasPrefix(s.device, "/dev") && f.Device != s.device || s.device != "" && !strings.Contains(f.Cause, s.device) {
				t.Errorf("%s: %s %s %q, want %s %s %q\n\t%s", s.source, f.Scope, f.Code, f.Device, s.scope, s.code, s.device, msg)
			}
			if f.Cause == "" || f.Remedy == "" || MachineFault(msg) == (s.scope == "task") {
				t.Errorf("%s: %+v", s.source, f)
			}
		}
	}
	for _, r := range startRules {
		if !used[r.code] {
			t.Errorf("no sample for row %s", r.code)
		}
	}
}

// TestStartFaultOf: a message that matches no row has ScopeUnknown, unless the driver
// says that the request is invalid.
func TestStartFaultOf(t *testing.T) {
	for _, tc := range []struct {
		err   error
		scope Scope
		code  string
	}{
		{errors.New("something new"), ScopeUnknown, "unknown"},
		{fmt.Errorf("start: %w: bad user", ErrInvalid), ScopeTask, "refused"},
		{fmt.Errorf("create: %w: image", ErrNotFound), ScopeTask, "refused"},
		{fmt.Errorf("start: %w", ReadStartFault("could not find bridge docker0")), ScopeEngine, "bridge-gone"},
		{errors.New("start: nvidia-container-cli: device error: 1: unknown device"), ScopeGPU, "device-unknown"},
		{fmt.Errorf("start container %s: %s", "bb9bbc5dd8df", "something new"), ScopeUnknown, "unknown"},
	} {
		if f := StartFaultOf(tc.err); f.Code == "unknown" && f.Cause != "something new" {
			t.Errorf("%v: cause %q", tc.err, f.Cause)
		}
		if f := StartFaultOf(tc.err); f.Scope != tc.scope || f.Code != tc.code {
			t.Errorf("%v: %s %s, want %s %s", tc.err, f.Scope, f.Code, tc.scope, tc.code)
		}
	}
}
