package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"carma/runner/api"
)

// Channels returns the API form of a user's channels.
func (p *Post) Channels(uid int) []api.NotifyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.users[uid]
	return p.states(uid, &s, p.defaults())
}

// Server returns the administrator's channels, and the error in the file.
func (p *Post) Server() (list []api.NotifyState, trouble string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.states(admin, &p.rules.Server, []string{api.NotifyFault}), p.rules.Trouble
}

// Defaults returns the events of a user's channels that name no events.
func (p *Post) Defaults(uid int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.users[uid]
	return eventsOf(&api.NotifyChannel{}, &s, p.defaults())
}

// Relay reports whether there is a mail server for channels that name none.
func (p *Post) Relay() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules.Server.Relay != nil
}

func (p *Post) states(uid int, s *api.NotifySettings, otherwise []string) []api.NotifyState {
	list := []api.NotifyState{}
	for i := range s.Channels {
		c := &s.Channels[i]
		v := api.NotifyState{Name: c.Name, Kind: c.Kind, To: c.Target(), Events: eventsOf(c, s, otherwise)}
		if q := p.queues[key{uid, c.Name}]; q != nil {
			v.Waiting, v.Sent, v.Failed, v.Error, v.Dropped = len(q.waiting), q.sent, q.failed, q.err, q.given
		}
		list = append(list, v)
	}
	return list
}

// Failing returns the channels that could not send their last letter: the number of
// users' channels, and the administrator's channels by name with the error.
func (p *Post) Failing() (users int, server []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, q := range p.queues {
		switch {
		case q.failed.IsZero():
		case k.UID == admin:
			server = append(server, k.Name+": "+q.err)
		default:
			users++
		}
	}
	slices.Sort(server)
	return users, server
}

// ErrTooSoon means that the user has just requested a test.
var ErrTooSoon = errors.New("a test message was sent a moment ago; wait 5 seconds")

// ErrNoChannel means that there is no channel with that name, or no channel at all.
var ErrNoChannel = errors.New("no such channel")

// testRest is the time between two tests of one user.
const testRest = 5 * time.Second

// Test sends a test message now, past the queue, and returns the results. server sends to
// the administrator's channels. An empty name means all channels.
func (p *Post) Test(ctx context.Context, uid int, who string, server bool, name string) ([]api.NotifyTested, error) {
	of := uid
	if server {
		of = admin
	}
	p.mu.Lock()
	s := p.users[of]
	if server {
		s = p.rules.Server
	}
	var chosen []api.NotifyChannel
	for _, c := range s.Channels {
		if name == "" || c.Name == name {
			chosen = append(chosen, c)
		}
	}
	soon := time.Since(p.tested[uid]) < testRest
	if len(chosen) > 0 && !soon {
		p.tested[uid] = time.Now()
	}
	p.mu.Unlock()
	switch {
	case len(chosen) == 0:
		return nil, ErrNoChannel
	case soon:
		return nil, ErrTooSoon
	}
	out := make([]api.NotifyTested, len(chosen))
	var tests sync.WaitGroup
	for i := range chosen {
		tests.Go(func() { out[i] = p.test(ctx, key{of, chosen[i].Name}, who) })
	}
	tests.Wait()
	return out, nil
}

func (p *Post) test(ctx context.Context, k key, who string) api.NotifyTested {
	p.mu.Lock()
	c, by, err := p.channel(k)
	p.mu.Unlock()
	v := api.NotifyTested{Channel: k.Name}
	if c == nil {
		v.Text = "it was taken away meanwhile"
		return v
	}
	now := time.Now()
	m := Message{ID: "test-" + strconv.FormatInt(now.UnixNano(), 36), Event: eventTest, Time: now, User: who, Name: fmt.Sprintf("%s asked for it on %s", who, cmp.Or(p.opt.Host, "this machine"))}
	said := ""
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, p.opt.Pace.Limit)
		defer cancel()
		said, err = by.deliver(ctx, write(p.opt.Host, []Message{m}, false, 0))
	}
	v.Kind, v.OK, v.Text = c.Kind, err == nil, said
	result := "sent"
	if err != nil {
		v.Text, result = err.Error(), "dropped"
	}
	p.opt.Count(c.Kind, result, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.queueOf(k); err == nil {
		q.sent = now
		q.again()
		q.failed, q.err = time.Time{}, ""
	} else {
		q.failed, q.err = now, v.Text
	}
	return v
}
