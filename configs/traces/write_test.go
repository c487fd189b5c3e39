package traces

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"carma/configs/workloads"
	"carma/internal/units"

	"pgregory.net/rapid"
)

// same compares traces without the line numbers of their tasks.
func same(a, b Trace) bool {
	a.Tasks, b.Tasks = append([]Task(nil), a.Tasks...), append([]Task(nil), b.Tasks...)
	for i := range a.Tasks {
		a.Tasks[i].Line = 0
	}
	for i := range b.Tasks {
		b.Tasks[i].Line = 0
	}
	return reflect.DeepEqual(a, b)
}

// TestWrite: a written trace is read as the same trace, with any names.
func TestWrite(t *testing.T) {
	for _, name := range append(Names(), "generated-2x100") {
		tr, err := Read(name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Write(&b, tr); err != nil {
			t.Fatal(err)
		}
		if got, err := Parse("x.yaml", &b); err != nil || !same(got, tr) {
			t.Errorf("%s: %v", name, err)
		}
	}
	texts := rapid.OneOf(rapid.SampledFrom([]string{"", "null", "No", "~", "1e5", "0x1", "2020-01-01", "a: b", "- a", "#x", "&a", "*a", "{}", "\x7f", "é\u2028\x00", "'\"\\", "true.x"}), rapid.String())
	all := workloads.All()
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return strings.TrimSpace(texts.Draw(t, name)) }
		tr := Trace{Name: text("name") + "x", Description: text("description"), Source: text("source"), Campaign: "v2"}
		at := time.Duration(0)
		for range rapid.IntRange(1, 5).Draw(t, "tasks") {
			at += time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "gap"))
			w := rapid.SampledFrom(all).Draw(t, "workload")
			tr.Tasks = append(tr.Tasks, Task{
				At: at, Workload: w.Name, GPUs: rapid.IntRange(1, 4).Draw(t, "gpus"), Name: text("task"), User: text("user"),
				Priority: rapid.SampledFrom([]string{"low", "", "high"}).Draw(t, "priority"),
				Mem:      units.Bytes(rapid.SampledFrom([]int64{0, 1 << 20, 12345678901}).Draw(t, "mem")),
			})
		}
		var b bytes.Buffer
		if err := Write(&b, tr); err != nil {
			t.Fatal(err)
		}
		text2 := b.String()
		if got, err := Parse("x.yaml", &b); err != nil || !same(got, tr) {
			t.Fatalf("%v\n%s\ngot %+v\nwant %+v", err, text2, got, tr)
		}
	})
}
