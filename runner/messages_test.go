package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/notify"
	"carma/runner/request"
)

// mailbox is a webhook that keeps the messages it gets.
type mailbox struct {
	*httptest.Server
	mu   sync.Mutex
	got  []notify.Message
	fail bool
}

func newMailbox(t *testing.T) *mailbox {
	m := &mailbox{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var l struct{ Messages []notify.Message }
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &l)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.fail {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		m.got = append(m.got, l.Messages...)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *mailbox) all() []notify.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.got)
}

// of returns the message of a task's event, and the number of times that it arrived.
func (m *mailbox) of(ref, event string) (msg notify.Message, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.got {
		if x.Event == event && (x.Task == 0 || x.Name == ref) {
			msg, n = x, n+1
		}
	}
	return msg, n
}

// channel returns a channel to the mailbox. Its address contains a secret.
func (m *mailbox) channel(name string, events ...string) api.NotifyChannel {
	return api.NotifyChannel{Name: name, Kind: "webhook", URL: m.URL + "/secret-word", Events: events}
}

// posting makes a rig send its messages quickly, to receivers on this machine.
func posting(server ...api.NotifyChannel) func(*rig) {
	return func(g *rig) {
		g.opt.Notify.Pace = notify.Pace{Collect: 10 * time.Millisecond, Rest: 10 * time.Millisecond, Retry: 20 * time.Millisecond, Longest: 50 * time.Millisecond, Limit: 2 * time.Second}
		g.opt.Notify.Rules.Server = api.NotifySettings{Allow: []string{"127.0.0.1"}, Channels: server}
	}
}

func (g *rig) channels(all ...api.NotifyChannel) {
	g.t.Helper()
	if _, err := g.api.SetNotify(g.ctx(), api.NotifySettings{Channels: all}); err != nil {
		g.t.Fatal(err)
	}
}

