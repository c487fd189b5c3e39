package runner

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/verify"
)

// mixed makes a journal with tasks that ran out of memory, failed, were run
// again and were stopped. It returns its folder.
func mixed(t *testing.T) string {
	t.Helper()
	g := newRig(t)
	g.script("mixed", func(ctx context.Context, p *containerstest.Process) int {
		n, _ := strconv.Atoi(p.Spec.Labels[label.Task])
		first := p.Spec.Labels[label.Attempt] == "1"
		switch {
		case n%4 == 1 && first:
			return printing(1, pytorchOOM)(ctx, p)
		case n%4 == 2:
			return 3
		case n%4 == 3:
			<-p.Killed
			return 137
		}
		return 0
	})
	for i := range 8 {
		ref := g.run(api.Submit{Image: "mixed", Command: []string{strconv.Itoa(i)}, Mem: int64(4 * units.GiB), Retries: i % 4 / 2})
		if i%4 == 2 {
			if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{Reason: "enough"}); err != nil {
				t.Fatal(err)
			}
		}
		g.finished(ref)
	}
	g.stop()
	g.stop = nil
	return g.dir
}

// copied writes a journal's events, decisions and records into another folder.
// edit changes the decisions and records.
func copied(t *testing.T, from, to string, edit func(kind string, body any) any) {
	t.Helper()
	src, err := journal.OpenReadOnly(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	edited := func(kind string, body []byte) []byte {
		var v any
		d := json.NewDecoder(strings.NewReader(string(body)))
		d.UseNumber() // a float64 cannot hold an instant
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(edit(kind, v))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var all journal.Batch
	for ev, err := range src.Events(0) {
		if err != nil {
			t.Fatal(err)
		}
		all.Events = append(all.Events, ev)
	}
	for d, err := range src.Decisions(0) {
		if err != nil {
			t.Fatal(err)
		}
		d.Body = edited(d.Kind, d.Body)
		all.Decisions = append(all.Decisions, d)
	}
	rows, err := src.Tasks(journal.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		row.Body = edited("", row.Body)
		all.Tasks = append(all.Tasks, row)
	}
	dst, err := journal.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dst.Close() }()
	all.Decided = int64(len(all.Events))
	if _, err := dst.Commit(all); err != nil {
		t.Fatal(err)
	}
}

// reworded replaces every reason by the result of say, and every message of an attempt by
// another text.
func reworded(v any, say func(reason any) any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			switch {
			case key == "message":
				v[key] = "in other words"
			case key == "reason" || key == "stop_reason":
				v[key] = say(x)
			default:
				v[key] = reworded(x, say)
			}
		}
	case []any:
		for i := range v {
			v[i] = reworded(v[i], say)
		}
	}
	return v
}

// TestVerifyIgnoresWords: a journal with reasons in other words, such as the
// sentences of an older version, is loaded and sound (R3).
func TestVerifyIgnoresWords(t *testing.T) {
	long(t)
	from := mixed(t)
	for name, say := range map[string]func(any) any{
		"sentences": func(any) any { return "in other words" },
		"texts": func(reason any) any {
			if r, ok := reason.(map[string]any); ok {
				r["text"] = "in other words"
			}
			return reason
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := 0
			g := newRig(t, func(g *rig) {
				copied(t, from, g.dir, func(_ string, v any) any {
					return reworded(v, func(r any) any { changed++; return say(r) })
				})
			})
			if changed < 10 {
				t.Fatalf("only %d reasons were there to be changed", changed)
			}
			for id := 1; id <= 8; id++ {
				task, err := g.api.Task(g.ctx(), strconv.Itoa(id))
				if err != nil || !task.Finished() {
					t.Fatalf("task %d: %+v, %v", id, task, err)
				}
				if (task.Phase == "succeeded") != (task.Reason == "") {
					t.Errorf("task %d %s: %q", id, task.Phase, task.Reason)
				}
			}
			v, err := verify.Journal(g.dir, "test")
			if err != nil || len(v.Faults) > 0 || v.Submitted != 8 || v.Compared < 20 {
				t.Errorf("verify: %+v, %v", v, err)
			}
		})
	}
}

// TestVerifySeesOtherFigures: a decision is reported if its code or figures
// differ from the replay's.
func TestVerifySeesOtherFigures(t *testing.T) {
	long(t)
	from := mixed(t)
	set := func(key string, to any) func(map[string]any) {
		return func(body map[string]any) { body[key] = to }
	}
	in := func(key string, change func(map[string]any)) func(map[string]any) {
		return func(body map[string]any) { change(body[key].(map[string]any)) }
	}
	for _, row := range []struct {
		name, kind string
		change     func(body map[string]any)
	}{
		{"another need", "requeue", set("need", 1)},
		{"another reason", "requeue", in("reason", set("code", "evicted"))},
		{"another figure of a reason", "requeue", in("reason", in("cause", set("have", 1)))},
		{"another reason of a stop", "stop", in("reason", set("code", "time-limit"))},
		{"another end", "finish", in("task", set("phase", "cancelled"))},
		{"another exit code", "finish", in("task", set("code", 77))},
		{"another task", "launch", set("task", 99)},
	} {
		t.Run(row.name, func(t *testing.T) {
			to, done := t.TempDir(), false
			copied(t, from, to, func(kind string, v any) any {
				if kind == row.kind && !done {
					done = true
					row.change(v.(map[string]any))
				}
				return v
			})
			v, err := verify.Journal(to, "test")
			if err != nil || !done || len(v.Faults) != 1 || !strings.Contains(v.Faults[0], row.kind) {
				t.Errorf("changed %v; verify: %q, %v", done, v.Faults, err)
			}
		})
	}
}
