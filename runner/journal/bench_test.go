package journal

import (
	"fmt"
	"testing"
)

// BenchmarkCommit commits a round of the daemon: events, as many decisions, and task
// records as large as their JSON is.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{1, 32} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			j := mustOpen(b, b.TempDir())
			evs := make([]Event, size)
			for i := range evs {
				evs[i] = Event{At: int64(i), Kind: "task-submitted", Body: make([]byte, 300)}
			}
			batch := Batch{Events: evs, Decisions: make([]Decision, size), Tasks: make([]TaskRow, size)}
			last, body := int64(0), make([]byte, 800)
			b.ReportAllocs()
			for b.Loop() {
				for i := range size {
					batch.Decisions[i] = Decision{Seq: last + 1, N: i, Kind: "launch", Body: body[:150]}
					batch.Tasks[i] = TaskRow{ID: last + int64(i) + 1, User: "ann", Phase: "queued", Body: body}
				}
				mustCommit(b, j, batch)
				last += int64(size)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
