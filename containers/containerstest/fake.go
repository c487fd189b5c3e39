// Package containerstest has a container engine in memory for tests, [Fake], and
// the test suite of all drivers, [Suite].
package containerstest

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"carma/containers"
)

// Script is the program of a fake image. It returns the exit code. ctx ends when the
// container is asked to stop. p.Killed is closed when the container is killed; the script
// must then return soon, because a goroutine cannot be killed. Output and exit code after
// a kill are lost.
type Script func(ctx context.Context, p *Process) int

// Process is a script's view of its container.
type Process struct {
	// Spec is the container's spec with the image's defaults filled in.
	Spec           containers.Spec
	Stdout, Stderr io.Writer
	// Killed is closed when the container is killed.
	Killed <-chan struct{}

	screen *screen
}

// Stdin returns the program's input. A program without input gets an input that ends at
// once.
func (p *Process) Stdin() io.Reader {
	if p.screen == nil || p.screen.input == nil {
		return strings.NewReader("")
	}
	return p.screen.input
}

// Size returns the size of the program's terminal and a channel that is closed when it
// changes, or false if it has no terminal.
func (p *Process) Size() (size containers.Size, changed <-chan struct{}, ok bool) {
	return p.screen.Size()
}

// Out prints a line to standard output.
func (p *Process) Out(format string, args ...any) { fmt.Fprintf(p.Stdout, format+"\n", args...) }

// Err prints a line to standard error.
func (p *Process) Err(format string, args ...any) { fmt.Fprintf(p.Stderr, format+"\n", args...) }

// Image is an image of the [Fake].
type Image struct {
	Labels     map[string]string
	User       string
	WorkDir    string
	Entrypoint []string
	Command    []string
	Env        []string
	// Run is the program, or nil to exit with 0 at once.
	Run Script
	// Exec is the program of [Fake.Exec], or nil to use Run.
	Exec Script
	// Programs lists the image's executables, or is nil if every program exists.
	Programs []string
	// Remote is set if the image must be pulled first.
	Remote bool
	// Key is the credential that its registry requires, or zero if none.
	Key containers.Credential
}

// Fake is an engine and its driver in one. Its containers are goroutines. As with a real
// engine, they continue when the driver is closed. The methods also work after Close, so
// that a test of a restarted daemon can pass the same Fake to the new one. All methods
// are safe for concurrent use.
type Fake struct {
	// CheckMounts makes Create refuse mounts whose source does not exist.
	// Set it before use.
	CheckMounts bool

	mu         sync.Mutex
	images     map[string]*Image
	containers map[string]*fakeContainer // by id
	order      []string                  // ids, oldest first
	made       int
	clock      time.Time     // of the newest log entry or event
	down       chan struct{} // closed while the engine is down
	frozen     chan struct{} // closed when the engine works again, or nil if it does not hang
	faults     map[Op][]fault
	broken     map[Op]error
	calls      map[Op]int
	misattach  string
	beforeGone func(ctx context.Context, id string)
	scripts    sync.WaitGroup
}

var (
	_ containers.Driver    = (*Fake)(nil)
	_ containers.Parker    = (*Fake)(nil)
	_ containers.Resizer   = (*Fake)(nil)
	_ containers.Publisher = (*Fake)(nil)
	_ containers.Importer  = (*Fake)(nil)
	_ containers.Terminals = (*Fake)(nil)
)

// NewFake returns an engine without images.
func NewFake() *Fake {
	return &Fake{
		images:     map[string]*Image{},
		containers: map[string]*fakeContainer{},
		down:       make(chan struct{}),
		faults:     map[Op][]fault{},
		calls:      map[Op]int{},
	}
}

// AddImage puts an image on the machine, or into the registry if it is Remote.
func (f *Fake) AddImage(ref string, img Image) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.images[ref] = &img
}

// Shutdown kills all containers and returns when their goroutines have ended.
func (f *Fake) Shutdown() {
	f.mu.Lock()
	for _, c := range f.containers {
		c.end(containers.Exit{Code: 137})
	}
	f.mu.Unlock()
	f.scripts.Wait()
}

// Name returns "fake".
func (f *Fake) Name() string { return "fake" }

// Ping answers unless the engine is down.
func (f *Fake) Ping(ctx context.Context) (containers.Engine, error) {
	if _, err := f.call(ctx, OpPing); err != nil {
		return containers.Engine{}, err
	}
	return containers.Engine{Version: "fake", APIVersion: "0", Runtimes: []string{"fake"}}, nil
}

