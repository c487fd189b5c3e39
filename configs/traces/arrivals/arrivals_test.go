package arrivals

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carma/configs/traces/joblog"
)

// loads draws sorted lists that begin at 0.
func loads() *rapid.Generator[List] {
	one := rapid.Custom(func(t *rapid.T) Arrival {
		return Arrival{
			At:      time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "at")),
			GPUs:    rapid.IntRange(1, 16).Draw(t, "gpus"),
			RunTime: time.Duration(rapid.Int64Range(-1, int64(48*time.Hour)).Draw(t, "run")),
			State:   rapid.SampledFrom([]joblog.State{"", joblog.Done, joblog.Killed}).Draw(t, "state"),
			Job:     rapid.StringMatching(`[a-z_,"# ]{0,6}x`).Draw(t, "job"), User: rapid.StringMatching(`([a-zé" ]{0,4}x)?`).Draw(t, "user"),
		}
	})
	return rapid.Custom(func(t *rapid.T) List {
		l := List{Arrivals: rapid.SliceOfN(one, 1, 40).Draw(t, "arrivals")}
		for i := range l.Arrivals {
			l.Arrivals[i].Job, l.Arrivals[i].User = strings.TrimSpace(l.Arrivals[i].Job), strings.TrimSpace(l.Arrivals[i].User)
		}
		l.Sort()
		return l
	})
}

// TestWriteRead checks that a written load is read back unchanged.
func TestWriteRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := loads().Draw(t, "list")
		var b bytes.Buffer
		if err := Write(&b, "a remark\nof two lines", l); err != nil {
			t.Fatal(err)
		}
		got, err := Read(&b, func(line int, what string) { t.Errorf("line %d: %s", line, what) })
		if err != nil || !reflect.DeepEqual(got, l) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got, l)
		}
	})
}

func TestReadBroken(t *testing.T) {
	var broken []string
	l, err := Read(strings.NewReader("run_s,gpus,arrival_s,state\n60,1,30,done\n,2,10,\n-1,1,0,done\n60,0,0,done\n60,1,soon,done\n60,1,0,fine\n60,1\n"), func(line int, what string) {
		broken = append(broken, what)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Arrival{{At: 0, GPUs: 2, RunTime: joblog.Unknown}, {At: 20 * time.Second, GPUs: 1, RunTime: time.Minute, State: joblog.Done}}
	if !reflect.DeepEqual(l.Arrivals, want) {
		t.Errorf("%+v", l.Arrivals)
	}
	for i, want := range []string{`run_s "-1" is not seconds`, `gpus "0" is not a whole number from 1 to 65536`, `arrival_s "soon" is not seconds`, `unknown state "fine"; nearest: `, "2 values for 4 columns"} {
		if len(broken) != 5 || !strings.HasPrefix(broken[i], want) {
			t.Errorf("%q", broken)
		}
	}
	if _, err := Read(strings.NewReader("arrival_s,gpus\n"), nil); err == nil || err.Error() != "1: no column run_s; nearest: gpus" {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("# x\narrival_s,gpus,run_s,state,job,user\n0,1,3723.5,done,a,b\n1,2,,,,\n")
	f.Fuzz(func(t *testing.T, content string) {
		l, err := Read(strings.NewReader(content), func(int, string) {})
		if err != nil {
			return
		}
		last := time.Duration(0)
		for i, a := range l.Arrivals {
			if a.At < last || i == 0 && a.At != 0 || a.GPUs < 1 || a.RunTime < joblog.Unknown || a.RunTime > joblog.MaxTime {
				t.Fatalf("%+v after %v", a, last)
			}
			last = a.At
		}
		if len(l.Arrivals) > 0 {
			l.Over(7)
		}
	})
}

func seconds(list ...int) (out []time.Duration) {
	for _, s := range list {
		out = append(out, time.Duration(s)*time.Second)
	}
	return out
}

func TestDistances(t *testing.T) {
	for _, c := range []struct {
		a, b []time.Duration
		want float64
	}{
		{seconds(1, 2, 3), seconds(1, 2, 3), 0},
		{seconds(1, 2), seconds(3, 4), 1},
		{seconds(1, 2, 3, 4), seconds(3, 4, 5, 6), 0.5},
		{seconds(1, 1, 1, 2), seconds(1, 2, 2, 2), 0.5},
		{seconds(1, 1), seconds(1), 0},
		{seconds(5), seconds(1, 2, 3, 4, 5), 0.8},
		{nil, seconds(1), 0},
	} {
		if d, back := KolmogorovSmirnov(c.a, c.b), KolmogorovSmirnov(c.b, c.a); math.Abs(d-c.want) > 1e-12 || d != back {
			t.Errorf("%v %v: %v and %v, want %v", c.a, c.b, d, back, c.want)
		}
	}
	for _, c := range []struct {
		a, b map[int]int
		want float64
	}{
		{map[int]int{1: 3, 2: 1}, map[int]int{1: 6, 2: 2}, 0},
		{map[int]int{1: 3}, map[int]int{2: 5}, 1},
		{map[int]int{1: 1, 2: 1}, map[int]int{1: 1, 4: 3}, 0.75},
		{map[int]int{1: 1}, nil, 0},
	} {
		if d, back := TotalVariation(c.a, c.b), TotalVariation(c.b, c.a); d != c.want || d != back {
			t.Errorf("%v %v: %v and %v, want %v", c.a, c.b, d, back, c.want)
		}
	}
	if c := chance(60, 60); math.Abs(c-0.248) > 0.0005 { // published tables have 0.248
		t.Errorf("chance %v", c)
	}
}

// TestCompare: a load equals itself, and differs from a load of other jobs.
func TestCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := loads().Draw(t, "list")
		if f := Compare(l, l); f.Gaps != 0 || f.RunTimes != 0 || f.GPUs != 0 {
			t.Fatalf("%+v", f)
		}
		other := List{}
		for _, a := range l.Arrivals {
			other.Arrivals = append(other.Arrivals, Arrival{At: a.At * 2, GPUs: a.GPUs + 20, RunTime: 100 * time.Hour})
		}
		if f := Compare(l, other); f.GPUs != 1 || len(l.RunTimes()) > 0 && f.RunTimes != 1 {
			t.Fatalf("%+v", f)
		}
	})
}

