package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"carma/containers/kubernetes/cluster"
	"carma/runner/gpu"
)

const (
	// lookEvery is the time between two readings of the GPUs. Changes of memory, processes and
	// faults are reported at once.
	lookEvery = time.Second
	// busyEvery is the shortest time between two reports of a changed activity. The
	// daemon averages over 30 s.
	busyEvery = 5 * time.Second
	// tellEvery is the longest time between two reports.
	tellEvery = 10 * time.Second
)

// board publishes an agent's reports. It is a [kubernetes.Driver].
type board interface {
	pods
	Told(ctx context.Context, node string) (string, error)
	Tell(ctx context.Context, node, text string, done []string) (asked []string, err error)
}

// teller reports the samples of a node's GPUs.
type teller struct {
	to     board
	node   string
	boot   string
	source gpu.Source
	owners *owners
	log    zerolog.Logger

	face, busy string // digests of the last report
	at         time.Time
	done       []string // GPUs whose faults were cleared, and the daemon has not confirmed it
}

func newTeller(to board, node string, source gpu.Source, log zerolog.Logger) *teller {
	return &teller{to: to, node: node, boot: bootOf("/"), source: source, owners: newOwners(to, node), log: log}
}

// bootOf returns the machine's boot id, or empty if it is unknown.
func bootOf(root string) string {
	b, _ := os.ReadFile(filepath.Join(root, "proc/sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(b))
}

// remember restores the faults that an earlier agent reported during this boot of the node,
// because a driver reports a fatal error only once.
func (t *teller) remember(ctx context.Context) error {
	source, ok := t.source.(gpu.Remembering)
	if !ok {
		return nil
	}
	text, err := t.to.Told(ctx, t.node)
	if err != nil || text == "" {
		return err
	}
	before, err := cluster.ReadReport(text)
	if err != nil || before.Boot != t.boot {
		return nil
	}
	for _, s := range before.GPUs {
		if !s.Lasts || s.Fault == "" {
			continue
		}
		if err := source.Remember(ctx, s.UUID, s.Fault, s.Told); err != nil {
			return err
		}
		t.log.Warn().Str("gpu", s.UUID).Str("fault", s.Fault).Msg("the GPU was broken before, and stays so until it is reset")
	}
	return nil
}

// run reads and reports samples until ctx ends.
func (t *teller) run(ctx context.Context) {
	failed := false
	for {
		err := t.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != failed {
			if failed = err != nil; failed {
				t.log.Error().Err(err).Msg("what the GPUs show cannot be told; it is tried again")
			} else {
				t.log.Info().Msg("what the GPUs show can be told again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// look reads the GPUs once, and reports them if they changed.
func (t *teller) look(ctx context.Context) error {
	samples, err := t.source.Sample(ctx)
	if err != nil {
		return err
	}
	if err := t.owners.attribute(ctx, samples); err != nil {
		return err
	}
	face, busy, err := facesOf(samples)
	if err != nil {
		return err
	}
	quiet := time.Since(t.at)
	if face == t.face && len(t.done) == 0 && (busy == t.busy || quiet < busyEvery) && quiet < tellEvery {
		return nil
	}
	text, err := cluster.Report{Boot: t.boot, GPUs: samples}.Text()
	if err != nil {
		return err
	}
	asked, err := t.to.Tell(ctx, t.node, text, t.done)
	if err != nil {
		return err
	}
	t.face, t.busy, t.at, t.done = face, busy, time.Now(), nil
	return t.forgive(ctx, asked)
}

// forgive clears the faults of these GPUs, at the daemon's request. The next report lists the
// cleared GPUs.
func (t *teller) forgive(ctx context.Context, uuids []string) error {
	source, ok := t.source.(gpu.Remembering)
	for _, uuid := range uuids {
		if ok {
			if err := source.Forgive(ctx, uuid); err != nil {
				return err
			}
			t.log.Info().Str("gpu", uuid).Msg("the GPU is used again, as the daemon asks")
		}
		t.done = append(t.done, uuid)
	}
	return nil
}

// facesOf returns two digests of the samples. A change of face is reported at once, and a
// change of busy after busyEvery. Values that change with each sample are in neither digest.
func facesOf(samples []gpu.Sample) (face, busy string, err error) {
	still := append([]gpu.Sample{}, samples...)
	for i := range still {
		s := &still[i]
		s.EnergyJ, s.PowerW, s.TemperatureC, s.CounterJ = 0, 0, 0, 0
	}
	if busy, err = (cluster.Report{GPUs: still}).Text(); err != nil {
		return "", "", err
	}
	for i := range still {
		s := &still[i]
		s.SMACT, s.SMOCC, s.DRAMA = 0, 0, 0
		s.Processes = append([]gpu.Process{}, s.Processes...)
		for j := range s.Processes {
			s.Processes[j].Active = 0
		}
	}
	face, err = cluster.Report{GPUs: still}.Text()
	return face, busy, err
}
