package model

import (
	"go/ast"
	"reflect"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
)

// decisions contains one decision of each kind, with all fields set.
var decisions = []Decision{
	Launch{Task: 7, Attempt: 2, Grants: []Grant{{GPU: "a", Memory: units.GiB}, {GPU: "b", Memory: units.GiB}}, Alone: true},
	Stop{Task: 7, Attempt: 2, Reason: Reason{Code: ReasonTimeLimit, Span: time.Minute}},
	Requeue{Task: 7, Need: 3 * units.GiB, Alone: true, Reason: oom},
	Release{Task: 7},
	Finish{Task: ended(func(*Task) {})},
	SetTimer{At: 9},
	Idle{Task: 7, Attempt: 2, Since: 5, Ends: 9},
	GrantExceeded{Task: 7, GPU: "a", Used: 3 * units.GiB, Grant: units.GiB, Booked: 2 * units.GiB},
	GrantChanged{Task: 7, Attempt: 1, Grants: []Grant{{GPU: "a", Memory: 2 * units.GiB}}},
	Resize{Task: 7, Attempt: 2, Host: HostShare{Node: "a", Memory: units.GiB, Limit: 2 * units.GiB, CPUs: 500, Weight: 500}},
	Suspend{Task: 7, Attempt: 2, Host: units.GiB, Reason: Reason{Code: ReasonSuspended, Name: "ada"}},
	Resume{Task: 7, Attempt: 2, From: []GPUID{"a"}, Grants: []Grant{{GPU: "b", Memory: units.GiB}}},
}

// oom has a cause.
var oom = Reason{Code: ReasonOOM, Cause: &Reason{Code: ReasonWantedMore, Need: 2 * units.GiB, Have: units.GiB}}

// ended returns a task that has ended, changed by edit.
func ended(edit func(*Task)) Task {
	t := Task{
		Request: Request{ID: 7, User: "ada", GPUs: 1}, Phase: Failed, Submitted: 1, NextGrant: 3 * units.GiB, Ended: 9, Code: 1, OOMs: 1, Reason: Reason{Code: ReasonProgram, Count: 1, Text: "exit code 1"},
		Attempts: []Attempt{
			{N: 1, Grants: []Grant{{GPU: "a", Memory: units.GiB}}, Launched: 2, Started: 3, Ended: 4, Class: ExitGPUOOM, Code: 1, Message: "CUDA out of memory", Reason: oom},
			{N: 2, Grants: []Grant{{GPU: "a", Memory: 3 * units.GiB}}, Launched: 5, Started: 6, Ended: 9, Class: ExitProgram, Code: 1, Message: "exit code 1"},
		},
	}
	edit(&t)
	return t
}

