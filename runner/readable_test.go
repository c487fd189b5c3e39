package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"carma/containers/containerstest"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/verify"
)

// laterRows are rows that a later program might write, in the place of a row of
// the journal.
var laterRows = []struct {
	name, kind, from, to, want string
}{
	{"kind of event", "event", "", "", `event checkpointed (number `},
	{"kind of decision", "decision", "", "", `decision checkpoint (number `},
	{"field of an event", "event task-submitted", `"id":`, `"grace":7,"id":`, "field grace in event task-submitted"},
	{"field of a decision", "decision launch", `"grants":[{`, `"grants":[{"slice":1,`, "field grants.slice in decision launch"},
	{"field of the state", "snapshot", `"attempts":[{`, `"attempts":[{"parked":1,`, "field tasks.attempts.parked in snapshot"},
	{"phase in the state", "snapshot", `"phase":"running"`, `"phase":"parked"`, `value "parked" of field tasks.phase in snapshot`},
	{"reason", "snapshot", `"tasks":[{`, `"tasks":[{"reason":{"code":"eclipse"},`, `value "eclipse" of field tasks.reason.code in snapshot`},
	{"field of a record", "task", `"submit":{`, `"submit":{"airbag":true,`, "field submit.airbag in task"},
}

// TestLaterRows simulates a later version that adds content to a journal with a running task.
// This program refuses the journal before it does anything else, and names the unknown content
// and its writer.
func TestLaterRows(t *testing.T) {
	long(t)
	g := newRig(t)
	g.script("train", func(_ context.Context, p *containerstest.Process) int { <-p.Killed; return 137 })
	g.running(g.run(api.Submit{Image: "train", Mem: 8 << 30}))
	g.stop()
	for _, row := range laterRows {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			changeRow(t, g.dir, dir, row.kind, row.from, row.to)
			before := folder(t, dir)
			_, err := journal.OpenWith(dir, journal.Options{Version: "0.1.0", Readable: verify.Readable})
			if !errors.Is(err, journal.ErrNewer) {
				t.Fatalf("opened: %v", err)
			}
			for _, want := range []string{row.want, "use carma 0.9.9 or newer"} {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("the refusal is %q, without %q", err, want)
				}
			}
			if after := folder(t, dir); !maps.Equal(before, after) {
				t.Error("the refusal has changed the folder")
			}
			if row.kind != "task" && row.kind != "snapshot" {
				if _, err := verify.Journal(dir, "0.1.0"); !errors.Is(err, journal.ErrNewer) {
					t.Errorf("verify: %v", err)
				}
			}
		})
	}
	g.start()
}

// folder returns the database and the witness of a data folder.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"carma.db"} {
		b, err := os.ReadFile(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	return files
}

// changeRow copies a journal as version 0.9.9 would have written it: with the
// text from replaced by to in a kind of rows, or with one row of a new kind.
func changeRow(t *testing.T, from, to, kind, text, by string) {
	t.Helper()
	src, err := journal.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	dst, err := journal.OpenWith(to, journal.Options{Version: "0.9.9"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dst.Close() }()
	changed := 0
	change := func(of string, body []byte) []byte {
		if of != kind || changed > 0 || !bytes.Contains(body, []byte(text)) {
			return body
		}
		changed++
		body = bytes.Replace(body, []byte(text), []byte(by), 1)
		if !json.Valid(body) {
			t.Fatalf("%s is no JSON", body)
		}
		return body
	}
	snap, err := src.Load()
	if err != nil {
		t.Fatal(err)
	}
	var all journal.Batch
	for ev, err := range src.Events(0) {
		if err != nil {
			t.Fatal(err)
		}
		ev.Body = change("event "+ev.Kind, ev.Body)
		all.Events = append(all.Events, ev)
	}
	if kind == "event" {
		all.Events = append(all.Events, journal.Event{Kind: "checkpointed", At: snap.At, Body: []byte("{}")})
		changed++
	}
	for d, err := range src.Decisions(0) {
		if err != nil {
			t.Fatal(err)
		}
		d.Body = change("decision "+d.Kind, d.Body)
		all.Decisions = append(all.Decisions, d)
	}
	if kind == "decision" {
		all.Decisions = append(all.Decisions, journal.Decision{Seq: int64(len(all.Events)), N: 9, Kind: "checkpoint", Body: []byte("{}")})
		changed++
	}
	if all.Tasks, err = src.Tasks(journal.Filter{}); err != nil {
		t.Fatal(err)
	}
	for i := range all.Tasks {
		all.Tasks[i].Body = change("task", all.Tasks[i].Body)
	}
	if _, err := dst.Commit(all); err != nil {
		t.Fatal(err)
	}
	if kind == "snapshot" { // else all events are read
		if err := dst.Snapshot(snap.Seq, snap.At, change("snapshot", snap.Body)); err != nil {
			t.Fatal(err)
		}
	}
	if changed != 1 {
		t.Fatalf("%d rows of %s were changed, want 1", changed, kind)
	}
}

// TestReadsItsOwn checks that this program knows all content of a journal that it has written,
// with tasks in several phases.
func TestReadsItsOwn(t *testing.T) {
	g := newRig(t)
	g.script("train", func(_ context.Context, p *containerstest.Process) int { <-p.Killed; return 137 })
	g.running(g.run(api.Submit{Image: "train", Mem: 8 << 30}))
	g.stop()
	j, err := journal.OpenReadOnly(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(verify.CheckAll(j), j.Close()); err != nil {
		t.Error(err)
	}
	g.start()
}
