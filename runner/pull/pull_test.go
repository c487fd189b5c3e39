package pull

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"carma/containers"
)

// registry is an engine with one registry.
type registry struct {
	here   map[string]string                // ids of the images on the machine, by name
	there  map[string]string                // ids of the images in the registry
	keys   map[string]containers.Credential // the accepted credentials; a missing image needs none
	away   bool
	pulled int
}

func (r *registry) Image(_ context.Context, ref string) (containers.Image, error) {
	if id := r.here[ref]; id != "" {
		return containers.Image{ID: id}, nil
	}
	return containers.Image{}, fmt.Errorf("%s: %w", ref, containers.ErrNotFound)
}

func (r *registry) Pull(_ context.Context, ref string, by containers.Credential) error {
	r.pulled++
	switch {
	case r.away:
		return containers.ErrUnavailable
	case r.there[ref] == "":
		return errors.New("dial tcp: lookup nosuch.example: no such host")
	case r.keys[ref] != containers.Credential{} && by == containers.Credential{}:
		return errors.New("unauthorized")
	case r.keys[ref] != containers.Credential{} && by.Password != r.keys[ref].Password:
		return errors.New("wrong password")
	}
	r.here[ref] = r.there[ref]
	return nil
}

type values map[string][]byte

func (v values) Put(key string, b []byte) error { v[key] = b; return nil }
func (v values) Get(key string) ([]byte, error) { return v[key], nil }
func (r *registry) puller(v values) (p *Puller) { p, _ = New(r, v); return p }
func with(host, user, password string) Credentials {
	return Credentials{host: {Username: user, Password: password}}
}

const (
	ann, bob  = 1001, 1002
	private   = "reg.example:5000/team/train:1"
	privateID = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	public    = "reg.example:5000/public:1"
)

func newRegistry() *registry {
	return &registry{
		here: map[string]string{"loaded": "sha256:loaded"}, there: map[string]string{private: privateID, public: "sha256:q"},
		keys: map[string]containers.Credential{private: {Password: "s3cret"}},
	}
}

// TestTwoUsers: an image that was fetched with a credential may be used only by users with a
// credential that the registry accepts, also after a restart, and a public image by everybody.
func TestTwoUsers(t *testing.T) {
	ctx, r, v := t.Context(), newRegistry(), values{}
	p := r.puller(v)
	err := p.Pull(ctx, ann, private, nil)
	if missing := (*MissingError)(nil); !errors.As(err, &missing) || !strings.Contains(err.Error(), "docker login reg.example:5000") {
		t.Fatalf("without a credential: %v", err)
	}
	if err := p.Pull(ctx, ann, "nosuch.example/x:1", nil); err == nil || strings.Contains(err.Error(), "login") {
		t.Fatalf("a registry that nobody has: %v", err)
	}
	if err := p.Pull(ctx, ann, private, with("docker.io", "ann", "s3cret")); err == nil {
		t.Fatal("the credential of another registry was taken")
	}
	if err := p.Pull(ctx, ann, private, with("reg.example:5000", "ann", "s3cret")); err != nil {
		t.Fatal(err)
	}
	p = r.puller(v) // the daemon restarts
	img, _ := r.Image(ctx, private)
	may := func(uid int, ref string, by Credentials) error { t.Helper(); return p.May(ctx, uid, ref, img, by) }
	for _, row := range []struct {
		uid  int
		ref  string
		by   Credentials
		want string
	}{
		{ann, private, nil, ""},
		{root, private, nil, ""},
		{bob, private, nil, "log in with `docker login reg.example:5000`"},
		{bob, private, with("reg.example:5000", "bob", "guess"), "does not give it to you: wrong password"},
		{bob, privateID, nil, "name it by its registry"},
		{bob, private, with("reg.example:5000", "bob", "s3cret"), ""},
		{bob, private, nil, ""},
		{bob, privateID, nil, ""},
		{1003, "other-name", nil, "is private"}, // a second name of it on this machine
	} {
		err := may(row.uid, row.ref, row.by)
		denied := (*DeniedError)(nil)
		if row.want == "" && err != nil || row.want != "" && (!errors.As(err, &denied) || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%d uses %s: %v, want %q", row.uid, row.ref, err, row.want)
		}
	}
	if text := string(v[storeKey]); strings.Contains(text, "s3cret") {
		t.Errorf("a password is stored: %s", text)
	}

	// The registry makes it public: the next request opens it for all.
	delete(r.keys, private)
	if err := may(1003, private, nil); err != nil {
		t.Error(err)
	}
	if p.Restricts() {
		t.Error("an image that anybody gets is still restricted")
	}
}

// TestEverybody: images that were loaded, or that the registry gives to anybody, may be used by
// everybody, even if the fetching user has a credential.
func TestEverybody(t *testing.T) {
	ctx, r := t.Context(), newRegistry()
	p := r.puller(values{})
	if err := p.Pull(ctx, ann, public, with("reg.example:5000", "ann", "s3cret")); err != nil {
		t.Fatal(err)
	}
	r.here[private] = privateID // by docker load
	if err := p.Pull(ctx, ann, private, with("reg.example:5000", "ann", "s3cret")); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{public, private, "loaded"} {
		img, _ := r.Image(ctx, ref)
		if err := p.May(ctx, bob, ref, img, nil); err != nil {
			t.Error(err)
		}
	}
	if p.Restricts() {
		t.Error("an image is restricted")
	}
}

// TestAway: while the engine does not answer, nothing is decided.
func TestAway(t *testing.T) {
	ctx, r := t.Context(), newRegistry()
	p := r.puller(values{})
	if err := p.Pull(ctx, ann, private, with("reg.example:5000", "ann", "s3cret")); err != nil {
		t.Fatal(err)
	}
	img, _ := r.Image(ctx, private)
	r.away = true
	if err := p.May(ctx, bob, private, img, nil); !errors.Is(err, containers.ErrUnavailable) {
		t.Error(err)
	}
	if err := p.Check(ctx, bob, "not-here", nil); err != nil {
		t.Error(err)
	}
}

// TestKept: a credential is kept for the tasks that need it, and is removed when they have
// ended.
func TestKept(t *testing.T) {
	p := newRegistry().puller(values{})
	open := map[int64]bool{1: true, 2: true, 3: true}
	is := func(task int64) bool { return open[task] }
	p.Keep([]int64{1, 2}, with("a", "u", "p"), is)
	p.Drop(1)
	delete(open, 2)
	p.Keep([]int64{3}, with("b", "u", "p"), is)
	p.Keep([]int64{4}, nil, is)
	for task, want := range map[int64]int{1: 0, 2: 0, 3: 1, 4: 0} {
		if got := len(p.Of(task)); got != want {
			t.Errorf("task %d has %d credentials, want %d", task, got, want)
		}
	}
	for _, text := range []string{fmt.Sprint(p.Of(3)), fmt.Sprintf("%+v", p.Of(3)), fmt.Sprintf("%#v", p.Of(3)["b"])} {
		if strings.Contains(text, "p:") || strings.Contains(text, `"p"`) || strings.Contains(text, "{u") {
			t.Errorf("printed as %s", text)
		}
	}
}
