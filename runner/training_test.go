package runner

import (
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/estimator"
	"carma/internal/units"
	"carma/runner/admission"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/taskkind"
)

// asking records the daemon's queries to an estimator.
type asking struct {
	admission.Estimator
	mu   sync.Mutex
	last estimator.Query
}

func (a *asking) Estimate(q estimator.Query) (estimator.Estimate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = q
	return estimator.Estimate{Memory: 6 * units.GiB, Point: 5 * units.GiB, Method: "carma", Detail: "as asked"}, nil
}

func (a *asking) query() estimator.Query {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// TestTrainingIsAsked: a submission's settings of its training reach the estimator, stay
// with the task over a restart, and can be changed.
func TestTrainingIsAsked(t *testing.T) {
	asked := &asking{}
	g := newRig(t, func(g *rig) { asked.Estimator, g.estimator = g.estimator, asked })
	g.engine.AddImage("train", containerstest.Image{Run: untilStopped})
	ref := g.run(api.Submit{
		Image: "train", EstModel: "mine", Network: []byte(`{"model_type":"llama"}`), GPUs: 2, Command: []string{"train.py", "--per_device_train_batch_size", "4"},
		Train: map[string]string{"precision": "bf16", "seq": "2048"},
		Read:  &api.Read{Batch: 4, Train: map[string]string{"precision": "amp", "checkpointing": "true"}, Said: "batch size 4 per GPU, amp, checkpointing"},
	})
	q := asked.query()
	s := q.Settings
	if q.Model != "mine" || string(q.Described) != `{"model_type":"llama"}` || q.GPUs != 2 || q.Batch != 4 {
		t.Errorf("%+v", q)
	}
	if s.Precision != "bf16" || s.Sequence != 2048 || s.Checkpointing == nil || !*s.Checkpointing || s.Batch != 8 || !strings.HasPrefix(q.Read, "batch size 4 per GPU") {
		t.Errorf("settings %+v, read %q", s, q.Read)
	}
	g.run(api.Submit{Image: "train", EstModel: "mine", GPUs: 2, Read: &api.Read{Batch: 3, Train: map[string]string{"sequence_parallel": "2"}}})
	if s := asked.query().Settings; s.Batch != 3 || s.SequenceParallel != 2 {
		t.Errorf("over two GPUs each: %+v", s)
	}
	g.restart()
	if got := g.phase(ref).Submit; string(got.Network) != `{"model_type":"llama"}` || got.Train["seq"] != "2048" || got.Read == nil || got.Read.Batch != 4 {
		t.Errorf("after a restart it is %+v", got)
	}
}

// TestTrainingIsChanged: settings of a task that waits are changed one by one, and a new model
// keeps no setting of the previous one.
func TestTrainingIsChanged(t *testing.T) {
	asked := &asking{}
	g := newRig(t, func(g *rig) { asked.Estimator, g.estimator = g.estimator, asked })
	g.engine.AddImage("train", containerstest.Image{Run: untilStopped})
	ref := g.run(api.Submit{Image: "train", Delay: time.Hour, EstModel: "mine", Network: []byte(`{"a":1}`), Train: map[string]string{"precision": "bf16"}, Read: &api.Read{Batch: 4}})
	if _, err := g.api.Update(g.ctx(), ref, api.Update{Train: map[string]string{"seq": "512"}}); err != nil {
		t.Fatal(err)
	}
	if q := asked.query(); q.Settings.Sequence != 512 || q.Settings.Precision != "bf16" || q.Settings.Batch != 4 || len(q.Described) == 0 {
		t.Errorf("%+v", q)
	}
	if _, err := g.api.Update(g.ctx(), ref, api.Update{EstModel: new("resnet50")}); err != nil {
		t.Fatal(err)
	}
	if q := asked.query(); q.Model != "resnet50" || len(q.Described) > 0 || q.Settings.Batch != 0 || q.Settings.Sequence != 512 {
		t.Errorf("%+v", q)
	}
	if _, err := g.api.Update(g.ctx(), ref, api.Update{Train: map[string]string{"seq": "x"}}); err == nil {
		t.Error("a wrong setting is taken")
	}
	list, err := g.api.Tasks(g.ctx(), api.ListOptions{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, task := range list {
		if len(task.Submit.Network) > 0 {
			t.Error("a listing has the network")
		}
	}
}

// TestTrainingIsRefused checks that the daemon validates the training settings of every client.
func TestTrainingIsRefused(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("train", containerstest.Image{})
	for what, c := range map[string]struct {
		s     api.Submit
		words string
	}{
		"a wrong word":       {api.Submit{EstModel: "resnet50", Train: map[string]string{"precision": "bf61"}}, "--precision: \"bf61\" is not one of"},
		"an unknown setting": {api.Submit{EstModel: "resnet50", Train: map[string]string{"sek": "1"}}, `unknown setting "sek"; nearest: seq`},
		"a wrong word, read": {api.Submit{EstModel: "resnet50", Read: &api.Read{Train: map[string]string{"seq": "many"}}}, "--seq"},
		"no name":            {api.Submit{Network: []byte(`{}`)}, "--est-model: missing"},
		"of a few figures":   {api.Submit{Params: 1e6, BatchSize: 4, Family: "cnn", Train: map[string]string{"seq": "8"}}, "--seq: it is for a model whose layers are known"},
	} {
		c.s.Image = "train"
		_, err := g.api.Submit(g.ctx(), c.s)
		if err == nil {
			t.Errorf("%s is taken", what)
			continue
		}
		g.refusedTo(err, 422, c.words)
	}
	answer, err := g.api.Submit(g.ctx(), api.Submit{Image: "train", Train: map[string]string{"seq": "8"}})
	if err != nil || !strings.Contains(strings.Join(answer.Warnings, " "), "name it with --est-model") {
		t.Errorf("%+v, %v", answer, err)
	}
}

// TestKindHasTraining checks that explicit settings distinguish kinds, and that settings read
// from the command do not, because the command itself does.
func TestKindHasTraining(t *testing.T) {
	rec := func(train map[string]string, network string, read *api.Read) *record.Record {
		return &record.Record{Submit: api.Submit{Image: "i", Command: []string{"a"}, GPUs: 1, BatchSize: 8, Train: train, Network: []byte(network), Read: read, EstModel: "m"}}
	}
	plain := rec(nil, "", nil)
	if read := rec(nil, "", &api.Read{Train: map[string]string{"seq": "8"}}); taskkind.Kind(read) != taskkind.Kind(plain) || taskkind.Program(read) != taskkind.Program(plain) {
		t.Error("what was read makes another kind")
	}
	kinds, families := map[string]bool{taskkind.Kind(plain): true}, map[string]bool{taskkind.Family(&plain.Submit): true}
	for _, other := range []*record.Record{
		rec(map[string]string{"seq": "8"}, "", nil), rec(map[string]string{"seq": "16"}, "", nil), rec(map[string]string{"seq": "16", "bits": "4"}, "", nil),
		rec(nil, "{}", nil), rec(nil, "{1}", nil),
	} {
		if kinds[taskkind.Kind(other)] || taskkind.Program(other) == taskkind.Program(plain) {
			t.Errorf("%+v is of a kind that was there", other.Submit)
		}
		kinds[taskkind.Kind(other)] = true
		families[taskkind.Family(&other.Submit)] = true
	}
	if len(families) != 3 {
		t.Errorf("families %v", families)
	}
}