// Image looks up an image added with [Fake.AddImage].
func (f *Fake) Image(ctx context.Context, ref string) (containers.Image, error) {
	if _, err := f.call(ctx, OpImage); err != nil {
		return containers.Image{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	img := f.images[ref]
	if img == nil || img.Remote {
		return containers.Image{}, fmt.Errorf("look up image %q: %w", ref, containers.ErrNotFound)
	}
	return containers.Image{ID: "sha256:" + ref, Labels: maps.Clone(img.Labels), User: img.User, Env: slices.Clone(img.Env), Entrypoint: slices.Clone(img.Entrypoint), Command: slices.Clone(img.Command)}, nil
}

// Pull makes a remote image local.
func (f *Fake) Pull(ctx context.Context, ref string, by containers.Credential) error {
	lost, err := f.call(ctx, OpPull)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	img := f.images[ref]
	if img == nil {
		return fmt.Errorf("pull image %q: %w", ref, containers.ErrNotFound)
	}
	if img.Key != (containers.Credential{}) && by != img.Key {
		return fmt.Errorf("pull image %q: unauthorized", ref)
	}
	img.Remote = false
	return lost
}

// Import adds a Remote image of [Fake.AddImage] to the machine, or else an image whose
// program ends at once. The content of the file is only the image's name.
func (f *Fake) Import(ctx context.Context, from io.Reader) ([]string, error) {
	if _, err := f.call(ctx, OpImport); err != nil {
		return nil, err
	}
	name, err := nameIn(from)
	if err != nil {
		return nil, fmt.Errorf("import images: %w: %w", containers.ErrInvalid, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.images[name] == nil {
		f.images[name] = &Image{}
	}
	f.images[name].Remote = false
	return []string{name}, nil
}

// nameIn returns the name of the image in a tar file of docker save.
func nameIn(from io.Reader) (string, error) {
	for files := tar.NewReader(from); ; {
		file, err := files.Next()
		if err != nil {
			return "", err
		}
		if file.Name != "manifest.json" {
			continue
		}
		var list []struct{ RepoTags []string }
		if err := json.NewDecoder(files).Decode(&list); err != nil || len(list) != 1 || len(list[0].RepoTags) != 1 {
			return "", fmt.Errorf("its manifest names not one image: %w", err)
		}
		return list[0].RepoTags[0], nil
	}
}

// Create makes a container.
func (f *Fake) Create(ctx context.Context, spec containers.Spec) (string, error) {
	lost, err := f.call(ctx, OpCreate)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	what := fmt.Sprintf("create container %q", spec.Name)
	if err := spec.Check(f); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	for id, c := range f.containers {
		if c.spec.Name != spec.Name {
			continue
		}
		if err := spec.Recognize(id, c.spec.Labels); err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		return id, lost
	}
	img := f.images[spec.Image]
	if img == nil || img.Remote {
		return "", fmt.Errorf("%s: image %q: %w", what, spec.Image, containers.ErrNotFound)
	}
	if err := check(spec, f.CheckMounts); err != nil {
		return "", fmt.Errorf("%s: %w: %w", what, containers.ErrInvalid, err)
	}
	f.made++
	id := fmt.Sprintf("fake%08d", f.made)
	f.containers[id] = newContainer(f, id, img, spec)
	f.containers[id].number = f.made
	f.order = append(f.order, id)
	if lost != nil {
		return "", lost
	}
	return id, nil
}

// List returns the containers with the labels, newest first.
func (f *Fake) List(ctx context.Context, labels map[string]string) ([]containers.Container, error) {
	if _, err := f.call(ctx, OpList); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []containers.Container{}
	for _, id := range slices.Backward(f.order) {
		if c := f.containers[id]; hasAll(c.spec.Labels, labels) {
			out = append(out, containers.Container{
				ID: id, Name: c.spec.Name, State: c.state, Labels: maps.Clone(c.spec.Labels),
			})
		}
	}
	return out, nil
}

// Close does nothing: the containers keep running.
func (f *Fake) Close() error {
	_, err := f.call(context.Background(), OpClose)
	return err
}

// get finds a container. The caller holds f.mu.
func (f *Fake) get(what, id string) (*fakeContainer, error) {
	if c := f.containers[id]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%s container %s: %w", what, id, containers.ErrNotFound)
}

// now returns strictly increasing times, so a time is a position in a log. The
// caller holds f.mu.
func (f *Fake) now() time.Time {
	t := time.Now().Round(0).UTC()
	if !t.After(f.clock) {
		t = f.clock.Add(1)
	}
	f.clock = t
	return t
}

func hasAll(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// env looks up a variable. If it is set twice, the last value counts.
func env(list []string, key string) string {
	for _, kv := range slices.Backward(list) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}
