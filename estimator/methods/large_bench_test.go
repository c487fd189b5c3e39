package methods

import (
	"fmt"
	"path"
	"slices"
	"syscall"
	"testing"
	"time"

	"carma/configs/models"
	"carma/estimator/environment"
	"carma/estimator/networks/hf"
)

// BenchmarkLarge makes one estimate of a large language model from its name: the network, its
// simulation, and the second one for a training that does not fit. It reports the median and
// the quartiles, because other work on the machine affects the mean.
func BenchmarkLarge(b *testing.B) {
	for _, c := range []struct {
		model string
		with  models.Overrides
	}{
		{"meta-llama/Llama-3.1-8B", models.Overrides{Batch: 2, Sequence: 2048, Precision: models.BF16}},
		{"meta-llama/Llama-3.1-70B", models.Overrides{Batch: 1, Sequence: 2048, Precision: models.BF16}},
		{"meta-llama/Llama-3.1-70B", models.Overrides{Batch: 1, Sequence: 2048, Precision: models.BF16, LoRA: 16, Targets: []string{"all-linear"}}},
	} {
		b.Run(fmt.Sprintf("%s,lora=%d", path.Base(c.model), c.with.LoRA), func(b *testing.B) {
			e, err := environment.Named(environment.Default)
			if err != nil {
				b.Fatal(err)
			}
			var times []time.Duration
			before := used()
			for b.Loop() {
				start := time.Now()
				network, err := hf.Build(c.model, c.with)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := (&Carma{}).Estimate(Subject{Config: network, Environment: &e.Environment}); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			b.ReportMetric(float64((used()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			slices.Sort(times)
			for name, at := range map[string]int{"ms-1st-quartile": len(times) / 4, "ms-median": len(times) / 2, "ms-3rd-quartile": 3 * len(times) / 4} {
				b.ReportMetric(float64(times[at].Microseconds())/1000, name)
			}
			b.ReportMetric(float64(times[0].Microseconds())/1000, "ms-least")
		})
	}
}

// used returns the CPU time of this process, including the garbage collector. It depends less
// on other work on the machine than wall-clock time.
func used() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
