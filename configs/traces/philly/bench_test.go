package philly

import (
	"bytes"
	"testing"

	"carma/configs/traces/joblog"
	"carma/configs/traces/synth"
)

// BenchmarkRead reads an invented log of 120,000 jobs.
func BenchmarkRead(b *testing.B) {
	var log bytes.Buffer
	if err := synth.Philly(&log, synth.Options{Jobs: 120_000, Seed: 1}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(log.Len()))
	b.ReportAllocs()
	for b.Loop() {
		jobs := 0
		err := Read(bytes.NewReader(log.Bytes()), joblog.Sink{
			Job:    func(joblog.Job) { jobs++ },
			Broken: func(line int, what string) { b.Fatalf("line %d: %s", line, what) },
		})
		if err != nil || jobs != 120_000 {
			b.Fatalf("%d jobs, %v", jobs, err)
		}
	}
}
