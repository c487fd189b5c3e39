package messages

import (
	"errors"
	"slices"
	"testing"

	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/notify"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/verify"

	"github.com/rs/zerolog"
)

// TestFaults: a fault of a GPU is reported when it begins, when it changes and when it ends,
// and not again in each sample.
func TestFaults(t *testing.T) {
	m := New(Deps{Index: func(id model.GPUID) int { return len(id) }})
	faults := map[model.GPUID]string{}
	var got []string
	for _, fault := range []string{"", "Xid 79", "Xid 79", "Xid 48", "", ""} {
		ev := model.Sampled{GPUs: []model.GPUSample{{ID: "ab", Fault: fault}}}
		for _, o := range m.of(t.Context(), verify.Step{Event: ev}, faults) {
			if o.UID != -1 || o.Event != api.NotifyFault || o.Name != "GPU 2 (ab)" {
				t.Errorf("%+v", o)
			}
			got = append(got, o.Reason)
		}
	}
	if want := []string{"Xid 79", "Xid 48", "it is well again"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWake: only an event that may cause a message wakes the messenger, and it is woken once.
func TestWake(t *testing.T) {
	var none *Messenger
	none.Begin()
	none.Wake(1, model.Started{}, nil)
	m := New(Deps{})
	m.Wake(7, model.Sampled{}, []model.Decision{model.Release{}})
	if len(m.letters) != 0 || m.decided.Load() != 0 {
		t.Error("a sample wakes it")
	}
	m.Wake(8, model.Sampled{}, []model.Decision{model.Finish{}})
	m.Wake(9, model.Started{}, nil)
	if len(m.letters) != 1 || m.decided.Load() != 9 {
		t.Errorf("%d, %d", len(m.letters), m.decided.Load())
	}
}

type anybody bool

func (a anybody) MayServer(rights.Action, request.Caller) bool { return bool(a) }

func (a anybody) AuthorizeServer(request.Caller, rights.Action, string, string) error {
	if a {
		return nil
	}
	return request.Errorf(403, "no")
}

func status(err error) int {
	if e := (*request.Error)(nil); errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// TestChannels checks the answers to users without an outbox, without a channel and without
// the right to the administrator's channels.
func TestChannels(t *testing.T) {
	ann := request.Caller{UID: 70001, Name: "ann"}
	ctx := request.WithCaller(t.Context(), ann)
	failed := &api.Submit{Notify: []string{"failed"}}

	none := NewChannels(nil, "/data", anybody(true))
	none.SetRules(notify.Rules{})
	if _, err := none.View(ctx); status(err) != 503 || status(none.CheckSubmit(ann, failed)) != 503 || none.CheckSubmit(ann, &api.Submit{}) != nil {
		t.Errorf("without an outbox: %v", err)
	}
	if c := none.Check(); c.Status != "failure" || none.Undelivered(70001, 1) != nil {
		t.Errorf("%+v", c)
	}

	post, err := notify.Open(notify.Options{Dir: t.TempDir(), Log: zerolog.Nop(), Count: func(string, string, int) {}, Pace: notify.DefaultPace})
	if err != nil {
		t.Fatal(err)
	}
	c := NewChannels(post, "/data", anybody(false))
	if _, err := c.View(t.Context()); status(err) != 403 {
		t.Errorf("an unknown caller: %v", err)
	}
	if err := c.CheckSubmit(ann, failed); status(err) != 422 {
		t.Errorf("no channel: %v", err)
	}
	if _, err := c.Test(ctx, api.NotifyTest{Server: true}); status(err) != 403 {
		t.Errorf("the administrator's channels: %v", err)
	}
	if v, err := c.View(ctx); err != nil || v.Server != nil {
		t.Errorf("%+v, %v", v, err)
	}
	if c := c.Check(); c.Status != "ok" {
		t.Errorf("%+v", c)
	}
}
