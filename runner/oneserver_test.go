package runner

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/verify"
)

// node is the machine of asCluster.
const node = "node-7"

// asCluster shows cards as a cluster with one node does.
type asCluster struct{ *cards }

func (c asCluster) GPUs(ctx context.Context) ([]gpu.Device, error) {
	all, err := c.cards.GPUs(ctx)
	all = slices.Clone(all)
	for i := range all {
		all[i].Node, all[i].Boot, all[i].Shares, all[i].Sharing = node, "boot", true, model.SharingMPS
	}
	return all, err
}

// TestClusterDecidesAsOneServer: the journal of a daemon on a cluster replays to equal
// decisions; and the same events on one server with the same GPUs give the same ones.
func TestClusterDecidesAsOneServer(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.opt.Mapper = mapper.DefaultsOf("carma")
		g.opt.Mapper.Backoff = g.opt.Mapper.Backoff / 1000
		g.source = func(c *cards) gpu.Source { return asCluster{c} }
	})
	g.script("mixed", func(ctx context.Context, p *containerstest.Process) int {
		if n, _ := strconv.Atoi(p.Spec.Labels[label.Task]); n%3 == 1 && p.Spec.Labels[label.Attempt] == "1" {
			return printing(1, pytorchOOM)(ctx, p)
		}
		return 0
	})
	var refs []string
	for i := range 12 {
		refs = append(refs, g.run(api.Submit{Image: "mixed", Command: []string{strconv.Itoa(i)}, GPUs: 1 + i%2, Mem: int64(units.Bytes(4+i) * units.GiB), Retries: 1}))
	}
	for _, ref := range refs {
		g.finished(ref)
	}
	g.stop()
	g.stop = nil
	if v, err := verify.Journal(g.dir, "test"); err != nil || v.Differs != "" || len(v.Faults) > 0 || v.Launches < 12 || v.OOMs == 0 {
		t.Errorf("%+v, %v", v, err)
	}
	if launches := g.sameOnOneServer(); launches < 12 {
		t.Errorf("%d launches were compared", launches)
	}
}

// nodes are the fields of events and decisions that name a machine or its boot.
var nodes = regexp.MustCompile(`,?"(node|boot)":"[^"]*"`)

// oneServer returns the JSON of an event or a decision without the names of machines, as on a
// single server.
func oneServer(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\{,`).ReplaceAll(nodes.ReplaceAll(b, nil), []byte("{"))
}

// sameOnOneServer replays the journal's events as events of one server, compares the
// decisions with the recorded ones, and returns the number of launches among them.
func (g *rig) sameOnOneServer() (launches int) {
	g.t.Helper()
	j, err := journal.OpenReadOnly(g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	defer j.Close()
	state, named := mapper.New(mapper.DefaultOptions()), false
	err = j.View(func(j *journal.Reader) error {
		for p, err := range verify.History(j, 0) {
			if err != nil {
				return err
			}
			if _, ok := p.Event.(model.HostsFound); ok {
				continue // the daemon's own machine, which has no GPUs of the cluster
			}
			kind, body, err := model.EncodeEvent(p.Event)
			if err != nil {
				return err
			}
			named = named || nodes.Match(body)
			ev, err := model.DecodeEvent(kind, oneServer(g.t, p.Event))
			if err != nil {
				return err
			}
			got := state.Step(ev)
			if a, b := oneServer(g.t, got), oneServer(g.t, p.Decided); string(a) != string(b) {
				g.t.Fatalf("event %d %T: one server decides\n%s, the cluster\n%s", p.Seq, p.Event, a, b)
			}
			for _, d := range got {
				if _, ok := d.(model.Launch); ok {
					launches++
				}
			}
		}
		return nil
	})
	if err != nil || !named {
		g.t.Fatalf("events name a node: %v, %v", named, err)
	}
	return launches
}
