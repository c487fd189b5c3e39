package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"carma/runner/api"
)

// Options are the settings of a Post.
type Options struct {
	Dir  string // its own folder; made if it is missing
	Host string // this machine's name, for people
	Log  zerolog.Logger
	// Count counts n messages by kind of channel and result: sent, retried or dropped.
	Count func(kind, result string, n int)
	Pace  Pace
}

// Rules contains the administrator's settings, which can change at any time.
type Rules struct {
	Server api.NotifySettings
	// Trouble is the reason why the administrator's file is not in force, or empty if it is.
	Trouble string
}

// Post sends messages. Its methods may be called from several goroutines.
type Post struct {
	opt   Options
	known bool // a place in the journal was stored by an earlier daemon

	mu     sync.Mutex // guards all below
	rules  Rules
	allow  []Allowed // of the rules
	users  map[int]api.NotifySettings
	queues map[key]*queue
	box    *outbox
	tested map[int]time.Time // when each user last requested a test
	work   context.Context   // nil until it runs
	all    sync.WaitGroup    // workers
}

// Open loads an earlier daemon's messages from its folder.
func Open(o Options) (*Post, error) {
	if err := os.MkdirAll(filepath.Join(o.Dir, "users"), 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(o.Dir, 0o700); err != nil {
		return nil, err
	}
	p := &Post{opt: o, users: map[int]api.NotifySettings{}, queues: map[key]*queue{}, tested: map[int]time.Time{}}
	var waiting []parcel
	var err error
	if p.box, waiting, p.known, err = openOutbox(filepath.Join(o.Dir, "outbox")); err != nil {
		return nil, err
	}
	if err := p.loadUsers(); err != nil {
		return nil, err
	}
	for i := range waiting {
		p.enqueue(&waiting[i])
	}
	return p, nil
}

func (p *Post) userFile(uid int) string {
	return filepath.Join(p.opt.Dir, "users", strconv.Itoa(uid)+".json")
}

// loadUsers reads the users' settings. If a file cannot be read, only its user gets no
// messages.
func (p *Post) loadUsers() error {
	files, err := os.ReadDir(filepath.Join(p.opt.Dir, "users"))
	if err != nil {
		return err
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		uid, err := strconv.Atoi(name)
		if !ok || err != nil {
			continue
		}
		var s api.NotifySettings
		raw, err := os.ReadFile(p.userFile(uid))
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil {
			p.opt.Log.Error().Int("uid", uid).Msg("the channels of a user cannot be read; carma notify, run by that user, sets them again")
			continue
		}
		p.users[uid] = s
	}
	return nil
}

// Run sends until ctx ends. The next daemon sends the remaining messages.
func (p *Post) Run(ctx context.Context) {
	p.mu.Lock()
	p.work = ctx
	for k, q := range p.queues {
		p.start(k, q)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.all.Wait()
}

// Close closes the outbox, after Run.
func (p *Post) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.box.f.Close()
}

// SetRules applies the administrator's rules. If r has a Trouble, the previous rules
// stay.
func (p *Post) SetRules(r Rules) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Trouble != "" {
		p.rules.Trouble = r.Trouble
		return
	}
	p.rules, p.allow = r, nil
	for _, text := range r.Server.Allow {
		if a, err := ParseAllowed(text); err == nil {
			p.allow = append(p.allow, a)
		}
	}
	for _, q := range p.queues {
		q.again()
	}
}

// Place returns the position up to which the journal was read, with the reader's state.
// known is false if no daemon has read any of the journal.
func (p *Post) Place() (seq int64, state json.RawMessage, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.box.place.Seq, p.box.place.State, p.known
}

// Put stores messages, and the place in the journal behind them. When it returns nil,
// both are durable.
func (p *Post) Put(seq int64, state json.RawMessage, list []Owned) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var parcels []parcel
	for i := range list {
		own, others := p.address(&list[i])
		if len(own) > 0 {
			parcels = append(parcels, parcel{Message: list[i].Message, At: time.Now(), To: own})
		}
		if len(others) > 0 {
			parcels = append(parcels, parcel{Message: list[i].forOthers(), At: time.Now(), To: others})
		}
	}
	if err := p.box.put(parcels, place{Seq: seq, State: state}); err != nil {
		return err
	}
	p.known = true
	for i := range parcels {
		p.enqueue(&parcels[i])
	}
	return nil
}

// address returns the owner's and the administrator's channels for a message.
func (p *Post) address(o *Owned) (own, others []key) {
	if s, ok := p.users[o.UID]; ok && o.UID >= 0 {
		for i := range s.Channels {
			c := &s.Channels[i]
			is, chosen := wants(o.Wants, o.Event, c.Name)
			if is || !chosen && slices.Contains(eventsOf(c, &s, p.defaults()), o.Event) {
				own = append(own, key{o.UID, c.Name})
			}
		}
	}
	for i := range p.rules.Server.Channels {
		c := &p.rules.Server.Channels[i]
		if slices.Contains(eventsOf(c, &p.rules.Server, []string{api.NotifyFault}), o.Event) {
			others = append(others, key{admin, c.Name})
		}
	}
	return own, others
}

// defaults returns the events of users' channels that name no events.
func (p *Post) defaults() []string {
	if d := p.rules.Server.Defaults; len(d) > 0 {
		return d
	}
	return api.NotifyDefaults
}

func eventsOf(c *api.NotifyChannel, s *api.NotifySettings, otherwise []string) []string {
	switch {
	case len(c.Events) > 0:
		return c.Events
	case len(s.Events) > 0:
		return s.Events
	}
	return otherwise
}

// channel returns a channel with its current settings and its sender, or nil if there is
// none.
func (p *Post) channel(k key) (*api.NotifyChannel, sender, error) {
	s, g := p.users[k.UID], guard{allow: p.allow}
	if k.UID == admin {
		s, g = p.rules.Server, guard{free: true}
	}
	i := slices.IndexFunc(s.Channels, func(c api.NotifyChannel) bool { return c.Name == k.Name })
	if i < 0 && k.UID == admin && p.rules.Trouble != "" {
		return &api.NotifyChannel{Name: k.Name, Kind: "none"}, nil, temporary("the administrator's file has a fault")
	}
	if i < 0 {
		return nil, nil, nil
	}
	c := s.Channels[i]
	by, err := p.senderOf(&c, p.rules.Server.Relay, g)
	return &c, by, err
}

// SetUser replaces the channels of a user, and removes them if there are none.
func (p *Post) SetUser(uid int, s api.NotifySettings) error {
	if err := s.Check(false); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if have, ok := p.users[uid]; ok {
		if old, err := json.Marshal(have); err == nil && string(old) == string(raw) {
			return nil // most calls change nothing, because each carma run sends the settings
		}
	}
	if len(s.Channels) == 0 {
		if err := os.Remove(p.userFile(uid)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("the channels could not be removed: %w", err)
		}
		delete(p.users, uid)
	} else {
		if err := writeFile(p.userFile(uid), raw); err != nil {
			return fmt.Errorf("the channels could not be stored: %w", err)
		}
		p.users[uid] = s
	}
	for k, q := range p.queues {
		if k.UID == uid {
			q.again()
		}
	}
	return nil
}

// User returns the names of a user's channels.
func (p *Post) User(uid int) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.users[uid].Channels {
		names = append(names, c.Name)
	}
	return names
}
