package containerstest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"carma/containers"
)

// fakeContainer is guarded by its engine's mutex, channels included.
type fakeContainer struct {
	engine *Fake
	id     string
	image  *Image
	spec   containers.Spec

	state    containers.State
	exit     containers.Exit
	log      []entry
	bytes    int64 // of log
	dropped  int   // entries that came before those of log
	writers  [2]*lineWriter
	stop     context.CancelFunc // the stop signal
	killed   chan struct{}
	finished chan struct{} // closed when the container has ended
	removed  bool
	gone     bool          // beforeGone was called
	number   int           // of how many were made
	changed  chan struct{} // closed and replaced at every change
}

func newContainer(f *Fake, id string, img *Image, spec containers.Spec) *fakeContainer {
	spec.Labels = cloneLabels(spec.AllLabels(), img.Labels)
	return &fakeContainer{
		engine: f, id: id, image: img, spec: spec, state: containers.StateCreated,
		killed: make(chan struct{}), finished: make(chan struct{}), changed: make(chan struct{}),
	}
}

// cloneLabels adds the image's labels, as engines do.
func cloneLabels(own, image map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range image {
		out[k] = v
	}
	for k, v := range own {
		out[k] = v
	}
	return out
}

// check refuses what an engine refuses.
func check(spec containers.Spec, sources bool) error {
	if !validName.MatchString(spec.Name) {
		return fmt.Errorf("container name %q", spec.Name)
	}
	if spec.WorkDir != "" && !filepath.IsAbs(spec.WorkDir) {
		return fmt.Errorf("working directory %q is not absolute", spec.WorkDir)
	}
	for _, m := range spec.Mounts {
		if !filepath.IsAbs(m.Target) || m.Target == "/" {
			return fmt.Errorf("mount target %q", m.Target)
		}
		if _, err := os.Stat(m.Source); sources && err != nil {
			return fmt.Errorf("mount source: %w", err)
		}
	}
	return nil
}

var (
	validName   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)
	numericUser = regexp.MustCompile(`^\d*(:\d+)?$`)
)

// resolve fills in what the image gives.
func (c *fakeContainer) resolve() containers.Spec {
	s := c.spec
	if len(s.Entrypoint) == 0 {
		s.Entrypoint = c.image.Entrypoint
		if len(s.Command) == 0 {
			s.Command = c.image.Command
		}
	}
	if s.User == "" {
		s.User = c.image.User
	}
	if s.WorkDir == "" {
		s.WorkDir = c.image.WorkDir
	}
	gpus := "void"
	if len(s.GPUs) > 0 {
		gpus = strings.Join(s.GPUs, ",")
	}
	s.Env = append(slices.Concat(c.image.Env, s.Env), "NVIDIA_VISIBLE_DEVICES="+gpus) // the last one counts
	return s
}

// Attached is what the container was given, unless [Fake.Misattach] was called.
func (f *Fake) Attached(ctx context.Context, id string) (containers.Attachment, error) {
	if _, err := f.call(ctx, OpAttached); err != nil {
		return containers.Attachment{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.get("look at", id)
	if err != nil {
		return containers.Attachment{}, err
	}
	if f.misattach != "" {
		return containers.Attachment{Visible: f.misattach}, nil
	}
	env := c.resolve().Env
	return containers.Attachment{Visible: strings.TrimPrefix(env[len(env)-1], "NVIDIA_VISIBLE_DEVICES=")}, nil
}

// Misattach makes containers get other GPUs than they were given from now on;
// empty: the right ones.
func (f *Fake) Misattach(visible string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.misattach = visible
}
