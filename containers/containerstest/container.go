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
	"carma/containers/option"
)

// fakeContainer is a container of a [Fake]. The fake's mutex guards it and its channels.
type fakeContainer struct {
	engine *Fake
	id     string
	image  *Image
	spec   containers.Spec

	state    containers.State
	exit     containers.Exit
	log      []entry
	bytes    int64 // size of log
	dropped  int   // number of entries deleted before log
	writers  [2]*lineWriter
	screen   *screen
	stop     context.CancelFunc // sends the stop signal
	memory   []int64            // memory limits set while it ran
	cpus     []CPUs             // CPU limits set while it ran
	killed   chan struct{}
	finished chan struct{} // closed when the container has ended
	removed  bool
	gone     bool          // beforeGone was called
	number   int           // 1 for the first container that was made, and so on
	changed  chan struct{} // closed and replaced at every change
}

func newContainer(f *Fake, id string, img *Image, spec containers.Spec) *fakeContainer {
	spec.Labels = cloneLabels(spec.AllLabels(), img.Labels)
	return &fakeContainer{
		engine: f, id: id, image: img, spec: spec, state: containers.StateCreated,
		screen: newScreen(spec.Interactive, spec.TTY),
		killed: make(chan struct{}), finished: make(chan struct{}), changed: make(chan struct{}),
	}
}

// cloneLabels returns a container's labels with the image's added, as engines do.
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

// check refuses a spec as an engine would. sources requires that the sources of mounts
// exist.
func check(spec containers.Spec, sources bool) error {
	if !validName.MatchString(spec.Name) {
		return fmt.Errorf("container name %q", spec.Name)
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

// resolve fills in the image's defaults.
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
	var term []string
	if s.TTY {
		term = []string{"TERM=xterm"}
	}
	s.Env = append(slices.Concat(term, c.image.Env, s.Env), "NVIDIA_VISIBLE_DEVICES="+gpus) // the last one counts
	return s
}

// Attached returns the GPUs that the container was given, unless [Fake.Misattach]
// was called.
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

// Misattach makes containers get the wrong GPUs from now on, or the right ones again if
// visible is empty.
func (f *Fake) Misattach(visible string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.misattach = visible
}

// Supports returns all options.
func (f *Fake) Supports() containers.Support {
	return containers.Support{
		"WorkDir": nil, "ShmSize": nil, "Pids": nil, "Ulimits": nil, "Tmpfs": nil, "Init": nil, "IPC": nil,
		"Groups": nil, "Hostname": nil, "StopSignal": nil, "Ports": nil, "Devices": nil, "Interactive": nil, "TTY": nil,
	}
}

// Ports returns the ports that a running container asks for. Ports without a host port
// get one from 40000 on. Nothing is opened.
func (f *Fake) Ports(ctx context.Context, id string) (open []option.Port, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.get("ports of", id)
	if err != nil || c.state != containers.StateRunning {
		return nil, err
	}
	for i, p := range option.Each(c.spec.Ports, option.ParsePort) {
		if p.Host == 0 {
			p.Host = 40000 + 100*c.number + i
		}
		open = append(open, p)
	}
	return open, ctx.Err()
}