// TestMessages checks that events of tasks and GPUs cause messages with the important facts.
func TestMessages(t *testing.T) {
	mine, ops := newMailbox(t), newMailbox(t)
	g := newRig(t, posting(ops.channel("ops")))
	g.channels(mine.channel("mine", api.NotifyEvents...))
	g.script("ok", printing(0, "done"))
	g.script("bad", printing(3, "loading", "Traceback", "ValueError: shapes"))
	g.script("oom", printing(1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"))
	g.script("long", untilStopped)
	mem := int64(2 * units.GiB)
	for _, s := range []api.Submit{
		{Image: "ok", Name: "ok", Mem: mem}, {Image: "bad", Name: "bad", Mem: mem}, {Image: "oom", Name: "oom", Mem: mem},
		{Image: "ok", Name: "quiet", Mem: mem, Notify: []string{"none"}}, {Image: "ok", Name: "chosen", Mem: mem, Notify: []string{"started:mine"}},
	} {
		g.finished(g.run(s))
		if s.Name == "bad" { // a mail with many messages does not contain the output
			g.eventually("the message of its end", func() bool { _, n := mine.of("bad", api.NotifyFailed); return n == 1 })
		}
	}
	long := g.run(api.Submit{Image: "long", Name: "long", Mem: mem})
	g.running(long)
	if _, err := g.api.Stop(g.ctx(), long, api.StopRequest{Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	g.finished(long)
	g.cards.set(gpu.Sample{UUID: "GPU-b", Fault: "it has fallen off the bus (Xid 79)", Lasts: true})
	g.eventually("the messages", func() bool {
		_, stopped := mine.of("long", api.NotifyStopped)
		_, fault := ops.of("", api.NotifyFault)
		return stopped == 1 && fault == 1
	})
	for _, want := range []struct {
		name, event string
		n           int
		has         func(m notify.Message) bool
	}{
		{"ok", api.NotifyStarted, 1, nil},
		{"ok", api.NotifyFinished, 1, func(m notify.Message) bool { return *m.ExitCode == 0 && m.Output == nil }},
		{"bad", api.NotifyFailed, 1, func(m notify.Message) bool {
			return *m.ExitCode == 3 && slices.Equal(m.Output, []string{"loading", "Traceback", "ValueError: shapes"}) && strings.Contains(m.Reason, "3") && len(m.GPUs) == 1
		}},
		{"oom", api.NotifyRecovered, 3, func(m notify.Message) bool { return strings.Contains(m.Reason, "GPU out of memory") && m.Attempts == 0 }},
		{"oom", api.NotifyFailed, 1, func(m notify.Message) bool { return m.Attempts == 4 }},
		{"quiet", api.NotifyFinished, 0, nil}, {"quiet", api.NotifyStarted, 0, nil},
		{"chosen", api.NotifyStarted, 1, nil}, {"chosen", api.NotifyFinished, 0, nil},
		{"long", api.NotifyStopped, 1, func(m notify.Message) bool { return strings.Contains(m.Reason, "enough") }},
	} {
		m, n := mine.of(want.name, want.event)
		if n != want.n || n > 0 && (want.has != nil && !want.has(m) || m.ID == "" || m.Time.IsZero()) {
			t.Errorf("%s of %s: %d, %+v", want.event, want.name, n, m)
		}
	}
	if m, n := ops.of("", api.NotifyFault); n != 1 || m.Name != "GPU 1 (GPU-b)" || !strings.Contains(m.Reason, "Xid 79") || len(ops.got) != 1 {
		t.Errorf("%d, %+v", n, ops.got)
	}
	if _, n := mine.of("", api.NotifyFault); n != 0 {
		t.Error("a user was told of the GPU")
	}
}

// TestMessagesAfterKill: a daemon that was killed before it had handed a message over leaves it
// to the next one, which sends it with the same id.
func TestMessagesAfterKill(t *testing.T) {
	box := newMailbox(t)
	g := newRig(t, posting())
	g.channels(box.channel("mine"))
	g.script("bad", printing(3, "last words"))
	outbox := filepath.Join(g.dir, "notify", "outbox")
	g.eventually("the outbox has its place", func() bool { raw, err := os.ReadFile(outbox); return err == nil && len(raw) > 0 })
	before, err := os.ReadFile(outbox)
	if err != nil {
		t.Fatal(err)
	}
	g.finished(g.run(api.Submit{Image: "bad", Name: "bad", Mem: int64(units.GiB)}))
	g.eventually("the message", func() bool { _, n := box.of("bad", api.NotifyFailed); return n == 1 })
	first, _ := box.of("bad", api.NotifyFailed)
	g.stop()
	if err := os.WriteFile(outbox, before, 0o600); err != nil { // as if it had died before
		t.Fatal(err)
	}
	g.start()
	g.eventually("the message again", func() bool { _, n := box.of("bad", api.NotifyFailed); return n == 2 })
	again, _ := box.of("bad", api.NotifyFailed)
	if first.ID != again.ID || !slices.Equal(again.Output, []string{"last words"}) || !first.Time.Equal(again.Time) {
		t.Errorf("%+v\n%+v", first, again)
	}
	g.eventually("that it was delivered is kept", func() bool {
		raw, err := os.ReadFile(outbox)
		return err == nil && bytes.Contains(raw, []byte(`"done":`))
	})
	g.restart()
	g.finished(g.run(api.Submit{Image: "bad", Name: "later", Mem: int64(units.GiB)}))
	g.eventually("the next message", func() bool { _, n := box.of("later", api.NotifyFailed); return n == 1 })
	if _, n := box.of("bad", api.NotifyFailed); n != 2 {
		t.Errorf("it came %d times", n)
	}
}

// TestMessagesOfAdopted: a daemon that finds a task running sends no message that it starts.
func TestMessagesOfAdopted(t *testing.T) {
	box := newMailbox(t)
	g := newRig(t, posting())
	g.channels(box.channel("mine", api.NotifyEvents...))
	g.script("long", untilStopped)
	ref := g.run(api.Submit{Image: "long", Name: "long", Mem: int64(units.GiB)})
	g.running(ref)
	g.eventually("its start", func() bool { _, n := box.of("long", api.NotifyStarted); return n == 1 })
	g.restart()
	g.running(ref)
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.eventually("its end", func() bool { _, n := box.of("long", api.NotifyStopped); return n == 1 })
	ids := map[string]bool{} // a message is sent twice if the first daemon was killed before it got the answer
	for _, m := range box.all() {
		if m.Event == api.NotifyStarted {
			ids[m.ID] = true
		}
	}
	if len(ids) != 1 {
		t.Errorf("it started %d times: %v", len(ids), box.all())
	}
}

// TestMessagesPrivate: the destination of a channel is in its user's file and nowhere else,
// and other users see nothing of it.
func TestMessagesPrivate(t *testing.T) {
	box := newMailbox(t)
	box.fail = true
	g := newRig(t, posting(), func(g *rig) { g.opt.AdminGroup = "" })
	ann := request.WithCaller(g.ctx(), request.Caller{UID: 70001, GID: 70001, Name: "ann"})
	bob := request.WithCaller(g.ctx(), request.Caller{UID: 70002, GID: 70002, Name: "bob"})
	if err := g.Runner.channels.Set(ann, api.NotifySettings{Channels: []api.NotifyChannel{box.channel("mine")}}); err != nil {
		t.Fatal(err)
	}
	g.script("bad", printing(3))
	who, _ := request.CallerFrom(ann)
	sub, err := g.admission.Submit(ann, who, api.Submit{Image: "bad", Name: "bad", Mem: int64(units.GiB), Notify: []string{"failed:mine"}})
	if err != nil {
		t.Fatal(err)
	}
	ref := "bad"
	g.finished(ref)
	g.eventually("a failure", func() bool { v, err := g.Runner.channels.View(ann); return err == nil && v.Channels[0].Error != "" })
	v, err := g.Runner.channels.View(bob)
	if err != nil || len(v.Channels) > 0 || v.Server != nil {
		t.Errorf("%+v, %v", v, err)
	}
	var refused *request.Error
	if _, err := g.Runner.channels.Test(bob, api.NotifyTest{Channel: "mine"}); !errors.As(err, &refused) || refused.Status != 422 {
		t.Error(err)
	}
	if _, err := g.Runner.channels.Test(bob, api.NotifyTest{Server: true}); !errors.As(err, &refused) || refused.Status != 403 {
		t.Error(err)
	}
	why, _ := g.query.Why(ann, ref)
	task, _ := g.query.Task(ann, ref)
	mine, _ := g.Runner.channels.View(ann)
	shown, _ := json.Marshal([]any{why, task, mine, g.Doctor(g.ctx()), sub})
	if strings.Contains(string(shown), "secret-word") {
		t.Error(string(shown))
	}
	g.stop()
	err = filepath.WalkDir(g.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if own := strings.HasSuffix(path, "/notify/users/70001.json"); err == nil && strings.Contains(string(raw), "secret-word") != own {
			t.Errorf("%s: the secret is there: %v", path, !own)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNotifyRefused: a task is refused if its messages have no channel.
func TestNotifyRefused(t *testing.T) {
	box := newMailbox(t)
	g := newRig(t, posting())
	g.script("ok", printing(0))
	try := func(want string, notify ...string) {
		t.Helper()
		_, err := g.api.Submit(g.ctx(), api.Submit{Image: "ok", Mem: int64(units.GiB), Notify: notify})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", notify, err)
		}
	}
	try("there are no channels for messages", "failed")
	try("", "none")
	g.channels(box.channel("phone"))
	try("", "failed,finished")
	try("", "all:phone")
	try(`"fone" is not one of phone`, "failed:fone")
	try(`"fialed" is not one of`, "fialed")
	try("none and other events", "none", "failed")
	if _, err := g.api.SetNotify(g.ctx(), api.NotifySettings{Channels: []api.NotifyChannel{{Name: "x", Kind: "hook", Command: "/bin/true"}}}); err == nil || !strings.Contains(err.Error(), "hook is for the administrator's file") {
		t.Error(err)
	}
}
