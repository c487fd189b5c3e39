package notify

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/runner/api"
)

func TestOneMessage(t *testing.T) {
	r, o := receive(t, nil), newOffice(t).open()
	o.user(1000, hookTo("a", r))
	o.put(7, failed(17, 1000), failed(18, 1001))
	until(t, "the message", func() bool { return len(r.letters()) == 1 })
	l := r.letters()[0]
	if l.Title != "[gpu1] task 17 (train) failed" || l.ID != "m-17" || len(l.Messages) != 1 || l.Messages[0].Output[0] != "last words" {
		t.Errorf("%+v", l)
	}
	if want := "task 17 (train, ada) failed with exit code 3: exit code 3: private words\n\nlast lines of task 17:\nlast words"; l.Text != want {
		t.Errorf("%q", l.Text)
	}
	until(t, "its state", func() bool { c := o.Channels(1000)[0]; return !c.Sent.IsZero() && c.Waiting == 0 && c.Error == "" })
	if n := o.count("webhook sent"); n != 1 {
		t.Errorf("%d counted", n)
	}
}

// TestWants checks that the events that a task selects replace the events of its channels.
func TestWants(t *testing.T) {
	for _, test := range []struct {
		wants []string
		event string
		want  string
	}{
		{nil, api.NotifyFailed, "a b"},
		{nil, api.NotifyStarted, ""},
		{[]string{"none"}, api.NotifyFailed, ""},
		{[]string{"started"}, api.NotifyStarted, "a b"},
		{[]string{"started"}, api.NotifyFailed, ""},
		{[]string{"failed:b"}, api.NotifyFailed, "b"},
		{[]string{"failed:b", "finished:a"}, api.NotifyFailed, "b"},
		{[]string{"all:a"}, api.NotifySuspended, "a"},
	} {
		p := &Post{users: map[int]api.NotifySettings{5: {Channels: []api.NotifyChannel{{Name: "a"}, {Name: "b"}}}}}
		own, others := p.address(&Owned{UID: 5, Wants: test.wants, Message: Message{Event: test.event}})
		var names []string
		for _, k := range own {
			names = append(names, k.Name)
		}
		if got := strings.Join(names, " "); got != test.want || others != nil {
			t.Errorf("%v of %s goes to %q, want %q", test.wants, test.event, got, test.want)
		}
	}
}

// TestServerChannels checks that the administrator's messages contain neither the output nor
// texts of a private task.
func TestServerChannels(t *testing.T) {
	r, o := receive(t, nil), newOffice(t)
	c := hookTo("ops", r)
	c.Events = []string{api.NotifyFault, api.NotifyFailed}
	o.rules.Server.Channels = []api.NotifyChannel{c}
	o.open()
	o.put(1, failed(17, 1000), Owned{UID: -1, Public: "it is lost", Message: Message{ID: "g", Event: api.NotifyFault, Name: "GPU 3", Reason: "it is lost"}})
	until(t, "the messages", func() bool { return len(r.ids()) == 2 })
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.bodies, "")
	if strings.Contains(all, "private words") || strings.Contains(all, "last words") || !strings.Contains(all, "GPU 3: it is lost") {
		t.Error(all)
	}
}

// TestHang checks that a receiver that hangs delays neither other channels nor Put.
func TestHang(t *testing.T) {
	block := make(chan struct{})
	slow := receive(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		select {
		case <-block:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(block) })
	good, o := receive(t, nil), newOffice(t).open()
	o.user(1000, hookTo("slow", slow), hookTo("good", good))
	o.put(1, failed(1, 1000))
	until(t, "the slow one to hang", func() bool { return len(slow.letters()) == 1 })
	begun := time.Now()
	for i := range int64(5) {
		o.put(2+i, failed(2+i, 1000))
	}
	if d := time.Since(begun); d > time.Second {
		t.Errorf("Put took %s", d)
	}
	until(t, "the good one", func() bool { return len(good.ids()) == 6 })
	if len(slow.letters()) > 2 {
		t.Error("the hanging one got more than its turn")
	}
}

// TestDigest checks that many messages at the same time are sent as one.
func TestDigest(t *testing.T) {
	r, o := receive(t, nil), newOffice(t)
	o.pace.Collect = 1500 * time.Millisecond
	o.open()
	o.user(1000, hookTo("a", r))
	for i := range int64(10) {
		var list []Owned
		for j := range int64(100) {
			list = append(list, failed(1+i*100+j, 1000))
		}
		o.put(i, list...)
	}
	until(t, "the message", func() bool { return len(r.letters()) > 0 })
	until(t, "the end", func() bool { return o.Channels(1000)[0].Waiting == 0 })
	if n := len(r.letters()); n != 1 {
		t.Fatalf("%d letters", n)
	}
	l := r.letters()[0]
	if l.Title != "[gpu1] 1000 messages: 1000 failed" || len(l.Messages) != inFull || l.LeftOut != 980 || !strings.HasSuffix(l.Text, "and 980 more: tasks 21-1000") {
		t.Errorf("%s %d %d %q", l.Title, len(l.Messages), l.LeftOut, l.Text[len(l.Text)-60:])
	}
	if l.Messages[0].Output != nil || o.count("webhook sent") != 1000 {
		t.Error("output, or the count", o.count("webhook sent"))
	}
}

// TestKill: messages that were not delivered when the daemon died are delivered later with the
// same id, and that delivered ones are not sent again.
func TestKill(t *testing.T) {
	var up sync.Mutex
	works := false
	r := receive(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		up.Lock()
		defer up.Unlock()
		if !works {
			w.WriteHeader(500)
		}
	})
	good, o := receive(t, nil), newOffice(t).open()
	o.user(1000, hookTo("a", r), hookTo("b", good))
	o.put(5, failed(1, 1000), failed(2, 1000))
	until(t, "two failures", func() bool { return len(r.letters()) >= 2 && len(good.ids()) == 2 })
	until(t, "the note", func() bool { return o.Channels(1000)[1].Waiting == 0 })
	o.kill()
	before := len(r.letters())
	up.Lock()
	works = true
	up.Unlock()
	o.open()
	if seq, _, known := o.Place(); seq != 5 || !known {
		t.Errorf("place %d %v", seq, known)
	}
	until(t, "the message", func() bool { return o.Channels(1000)[0].Waiting == 0 })
	l := r.letters()
	if len(l) != before+1 || l[before].ID != "m-1+1" || l[before].Messages[1].ID != "m-2" {
		t.Errorf("%d letters, then %+v", before, l[before:])
	}
	if n := len(good.ids()); n != 2 {
		t.Errorf("the good channel got %d", n)
	}
}

// TestTornOutbox: the end of the file may be incomplete after a crash. A batch counts only if
// its position was stored too.
func TestTornOutbox(t *testing.T) {
	r, o := receive(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(500) }), newOffice(t).open()
	o.user(1000, hookTo("a", r))
	o.put(5, failed(1, 1000))
	o.kill()
	path := filepath.Join(o.dir, "outbox")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := json.Marshal(line{Parcel: &parcel{Message: failed(2, 1000).Message, To: []key{{1000, "a"}}}})
	for _, end := range []string{"", string(second) + "\n", string(second) + "\n{\"at\":{\"se", string(second[:40])} {
		if err := os.WriteFile(path, append(slices.Clone(raw), end...), 0o600); err != nil {
			t.Fatal(err)
		}
		b, waiting, known, err := openOutbox(path)
		if err != nil || !known || b.place.Seq != 5 || len(waiting) != 1 || waiting[0].ID != "m-1" {
			t.Errorf("%q: %v %+v %+v", end, err, b.place, waiting)
		}
	}
}