// TestDecisionRoundTrip checks that each decision survives its JSON form, and that the
// list has all decisions of the package.
func TestDecisionRoundTrip(t *testing.T) {
	var listed []string
	kinds := map[string]bool{}
	for _, d := range decisions {
		kind, body, err := EncodeDecision(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeDecision(kind, body)
		if err != nil || !reflect.DeepEqual(back, d) {
			t.Errorf("%#v came back as %#v, %v", d, back, err)
		}
		if !SameDecision(back, d) || kinds[kind] {
			t.Errorf("%s is not the same after its way through JSON, or is there twice", kind)
		}
		kinds[kind] = true
		listed = append(listed, reflect.TypeOf(d).Name())
	}
	files, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, f := range files {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "DecisionKind" {
				declared = append(declared, fn.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	slices.Sort(listed)
	slices.Sort(declared)
	if !slices.Equal(listed, declared) || len(kinds) != len(DecisionDecoders) {
		t.Errorf("the package has the decisions %s, %s are tested and %d decode", declared, listed, len(DecisionDecoders))
	}
}

// TestDecisionOfAnotherProgram checks that an unreadable decision is an error, not a
// guess.
func TestDecisionOfAnotherProgram(t *testing.T) {
	for _, row := range [][2]string{{"", "{}"}, {"teleport", "{}"}, {"launch", "["}, {"launch", `{"task":"x"}`}} {
		if d, err := DecodeDecision(row[0], []byte(row[1])); err == nil {
			t.Errorf("%s %s is read as %#v", row[0], row[1], d)
		}
	}
}

// TestSameDecision checks that decisions with different effects are never the same, and
// that sentences do not count.
func TestSameDecision(t *testing.T) {
	for i, a := range decisions {
		for j, b := range decisions {
			if SameDecision(a, b) != (i == j) {
				t.Errorf("%#v and %#v: same is %v", a, b, SameDecision(a, b))
			}
		}
	}
	finish := func(edit func(*Task)) Decision { return Finish{Task: ended(edit)} }
	for _, row := range []struct {
		name string
		a, b Decision
		same bool
	}{
		{"another grant", decisions[0], Launch{Task: 7, Attempt: 2, Grants: []Grant{{GPU: "a", Memory: units.GiB}, {GPU: "b", Memory: 2 * units.GiB}}, Alone: true}, false},
		{"another order of grants", decisions[0], Launch{Task: 7, Attempt: 2, Grants: []Grant{{GPU: "b", Memory: units.GiB}, {GPU: "a", Memory: units.GiB}}, Alone: true}, false},
		{"another attempt", decisions[0], Launch{Task: 7, Attempt: 3, Grants: []Grant{{GPU: "a", Memory: units.GiB}, {GPU: "b", Memory: units.GiB}}, Alone: true}, false},
		{"not alone", decisions[0], Launch{Task: 7, Attempt: 2, Grants: []Grant{{GPU: "a", Memory: units.GiB}, {GPU: "b", Memory: units.GiB}}}, false},
		{"a stop in other words", decisions[1], Stop{Task: 7, Attempt: 2, Reason: Reason{Code: ReasonText, Text: "ran longer than 1m"}}, true},
		{"a stop of another attempt", decisions[1], Stop{Task: 7, Attempt: 1, Reason: Reason{Code: ReasonTimeLimit, Span: time.Minute}}, false},
		{"a requeue in other words", decisions[2], Requeue{Task: 7, Need: 3 * units.GiB, Alone: true, Reason: Reason{Code: ReasonText, Text: "no memory left"}}, true},
		{"a requeue for more", decisions[2], Requeue{Task: 7, Need: 4 * units.GiB, Alone: true, Reason: oom}, false},
		{"another instant", SetTimer{At: 9}, SetTimer{At: 10}, false},
		{"another booking", decisions[6], GrantExceeded{Task: 7, GPU: "a", Used: 3 * units.GiB, Grant: units.GiB, Booked: 3 * units.GiB}, false},
		{"an end in other words", decisions[4], finish(func(t *Task) {
			t.Reason, t.Attempts[0].Message = Reason{Code: ReasonText, Text: "it failed"}, "OOM"
		}), true},
		{"predicted otherwise", decisions[4], finish(func(t *Task) { t.Done, t.Speed, t.Expected.Source = 3, 0.5, "guess" }), true},
		{"another phase", decisions[4], finish(func(t *Task) { t.Phase = Cancelled }), false},
		{"another code", decisions[4], finish(func(t *Task) { t.Code = 2 }), false},
		{"another end", decisions[4], finish(func(t *Task) { t.Ended = 10 }), false},
		{"fewer attempts", decisions[4], finish(func(t *Task) { t.Attempts = t.Attempts[:1] }), false},
		{"another class", decisions[4], finish(func(t *Task) { t.Attempts[0].Class = ExitProgram }), false},
		{"another grant before", decisions[4], finish(func(t *Task) { t.Attempts[0].Grants[0].Memory = 2 * units.GiB }), false},
		{"another start", decisions[4], finish(func(t *Task) { t.Attempts[1].Started = 7 }), false},
	} {
		if SameDecision(row.a, row.b) != row.same || SameDecision(row.b, row.a) != row.same {
			t.Errorf("%s: same is %v, want %v", row.name, !row.same, row.same)
		}
	}
}
