package sharing

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"carma/containers/endtext"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/monitor"
)

// client is the state, in the driver's readings, of an attempt that was started as a client
// of MPS. A program that cannot reach its server reports CUDA error 805 and may continue. It
// then runs on the GPU beside the clients, by time slices, or on the processor, and only blocks
// the GPU.
type client struct {
	gpus []model.GPUID

	mu sync.Mutex
	// strange counts the consecutive readings that show the program on its GPUs, but not as an MPS
	// client. apart is set after enough such readings.
	strange int
	apart   bool
	// refused is set if the output reports that the program could not reach the server.
	// silent counts the readings since then that show nothing of the program on its GPUs.
	// touched is set if a reading showed it there.
	refused, touched bool
	silent           int
	gone             chan struct{} // closed when the program is assumed to run without its GPUs
}

// refusedLeast is the number of successive readings without the program on its GPUs after
// which a program that could not reach its MPS server is assumed to run without GPUs.
const refusedLeast = 30

// follow processes a reading of all GPUs. changed is set if the program stopped being a
// client, or is one again.
func (c *client) follow(key gpu.AttemptKey, samples []gpu.Sample) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	here, unknown, isClient, reported := false, false, false, true
	for _, id := range c.gpus {
		i := slices.IndexFunc(samples, func(s gpu.Sample) bool { return s.UUID == string(id) })
		if i < 0 || samples[i].Fault != "" {
			return false
		}
		reported = reported && samples[i].ClientsTold
		for _, p := range samples[i].Processes {
			own := p.Task == key.Task && p.Attempt == key.Attempt
			here, isClient, unknown = here || own, isClient || own && p.Client, unknown || p.PID == 0
		}
	}
	c.silence(here || unknown)
	if !here || !reported {
		return false
	}
	if c.strange++; isClient {
		c.strange = 0
	}
	apart := c.strange >= monitor.MinReadings
	changed = apart != c.apart
	c.apart = apart
	return changed
}

// silence counts the readings in which a program that could not reach its MPS server is not on
// its GPUs.
func (c *client) silence(here bool) {
	switch {
	case here:
		c.touched = true
	case !c.refused || c.touched || c.silent >= refusedLeast:
	default:
		if c.silent++; c.silent == refusedLeast {
			close(c.gone)
		}
	}
}

// hears processes a line of the attempt's output.
func (c *client) hears(line []byte) {
	if !bytes.Contains(line, []byte("M")) && !bytes.Contains(line, []byte("80")) || !endtext.MPSLost(line) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
}

// setClient registers an attempt to be followed as an MPS client, or removes it if c is
// nil.
func (s *State) setClient(key gpu.AttemptKey, c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == nil {
		delete(s.clients, key)
		return
	}
	s.clients[key] = c
}

// tookTurns records that an attempt is no longer a client, or is one again. It returns
// false if the attempt has ended meanwhile, since nobody would remove the record.
func (s *State) tookTurns(key gpu.AttemptKey, c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[key] != c {
		return false
	}
	if c.apart {
		s.apart[key] = c.gpus
	} else {
		delete(s.apart, key)
	}
	return true
}

// CheckClients processes a reading of all GPUs. A task on them that is no client shares
// them with the clients by time slices, which the mapper must know.
func (s *State) CheckClients(samples []gpu.Sample) {
	s.mu.Lock()
	all := maps.Clone(s.clients)
	s.mu.Unlock()
	changed := false
	for key, c := range all {
		if !c.follow(key, samples) {
			continue
		}
		if changed = s.tookTurns(key, c) || changed; c.apart {
			s.opt.Log.Warn().Int64("task", int64(key.Task)).Msg("the task was started as a client of MPS, and the driver does not list it as one: it takes turns with the others")
		}
	}
	if changed {
		s.report()
	}
}
