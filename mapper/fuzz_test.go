package mapper

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/policy"

	"pgregory.net/rapid"
)

// busyWorld returns a state in which each kind of object exists.
func busyWorld(t testing.TB) *world {
	opt := DefaultsOf("magm")
	opt.Ageing = time.Minute
	w := newWorld(t, opt, 3)
	ran(w, kind("k1", "k"), time.Minute, units.GiB)
	ran(w, kind("k2", "k"), time.Hour, 2*units.GiB)
	a := w.submit(10*units.GiB, func(r *model.Request) { r.User, r.TimeLimit = "ada", time.Hour })
	b := w.submit(20*units.GiB, gpus(2))
	w.started(a)
	w.started(b)
	w.wait(time.Minute)
	w.submit(10*units.GiB, whole)
	oom := w.submit(35*units.GiB, high)
	w.submit(25*units.GiB, low)
	w.submitOnly(nil)
	w.wait(2 * time.Minute)
	w.sample(model.GPUSample{ID: "GPU-1", Used: 22 * units.GiB, OtherProcesses: units.GiB, SMACT: 0.5, Tasks: []model.TaskUse{{Task: b, Used: 21 * units.GiB}}})
	w.exit(a, model.ExitGPUOOM)
	w.cancel(b)
	w.submit(35*units.GiB, limited("array", 1))
	w.submit(35*units.GiB, limited("array", 1))
	w.submit(units.GiB, func(r *model.Request) { after(oom, model.AfterOK)(r); r.Delay = time.Hour })
	if oom == 0 || w.s.ReservedFor("GPU-0")+w.s.ReservedFor("GPU-1")+w.s.ReservedFor("GPU-2") == 0 {
		t.Fatal("nothing is kept free")
	}
	return w
}

// FuzzDecodeEvent checks that reading any journal does not panic, and that a decoded
// event survives another round trip and can be applied.
func FuzzDecodeEvent(f *testing.F) {
	for _, ev := range []model.Event{
		model.Configured{At: 1, Options: DefaultOptions()},
		model.GPUsFound{At: 2, GPUs: []model.GPUInfo{{ID: "GPU-0", Capacity: 40 * units.GiB}, {ID: "GPU-9", Node: "b", Capacity: -1}}},
		model.EngineChanged{At: 3, Reason: "gone"},
		model.TaskSubmitted{At: 4, Request: model.Request{ID: 99, User: "ada", GPUs: 2, TimeLimit: time.Hour}},
		model.TaskSubmitted{At: 4, Request: model.Request{ID: 99, After: []model.Dependency{{Task: 1, Condition: model.AfterOK}, {Task: 4, Condition: model.AfterStarted}, {Task: 99, Condition: "?"}}, Delay: 1 << 62, Group: "array", Parallel: -1}},
		model.Estimated{At: 5, Task: 6, Estimate: model.Estimate{Memory: 1 << 62, WholeGPU: true}},
		model.Sampled{At: 6, GPUs: []model.GPUSample{{ID: "GPU-1", Used: -5, OtherProcesses: 1 << 62, SMACT: 7, Tasks: []model.TaskUse{{Task: 2, Used: 1 << 62}}}}},
		model.Started{At: 7, Task: 1, Attempt: 2},
		model.Exited{At: 1 << 62, Task: 1, Attempt: 2, Class: model.ExitGPUOOM, Peak: 1 << 62, Demand: -1},
		model.Cancel{At: -9, Task: 3},
		model.TimerFired{At: 1<<63 - 1},
	} {
		kind, body, err := model.EncodeEvent(ev)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(kind, body)
	}
	f.Add("", []byte("{}"))
	f.Add("woke", []byte("null"))
	f.Add("sampled", []byte(`{"gpus":[null,{}]}`))
	busy := busyWorld(f).s
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		ev, err := model.DecodeEvent(kind, body)
		if err != nil {
			return
		}
		again, body, err := model.EncodeEvent(ev)
		if err != nil || again != kind {
			t.Fatalf("%#v does not encode: %s, %v", ev, again, err)
		}
		if _, err := model.DecodeEvent(kind, body); err != nil {
			t.Fatal(err)
		}
		s := busy.Clone()
		s.Step(ev)
		if err := s.sound(); err != nil {
			t.Fatal(err)
		}
		exercise(t, s)
	})
}

// FuzzSnapshot checks that an inconsistent snapshot is rejected, or causes no panic later.
func FuzzSnapshot(f *testing.F) {
	for _, s := range []*State{busyWorld(f).s, New(DefaultOptions())} {
		b, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var s State
		if err := s.UnmarshalJSON(body); err != nil {
			return
		}
		if err := s.sound(); err != nil {
			t.Fatalf("a state that is not sound was taken: %v", err)
		}
		exercise(t, &s)
	})
}

// FuzzLife checks the properties with a fuzzer in place of random draws: each draw takes eight
// bytes. One seed always draws the first value, another one draws all values in turn.
func FuzzLife(f *testing.F) {
	const draws = 2000
	f.Add(make([]byte, 8*draws))
	for policy := range len(policy.Names()) {
		turn := make([]byte, 0, 8*draws)
		for i := range uint64(draws) {
			turn = binary.LittleEndian.AppendUint64(turn, (i+uint64(policy)+1)*0x9e3779b97f4a7c15) // spread over all values
		}
		f.Add(turn)
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { anyLife(t) }))
}