// TestOver: the bins contain all work and all arrivals.
func TestOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := loads().Draw(t, "list")
		s := l.Over(rapid.IntRange(1, 50).Draw(t, "bins"))
		work, tasks := 0.0, 0
		for i, d := range s.Demand {
			if d < -1e-9 {
				t.Fatalf("bin %d: %v GPUs", i, d)
			}
			work += d * s.Bin.Seconds()
			tasks += s.Arrivals[i]
		}
		if tasks != len(l.Arrivals) || math.Abs(work-l.Work()) > 1e-6*(1+l.Work()) {
			t.Fatalf("%d tasks, work %v, want %d, %v", tasks, work, len(l.Arrivals), l.Work())
		}
	})
	l := List{Arrivals: []Arrival{{At: 0, GPUs: 2, RunTime: 30 * time.Second}, {At: 10 * time.Second, GPUs: 1, RunTime: 30 * time.Second}}}
	s := l.Over(4)
	for i, want := range []float64{2, 3, 3, 1} {
		if math.Abs(s.Demand[i]-want) > 1e-6 {
			t.Errorf("%v", s.Demand)
		}
	}
	if load := l.Load(3); math.Abs(load-90.0/10/3) > 1e-9 {
		t.Errorf("load %v", load)
	}
}

func TestSample(t *testing.T) {
	l := List{First: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range 10 {
		l.Arrivals = append(l.Arrivals, Arrival{At: time.Duration(i) * time.Minute, GPUs: i + 1})
	}
	for _, c := range []struct {
		w           Window
		first, last int // numbers of GPUs
	}{
		{Window{Tasks: 3}, 1, 3}, {Window{Start: 2 * time.Minute, Tasks: 3}, 3, 5}, {Window{Start: 90 * time.Second, Length: 2 * time.Minute}, 3, 4},
		{Window{Start: 2 * time.Minute, Length: 2 * time.Minute}, 3, 4}, {Window{Length: time.Hour, Tasks: 4}, 1, 4}, {Window{Start: 8 * time.Minute, Tasks: 4}, 9, 10},
	} {
		s, err := l.Sample(c.w)
		if err != nil {
			t.Fatal(err)
		}
		n := len(s.Arrivals)
		if s.Arrivals[0].GPUs != c.first || s.Arrivals[n-1].GPUs != c.last || s.Arrivals[0].At != 0 || n != c.last-c.first+1 ||
			s.First != l.First.Add(time.Duration(c.first-1)*time.Minute) || s.Span() != time.Duration(n-1)*time.Minute {
			t.Errorf("%+v: %+v", c.w, s)
		}
	}
	if l.Arrivals[2].At != 2*time.Minute {
		t.Error("the source was changed")
	}
	if _, err := l.Sample(Window{Start: time.Hour, Tasks: 1}); err == nil || !strings.Contains(err.Error(), "the last arrives 9m0s after the first") {
		t.Error(err)
	}
}

func TestSpread(t *testing.T) {
	s := SpreadOf(seconds(1, 2, 3, 4, 5, 6, 7, 8, 9, 20))
	if s.Count != 10 || s.Min != time.Second || s.P5 != time.Second || s.Median != 5*time.Second || s.Mean != 6500*time.Millisecond || s.P95 != 20*time.Second || s.Longest != 20*time.Second {
		t.Errorf("%+v", s)
	}
	if (SpreadOf(nil) != Spread{}) {
		t.Error("of nothing")
	}
}
