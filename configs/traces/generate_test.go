package traces

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"carma/configs/traces/mixes"
	"carma/configs/workloads"
)

// TestGeneratedShares: the classes have the shares of their weights, the
// workloads of a class have equal shares, and the gaps have the mean of their
// source.
func TestGeneratedShares(t *testing.T) {
	const n = 10_000
	tr, err := Generate(GenerateOptions{Seed: 7, Tasks: n})
	if err != nil {
		t.Fatal(err)
	}
	class, count := map[string]int{}, map[string]int{}
	for i, task := range tr.Tasks {
		w, err := workloads.Find(task.Workload)
		if err != nil {
			t.Fatal(err)
		}
		c, err := w.Campaign(tr.Campaign)
		if err != nil || task.GPUs != w.GPUs || i > 0 && task.At < tr.Tasks[i-1].At {
			t.Fatalf("task %d: %+v (%v)", i, task, err)
		}
		count[w.Name]++
		switch {
		case w.GPUs == 2 || c.RunTime > time.Hour:
			class["heavy"]++
		case c.RunTime < 10*time.Minute:
			class["light"]++
		default:
			class["medium"]++
		}
	}
	for name, weight := range map[string]float64{"light": 0.3, "medium": 0.6, "heavy": 0.1} {
		if got := float64(class[name]) / n; math.Abs(got-weight) > 0.02 {
			t.Errorf("%s: a share of %.3f, want %.1f", name, got, weight)
		}
	}
	for class, pool := range mixes.Of("v2") {
		want := n * mixes.Default[class] / float64(len(pool))
		for _, w := range pool {
			if got := float64(count[w.Name]); math.Abs(got-want) > 5*math.Sqrt(want) {
				t.Errorf("%s %d times, want about %.0f", w.Name, count[w.Name], want)
			}
		}
	}
	if len(count) != len(workloads.All())-1 || count["gpt2-xl-wikitext2-bs2"] > 0 {
		t.Errorf("%d of %d workloads, want all but gpt2-xl", len(count), len(workloads.All()))
	}
	if mean := tr.Tasks[n-1].At.Seconds() / (n - 1); math.Abs(mean-47099.0/200) > 8 { // four standard errors
		t.Errorf("gaps of %.1f s on average", mean)
	}
}

func TestGaps(t *testing.T) {
	gaps, sum := phillyGaps(), time.Duration(0)
	for _, g := range gaps {
		if g < 0 || g > 20*time.Minute {
			t.Errorf("a gap of %s", g)
		}
		sum += g
	}
	if len(gaps) != 200 || sum != 47099*time.Second {
		t.Errorf("%d gaps, %s together", len(gaps), sum)
	}
	t1, err := Read("philly-t1-60") // its gaps are the first 60
	if err != nil {
		t.Fatal(err)
	}
	at := time.Duration(0)
	for i, task := range t1.Tasks {
		if at += gaps[i]; task.At != at {
			t.Fatalf("task %d of philly-t1-60 at %s, by the gaps at %s", i, task.At, at)
		}
	}
}

func digest(tr Trace) string {
	h := sha256.New()
	for _, task := range tr.Tasks {
		fmt.Fprintln(h, task.At, task.Workload, task.GPUs)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// TestGeneratedStays checks that a seed gives the same trace in every version. It may change
// only with the shipped workloads.
func TestGeneratedStays(t *testing.T) {
	for name, want := range map[string]struct {
		tasks  int
		digest string
	}{
		"generated-7":                    {60, "cd95a51dc9c5aea1"},
		"generated-7x200":                {200, "181704c0426330a5"},
		"generated-0x1":                  {1, "2319a1c66c6ed5a1"},
		"generated-18446744073709551615": {60, "9b3e7d00121cb66d"},
	} {
		tr, err := Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if tr.Name != name || len(tr.Tasks) != want.tasks || tr.Campaign != "v2" || tr.Source == "" || tr.Description == "" || tr.Tasks[0].At != 0 {
			t.Errorf("%s: %q with %d tasks", name, tr.Name, len(tr.Tasks))
		}
		if got := digest(tr); got != want.digest {
			t.Errorf("%s: digest %s, want %s", name, got, want.digest)
		}
	}
	long, err := Read("generated-7x100000.yaml")
	if err != nil || len(long.Tasks) != 100_000 {
		t.Fatalf("%d tasks, %v", len(long.Tasks), err)
	}
	short, _ := Read("generated-7x60")
	if short.Name != "generated-7" || digest(short) != digest(Trace{Tasks: long.Tasks[:60]}) {
		t.Error("a longer trace of a seed begins otherwise")
	}
}

func TestGeneratedNames(t *testing.T) {
	for name, want := range map[string]string{
		"generated":                        `generated: the seed "" is not a whole number; nearest: generated-1`,
		"generated-":                       `generated-: the seed "" is not a whole number; nearest: generated-1`,
		"generated-x10":                    `generated-x10: the seed "" is not a whole number; nearest: generated-1x10`,
		"generated-seven":                  `generated-seven: the seed "seven" is not a whole number; nearest: generated-1`,
		"generated--7":                     `generated--7: the seed "-7" is not a whole number; nearest: generated-1`,
		"generated-1.5":                    `generated-1.5: the seed "1.5" is not a whole number; nearest: generated-1`,
		"generated-99999999999999999999":   "generated-99999999999999999999: the seed 99999999999999999999 is more than 64 bits; nearest: generated-18446744073709551615",
		"generated-7x":                     `generated-7x: the number of tasks "" is not a whole number; nearest: generated-7`,
		"generated-7xmany":                 `generated-7xmany: the number of tasks "many" is not a whole number; nearest: generated-7`,
		"generated-7x0":                    "generated-7x0: a generated trace has 1 to 100000 tasks, not 0; nearest: generated-7x1",
		"generated-7x-5":                   "generated-7x-5: a generated trace has 1 to 100000 tasks, not -5; nearest: generated-7x1",
		"generated-7x100001":               "generated-7x100001: a generated trace has 1 to 100000 tasks, not 100001; nearest: generated-7x100000",
		"generated-7x99999999999999999999": "generated-7x99999999999999999999: a generated trace has 1 to 100000 tasks, not 99999999999999999999; nearest: generated-7x100000",
		"generated-007":                    "generated-007: no shipped trace of that name; nearest: generated-7",
		"generated-7x0060":                 "generated-7x0060: no shipped trace of that name; nearest: generated-7",
		"generatd-7":                       "generatd-7: no such file, and no shipped trace of that name; nearest: generated-1, ",
	} {
		if _, err := Read(name); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\n\twant %s", name, err, want)
		}
	}
	for _, n := range []int{-1, 100_001} {
		if _, err := Generate(GenerateOptions{Seed: 7, Tasks: n}); err == nil {
			t.Errorf("%d tasks were generated", n)
		}
	}
	if tr, err := Generate(GenerateOptions{}); err != nil || len(tr.Tasks) != 60 {
		t.Errorf("%d tasks, %v", len(tr.Tasks), err)
	}
}