// exercise applies all kinds of events to a state. Only a panic or an inconsistent state is an
// error.
func exercise(t rapid.TB, s *State) {
	for range 3 {
		for _, task := range s.Tasks() {
			s.Why(task.ID)
			if task.Phase.Placed() {
				s.Step(model.Started{At: s.Now(), Task: task.ID, Attempt: len(task.Attempts)})
				s.Step(model.Sampled{At: s.Now(), GPUs: []model.GPUSample{{ID: task.Last().Grants[0].GPU, Tasks: []model.TaskUse{{Task: task.ID, Used: 1 << 62}}}}})
				s.Step(model.Exited{At: s.Now(), Task: task.ID, Attempt: len(task.Attempts), Class: model.ExitGPUOOM})
			} else {
				s.Step(model.Estimated{At: s.Now(), Task: task.ID, Estimate: model.Estimate{Memory: units.GiB}})
			}
		}
		if at, ok := s.NextTimer(); ok {
			s.Step(model.TimerFired{At: at})
		}
		s.Step(model.EngineChanged{At: s.Now(), Up: true})
	}
	for _, task := range s.Tasks() {
		s.Check(task.Request, task.Estimate)
		s.Step(model.Cancel{At: s.Now(), Task: task.ID})
	}
	s.Clone()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.sound(); err != nil {
		t.Fatal(err)
	}
	if err := new(State).UnmarshalJSON(b); err != nil {
		t.Fatalf("it does not come back: %v", err)
	}
}

// TestSnapshotMangled changes a good snapshot in a few places; a snapshot that is accepted must
// not cause a panic later.
func TestSnapshotMangled(t *testing.T) {
	good, err := json.Marshal(busyWorld(t).s)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		var tree any
		d := json.NewDecoder(bytes.NewReader(good))
		d.UseNumber() // an int64 is more than a float64 holds
		if err := d.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			mangle(t, tree)
		}
		body, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		var s State
		if s.UnmarshalJSON(body) == nil {
			taken++
			exercise(t, &s)
		}
	})
	if taken == 0 {
		t.Error("every mangled snapshot was refused: this tests nothing")
	}
}

// mangle changes one value somewhere below a JSON object or array.
func mangle(t *rapid.T, tree any) {
	var put func(any)
	var old any
	switch tree := tree.(type) {
	case map[string]any:
		if len(tree) == 0 {
			return
		}
		key := rapid.SampledFrom(slices.Sorted(maps.Keys(tree))).Draw(t, "key")
		old, put = tree[key], func(v any) { tree[key] = v }
	case []any:
		if len(tree) == 0 {
			return
		}
		i := rapid.IntRange(0, len(tree)-1).Draw(t, "index")
		old, put = tree[i], func(v any) { tree[i] = v }
	}
	switch old.(type) {
	case map[string]any, []any:
		if rapid.IntRange(0, 9).Draw(t, "here") > 0 {
			mangle(t, old)
			return
		}
	}
	put(rapid.SampledFrom([]any{
		nil, 0, 1, 2, 3, -1, 1 << 34, 1 << 62, int64(-1 << 63), true, "GPU-0", "queued", "running", "recovering", []any{}, map[string]any{},
	}).Draw(t, "value"))
}

// TestSnapshotRefused checks that snapshots with one wrong value are refused.
func TestSnapshotRefused(t *testing.T) {
	b, err := json.Marshal(busyWorld(t).s)
	if err != nil {
		t.Fatal(err)
	}
	good := string(b)
	if err := new(State).UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ old, new, want string }{
		{good, `{}`, "format 0"},
		{good, `[]`, "snapshot: json"},
		{`"format":2`, `"format":3`, "format 3"},
		{`"policy":"magm"`, `"policy":"gone"`, "unknown policy"},
		{`"look_ahead":64`, `"look_ahead":0`, "look-ahead"},
		{`"id":"GPU-2"`, `"id":"GPU-1"`, "there twice"},
		{`"gpus":[{`, `"gpus":[null,{`, "GPU is empty"},
		{`"tasks":[{`, `"tasks":[null,{`, "task is empty"},
		{`"reserved":24803436135`, `"reserved":1`, "the grants sum to"},
		{`"grant":21474836480`, `"grant":-1`, "has a grant of -1"},
		{`"task":4,"grant"`, `"task":8,"grant"`, "which is not placed"},
		{`{"id":4,"gpus":2`, `{"id":4,"gpus":3`, "wants 3 GPUs"},
		{`{"id":4,"gpus":2`, `{"id":3,"gpus":2`, "there twice"},
		{`{"id":5,`, `{"id":77,`, "the last task is"},
		{`"n":1`, `"n":2`, "has the number 2"},
		{`"phase":"estimating"`, `"phase":"running"`, "without an attempt"},
		{`"grants":[{"gpu":"GPU-0","memory":26843545600}]`, `"grants":null`, "has grants on 0"},
		{`"phase":"estimating"`, `"phase":"succeeded"`, "finished and still here"},
		{`"phase":"estimating"`, `"phase":"on holiday"`, "on holiday"},
		{`"phase":"stopping"`, `"phase":"queued"`, "not placed"},
		{`"hold":{"task":`, `"hold":{"task":9`, "does not wait"},
		{`"capacity":42949672960`, `"capacity":-1`, "has -1 bytes"},
	} {
		bad := strings.Replace(good, row.old, row.new, 1)
		if bad == good {
			t.Errorf("%s is not in the snapshot:\n%s", row.old, good)
			continue
		}
		s := New(plain())
		if err := s.UnmarshalJSON([]byte(bad)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s instead of %s: got %v, want %q", row.new, row.old, err, row.want)
		}
		if !reflect.DeepEqual(s.Options(), plain()) || s.LastID() != 0 {
			t.Error("a refused snapshot has changed the state")
		}
	}
}
