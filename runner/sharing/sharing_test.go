package sharing

import (
	"os"
	"testing"
	"time"

	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/mps"
	"carma/runner/record"
)

// TestFirstFaults checks that MPS counts as not working on this machine if the first clients
// end by faults of MPS. After a client has succeeded, later faults count as faults of programs.
func TestFirstFaults(t *testing.T) {
	now := time.Now()
	s := New(Options{})
	for range mostFaults {
		if why := s.Why(now); why != "" {
			t.Fatalf("given up too early: %s", why)
		}
		s.ended(model.ExitMPSFault)
	}
	if s.Why(now.Add(24*time.Hour)) == "" {
		t.Error("it goes on with MPS")
	}
	if s.failed(nil, now); s.Why(now) == "" {
		t.Error("a control daemon that starts makes up for it")
	}
	s = New(Options{})
	s.ended(model.ExitOK)
	for range 2 * mostFaults {
		s.ended(model.ExitMPSFault)
	}
	if why := s.Why(now); why != "" {
		t.Errorf("given up after a good start: %s", why)
	}
	s = New(Options{})
	s.failed(os.ErrPermission, now)
	if s.Why(now) == "" || s.Why(now.Add(retryAfter+1)) != "" {
		t.Errorf("after a failed start: %q, later %q", s.Why(now), s.Why(now.Add(retryAfter+1)))
	}
	if s.failed(nil, now); s.Why(now) != "" {
		t.Error("it has started since")
	}
}

// TestFollowClient checks the conclusions from the readings of an attempt.
func TestFollowClient(t *testing.T) {
	key := gpu.AttemptKey{Task: 3, Attempt: 2}
	on := func(p ...gpu.Process) gpu.Sample { return gpu.Sample{UUID: "GPU-a", ClientsTold: true, Processes: p} }
	own := gpu.Process{PID: 9, Task: 3, Attempt: 2}
	asClient := own
	asClient.Client = true
	blind, broken := on(own), on(own)
	blind.ClientsTold, broken.Fault = false, "lost"
	for name, c := range map[string]struct {
		sample          gpu.Sample
		refused         bool
		apart, withdrew bool
	}{
		"a client":                     {on(asClient), true, false, false},
		"on the GPU, and no client":    {on(own), true, true, false},
		"the driver has no such list":  {blind, true, false, false},
		"a GPU with a fault":           {broken, true, false, false},
		"refused, and nowhere":         {on(gpu.Process{PID: 8, Task: 4, Attempt: 1, Client: true}), true, false, true},
		"nowhere yet":                  {on(), false, false, false},
		"refused, beside an unknown":   {on(gpu.Process{}), true, false, false},
		"beside a stranger, not there": {on(gpu.Process{PID: 8}), false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &client{gpus: []model.GPUID{"GPU-a"}, gone: make(chan struct{})}
			if w.hears([]byte("Epoch 1 of 80")); w.refused {
				t.Fatal("refused by an ordinary line")
			}
			if c.refused {
				w.hears([]byte("UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 805: MPS client failed to connect to the MPS control daemon or the MPS server"))
			}
			for range 2 * refusedLeast {
				w.follow(key, []gpu.Sample{c.sample})
			}
			withdrew := false
			select {
			case <-w.gone:
				withdrew = true
			default:
			}
			if w.apart != c.apart || withdrew != c.withdrew {
				t.Errorf("apart %v, without its GPU %v", w.apart, withdrew)
			}
		})
	}
}

// TestTouchedBefore checks that a program that has been on its GPU may leave the GPU for some
// time, for any output.
func TestTouchedBefore(t *testing.T) {
	c := &client{gpus: []model.GPUID{"GPU-a"}, gone: make(chan struct{})}
	c.follow(gpu.AttemptKey{Task: 1, Attempt: 1}, []gpu.Sample{{UUID: "GPU-a", ClientsTold: true, Processes: []gpu.Process{{PID: 5, Task: 1, Attempt: 1, Client: true}}}})
	c.hears([]byte("CUDA error 805"))
	for range 2 * refusedLeast {
		c.follow(gpu.AttemptKey{Task: 1, Attempt: 1}, []gpu.Sample{{UUID: "GPU-a", ClientsTold: true}})
	}
	select {
	case <-c.gone:
		t.Error("it was taken to run without its GPU")
	default:
	}
}

// TestEndedClient: a late reading of an attempt that has ended is not recorded, because its GPU
// would then count as time-sliced forever.
func TestEndedClient(t *testing.T) {
	s := New(Options{})
	key, c := gpu.AttemptKey{Task: 1, Attempt: 1}, &client{gpus: []model.GPUID{"GPU-a"}, apart: true}
	s.setClient(key, c)
	if !s.tookTurns(key, c) || len(s.apart) != 1 {
		t.Errorf("while it runs: %v", s.apart)
	}
	s.setClient(key, nil)
	s.setApart(key, nil)
	if s.tookTurns(key, c) || len(s.apart) != 0 {
		t.Errorf("after its end: %v", s.apart)
	}
}

// TestNamedUser checks that a task whose user has an unknown number is not a client of a
// per-user MPS server, but of a server for all users.
func TestNamedUser(t *testing.T) {
	for _, shared := range []bool{false, true} {
		s := New(Options{MPS: &MPS{Groups: &mps.Groups{Dir: "/m", Shared: shared}}, Devices: func() map[model.GPUID]gpu.Device { return nil }})
		a := s.Attempt(&record.Record{ImageUser: "nobody"}, model.Launch{Attempt: 1, Grants: []model.Grant{{GPU: "GPU-a"}}})
		if got := a.Group() != nil; got != shared {
			t.Errorf("shared %v: it is a client: %v", shared, got)
		}
	}
}

// TestReport: the mapper gets another report when an attempt that is no client shares a GPU, and when
// it has left.
func TestReport(t *testing.T) {
	changes := 0
	devices := map[model.GPUID]gpu.Device{"GPU-a": {UUID: "GPU-a"}, "GPU-b": {UUID: "GPU-b"}}
	var s *State
	tell := func() {
		changes++
		reported := map[model.GPUID]model.Sharing{}
		for id, d := range devices {
			reported[id], _ = s.Of(d)
		}
		s.SetReported(reported)
	}
	s = New(Options{
		MPS:     &MPS{Groups: &mps.Groups{Dir: "/m", Shared: true}},
		Devices: func() map[model.GPUID]gpu.Device { return devices }, Changed: tell,
	})
	tell()
	a := s.Attempt(&record.Record{}, model.Launch{Task: 1, Attempt: 1, Grants: []model.Grant{{GPU: "GPU-a"}}})
	a.without = true
	a.recordNoClient()
	s.report()
	if how, why := s.Of(devices["GPU-a"]); how != model.SharingTurns || why != "a task there is no client of MPS" || changes != 2 {
		t.Errorf("%s (%s) after %d changes", how, why, changes)
	}
	if how, _ := s.Of(devices["GPU-b"]); how != model.SharingMPS {
		t.Errorf("the other GPU: %s", how)
	}
	s.report()
	if a.Leave(model.ExitOK); changes != 3 {
		t.Errorf("%d changes after its end", changes)
	}
}
