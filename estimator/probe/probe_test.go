package probe

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
)

const small = `{"schema":1,"name":"Net","family":"mlp","train":{"batch":4,"optimizer":"sgd"},"inputs":[{"shape":[3]}],` +
	`"layers":[{"type":"linear","inputs":[-1],"out":[2],"params":[6,2],"keeps":{"inputs":[0]}}]}`

// say prints a record like the Python side.
func say(mark, kind, rest string) string {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	fmt.Fprintf(w, `{"kind":%q,"pid":7%s}`, kind, rest)
	_ = w.Close()
	text := base64.StdEncoding.EncodeToString(z.Bytes())
	half := len(text) / 2
	return fmt.Sprintf("%s 7 %d 0 . %s\n%s 7 %d 1 $ %s\n", mark, len(rest), text[:half], mark, len(rest), text[half:])
}

func environment(p *containerstest.Process, key string) (value string) {
	for _, kv := range p.Spec.Env { // the last one counts
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			value = v
		}
	}
	return value
}

// probed runs a script as the image's program.
func probed(t *testing.T, script containerstest.Script) (*containerstest.Fake, Request) {
	t.Helper()
	f := containerstest.NewFake()
	t.Cleanup(f.Shutdown)
	f.AddImage("train", containerstest.Image{Run: script, Env: []string{"PYTHONPATH=/opt/lib"}})
	return f, Request{Image: "train", Folder: t.TempDir(), Env: []string{"A=1"}, Mounts: []containers.Mount{{Source: "/data", Target: "/data"}}, GPUs: 2}
}

func gone(t *testing.T, f *containerstest.Fake) {
	t.Helper()
	if left, err := f.List(t.Context(), nil); err != nil || len(left) != 0 {
		t.Errorf("%d containers left, %v", len(left), err)
	}
}

func TestRun(t *testing.T) {
	f, request := probed(t, func(ctx context.Context, p *containerstest.Process) int {
		s := p.Spec
		if s.Sandbox == nil || s.Sandbox.Memory != 8<<30 || !s.NoNewPrivileges || len(s.GPUs) != 0 {
			p.Err("not shut in")
			return 1
		}
		for _, m := range s.Mounts {
			if !m.ReadOnly {
				p.Err("%s can be written", m.Target)
				return 1
			}
		}
		if s.Labels[Label] == "" {
			p.Err("labels %v", s.Labels)
			return 1
		}
		if environment(p, "PYTHONPATH") != Target+":/opt/lib" || environment(p, "A") != "1" || environment(p, "CARMA_PROBE_GPUS") != "2" {
			p.Err("environment %q", s.Env)
			return 1
		}
		fmt.Fprint(p.Stderr, "noise\n"+say(environment(p, "CARMA_PROBE"), "result", `,"config":`+small))
		<-p.Killed // a launcher that ends only when it is killed
		return 137
	})
	c, err := Run(t.Context(), f, request)
	if err != nil || c.Name != "Net" || c.Origin != "probe" || len(c.Layers) != 1 {
		t.Fatalf("Run = %+v, %v", c, err)
	}
	gone(t, f)
}

func TestRunFails(t *testing.T) {
	big := `{"schema":1,"name":"Net","train":{"batch":4},"inputs":[{"shape":[3]}],"layers":[{"type":"linear","inputs":[-1],"out":[1099511627776,1099511627776]}]}`
	for name, tc := range map[string]struct {
		kind, rest string
		code       int
		want       string
	}{
		"its own reason": {"failed", `,"reason":"the program failed:\n\u001b[1mKeyError: 'x'"`, 1, "the program failed: [1mKeyError: 'x'"},
		"ended":          {"ended", `,"reason":"the program ended without an optimizer step"`, 0, "the program ended without an optimizer step"},
		"silent":         {"", "", 3, "the image runs no Python program that could be probed (exit code 3)"},
		"killed":         {"", "", 137, "the program needs more than the probe's 8 GiB of memory"},
		"forged shape":   {"result", `,"config":` + big, 86, "the probe's record is not sound: layer 0: shape [1099511627776 1099511627776]"},
		"forged field":   {"result", `,"config":{"schema":1,"evil":true}`, 86, `the probe's record is not sound: json: unknown field "evil"`},
		"forged input":   {"result", `,"config":` + strings.Replace(small, "[-1]", "[5]", 1), 86, "the probe's record is not sound: layer 0: takes the output of 5"},
		"no config":      {"result", "", 86, "the probe's record is not sound: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			f, request := probed(t, func(_ context.Context, p *containerstest.Process) int {
				if tc.kind != "" {
					fmt.Fprint(p.Stderr, say(environment(p, "CARMA_PROBE"), tc.kind, tc.rest))
				}
				return tc.code
			})
			_, err := Run(t.Context(), f, request)
			if failed, ok := errors.AsType[*FailedError](err); !ok || failed.Reason != tc.want {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			gone(t, f)
		})
	}
}

func TestPartial(t *testing.T) {
	f, request := probed(t, func(_ context.Context, p *containerstest.Process) int {
		fmt.Fprint(p.Stderr, say(environment(p, "CARMA_PROBE"), "partial", `,"config":`+small))
		return 137
	})
	c, err := Run(t.Context(), f, request)
	if err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "only a part of a training step was seen: the program needs more than") {
		t.Fatalf("Run = %+v, %v", c, err)
	}
	gone(t, f)
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, request := probed(t, func(_ context.Context, p *containerstest.Process) int {
		cancel()
		<-p.Killed
		return 137
	})
	if _, err := Run(ctx, f, request); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	gone(t, f)
}

func TestEngineErrors(t *testing.T) {
	f, request := probed(t, nil)
	request.Image = "unknown"
	if _, err := Run(t.Context(), f, request); !errors.Is(err, containers.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

func TestLimits(t *testing.T) {
	if l := (Limits{}).withDefaults(); l.Timeout != 2*time.Minute || l.CPUs < 1 || l.CPUs > 4 {
		t.Errorf("limits %+v", l)
	}
}

// FuzzHear: no output of a program makes anything grow without bounds, or panics.
func FuzzHear(f *testing.F) {
	f.Add(say("m", "result", `,"config":`+small))
	f.Add("m 1 1 0 . AAAA\nm 1 1 1 $ AAAA\nm x y z $ =\n")
	f.Fuzz(func(t *testing.T, text string) {
		h := newHearer("m")
		for line := range strings.Lines(text) {
			h.line([]byte(line))
		}
		c, err := conclude(h, ending{}, Limits{}.withDefaults())
		if (c == nil) == (err == nil) {
			t.Errorf("%v, %v", c, err)
		}
		if c != nil && check(c) != nil {
			t.Errorf("unsound: %v", check(c))
		}
	})
}
