package traces

import (
	"math"
	"strings"
	"testing"
	"time"

	"carma/configs/traces/arrivals"
	"carma/configs/traces/joblog"
	"carma/configs/traces/mixes"
	"carma/configs/workloads"
)

// made returns a load of n tasks with run times from a minute to 16 hours.
func made(n int) arrivals.List {
	var l arrivals.List
	for i := range n {
		run := time.Minute << (i % 11)
		l.Arrivals = append(l.Arrivals, arrivals.Arrival{At: time.Duration(i) * 90 * time.Second, GPUs: 1 + i%3, RunTime: run, Job: "j", User: "u"})
	}
	return l
}

func TestMap(t *testing.T) {
	l := made(2000)
	for _, name := range []string{"default", "mix-90", "heavy-60"} {
		m, err := mixes.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := Map(l, MapOptions{Name: "x", Seed: 5, Mix: m})
		if err != nil || len(tr.Tasks) != 2000 || tr.Campaign != "v2" || tr.Name != "x" {
			t.Fatalf("%v %v", tr, err)
		}
		var counts [3]float64
		for i, task := range tr.Tasks {
			w, err := workloads.Find(task.Workload)
			if err != nil || task.GPUs != w.GPUs || task.At != l.Arrivals[i].At || task.Name != "j" || task.User != "u" {
				t.Fatalf("%+v %v", task, err)
			}
			c, _ := w.Campaign("v2")
			counts[mixes.ClassOf(w.GPUs, c.RunTime)]++
		}
		for c, count := range counts {
			if math.Abs(count/2000-m[c]) > 0.04 {
				t.Errorf("%s: a share of %.3f %s", name, count/2000, mixes.Class(c))
			}
		}
		again, _ := Map(l, MapOptions{Name: "x", Seed: 5, Mix: m})
		other, _ := Map(l, MapOptions{Name: "x", Seed: 6, Mix: m})
		if digest(again) != digest(tr) || digest(other) == digest(tr) {
			t.Errorf("%s: equal seeds differ, or others do not", name)
		}
	}
	// With the default weights it draws the same as Generate, apart from the
	// gaps.
	if tr, err := Map(l, MapOptions{Campaign: "v1", Seed: 5}); err != nil || tr.Campaign != "v1" {
		t.Error(err)
	} else {
		for _, task := range tr.Tasks {
			w, _ := workloads.Find(task.Workload)
			if _, err := w.Campaign("v1"); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestMatch(t *testing.T) {
	l := made(600)
	tr, err := Map(l, MapOptions{Name: "x", Seed: 1, Match: true})
	if err != nil {
		t.Fatal(err)
	}
	distance := func(w workloads.Profile, a arrivals.Arrival) (gpus int, run float64) {
		c, _ := w.Campaign("v2")
		return max(w.GPUs-a.GPUs, a.GPUs-w.GPUs), math.Abs(math.Log(c.RunTime.Seconds() / a.RunTime.Seconds()))
	}
	seen := map[string]bool{}
	for i, task := range tr.Tasks {
		a := l.Arrivals[i]
		w, _ := workloads.Find(task.Workload)
		gpus, run := distance(w, a)
		seen[w.Name] = true
		for _, other := range mixes.Of("v2").All() {
			g, r := distance(other, a)
			if g < gpus || g == gpus && r < run-math.Log(1.1)-1e-9 {
				t.Fatalf("task %d on %d GPUs for %s became %s, %s is nearer", i, a.GPUs, a.RunTime, w.Name, other.Name)
			}
		}
	}
	if len(seen) < 12 { // random numbers decide between similar workloads
		t.Errorf("only %d workloads", len(seen))
	}
	l.Arrivals[7].RunTime = joblog.Unknown
	if _, err := Map(l, MapOptions{Match: true}); err == nil || !strings.HasPrefix(err.Error(), "task 8 has no known run time to match; ") {
		t.Error(err)
	}
	if _, err := Map(arrivals.List{}, MapOptions{}); err == nil || !strings.HasPrefix(err.Error(), "a trace has 1 to 100000 tasks, not 0") {
		t.Error(err)
	}
	if tr, err := Map(arrivals.List{Arrivals: []arrivals.Arrival{{GPUs: 1, Job: "resnet2"}}}, MapOptions{}); err != nil || tr.Tasks[0].Name != "" {
		t.Errorf("%+v %v: a workload's name stayed", tr, err)
	}
	long := arrivals.List{Arrivals: []arrivals.Arrival{{GPUs: 1}, {At: maxAt + 1, GPUs: 1}}}
	if _, err := Map(long, MapOptions{}); err == nil || !strings.HasPrefix(err.Error(), "task 2 arrives more than ten years") {
		t.Error(err)
	}
}

// TestGenerateLoad: the trace has the wanted load, and only its gaps change.
func TestGenerateLoad(t *testing.T) {
	plain, err := Generate(GenerateOptions{Seed: 4, Tasks: 80})
	if err != nil {
		t.Fatal(err)
	}
	for _, load := range []float64{0.1, 0.9, 1.2, 7} {
		for _, gpus := range []int{1, 4, 16} {
			tr, err := Generate(GenerateOptions{Seed: 4, Tasks: 80, Load: load, GPUs: gpus})
			if err != nil {
				t.Fatal(err)
			}
			l, _ := tr.Arrivals()
			if got := l.Load(gpus); math.Abs(got-load)/load > 1e-4 {
				t.Errorf("load %v on %d GPUs, want %v", got, gpus, load)
			}
			for i := range tr.Tasks {
				if tr.Tasks[i].Workload != plain.Tasks[i].Workload {
					t.Fatal("the workloads changed")
				}
			}
			if tr.Name == plain.Name {
				t.Error("it has the name of the one that is not stretched")
			}
		}
	}
	if _, err := Generate(GenerateOptions{Seed: 4, Tasks: 1, Load: 1, GPUs: 4}); err == nil || !strings.Contains(err.Error(), "all arrive at once") {
		t.Error(err)
	}
	if _, err := Generate(GenerateOptions{Seed: 4, Tasks: 100000, Load: 1e-3, GPUs: 4}); err == nil || !strings.Contains(err.Error(), "takes longer than ten years; nearest: ") {
		t.Error(err)
	}
}
