package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestAbout: the events about a task are found among others, in parts, and a number does
// not match a longer one that begins with it.
func TestAbout(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	b := Batch{Events: []Event{
		{At: 10, Kind: "task-submitted", Body: []byte(`{"at":10,"id":4,"user":"a"}`)},
		{At: 20, Kind: "sampled", Body: []byte(`{"gpus":[{"task":4}]}`)},
		{At: 30, Kind: "started", Body: []byte(`{"at":30,"task":5,"attempt":1}`)},
		{At: 40, Kind: "started", Body: []byte(`{"at":40,"task":4,"attempt":1}`)},
	}, Decisions: []Decision{
		{Seq: 1, N: 0, Kind: "launch", Body: []byte(`{"task":4,"attempt":1}`)},
		{Seq: 1, N: 1, Kind: "wake-at", Body: []byte(`{"task":4}`)},
		{Seq: 4, N: 0, Kind: "finish", Body: []byte(`{"task":{"id":4}}`)},
		{Seq: 4, N: 1, Kind: "finish", Body: []byte(`{"task":{"id":6}}`)},
	}}
	mustCommit(t, j, b)
	if err := j.View(func(r *Reader) error {
		events, decisions, err := r.About(context.Background(), 4, 1, 4)
		if err != nil || len(events) != 2 || events[0].Seq != 1 || events[1].Seq != 4 || len(decisions) != 2 || decisions[0].Kind != "launch" || decisions[1].Kind != "finish" {
			t.Errorf("%+v %+v %v", events, decisions, err)
		}
		if events, _, _ = r.About(context.Background(), 4, 2, 3); len(events) != 0 {
			t.Errorf("outside of the range: %+v", events)
		}
		for at, want := range map[int64]int64{0: 1, 10: 1, 11: 2, 40: 4, 41: 5} {
			if seq, err := r.Since(at); err != nil || seq != want {
				t.Errorf("since %d: event %d (%v), want %d", at, seq, err, want)
			}
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if _, _, err := r.About(gone, 4, 1, 4); !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	tamper(t, j, `UPDATE decisions SET body = ? WHERE seq = 1 AND n = 0`, []byte(`{"task":4,"attempt":2}`))
	if _, _, err := j.About(context.Background(), 4, 1, 4); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged decision: %v", err)
	}
}

// BenchmarkAbout looks through 100,000 events, nine of ten of them samples of 16 GPUs
// (2 kB), for one task.
func BenchmarkAbout(b *testing.B) {
	j := mustOpen(b, b.TempDir())
	sample := append(append([]byte(`{"gpus":[`), bytes.Repeat([]byte(`{"id":"GPU-8604bb30-ac45-e62b-bee5-c485a7040b64","used":123456789012,"smact":0.53,"tasks":[{"task":17,"used":1}]},`), 16)...), ']', '}')
	for i := range 100 {
		var batch Batch
		for n := range 1000 {
			e := Event{At: int64(1000*i + n), Kind: "sampled", Body: sample}
			if n%10 == 0 {
				e.Kind, e.Body = "started", fmt.Appendf(nil, `{"at":%d,"task":%d,"attempt":1}`, n, n)
				batch.Decisions = append(batch.Decisions, Decision{Seq: int64(1000*i + n + 1), Kind: "launch", Body: fmt.Appendf(nil, `{"task":%d,"attempt":1}`, n)})
			}
			batch.Events = append(batch.Events, e)
		}
		mustCommit(b, j, batch)
	}
	b.ResetTimer()
	for b.Loop() {
		events, decisions, err := j.About(context.Background(), 10, 1, 100_000)
		if err != nil || len(events) < 100 || len(decisions) < 100 {
			b.Fatal(len(events), len(decisions), err)
		}
	}
}
