package containerd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/identifiers"
	"github.com/containerd/errdefs"

	"carma/containers"
	"carma/containers/containerd/logfile"
	"carma/containers/option"
	"carma/internal/failpoint"
)

// Create makes the container of spec. If a container with the same name and identity
// exists, Create returns its id. The id is the name, which is unique in containerd.
func (d *Driver) Create(ctx context.Context, spec containers.Spec) (string, error) {
	what := fmt.Sprintf("create container %q", spec.Name)
	if err := spec.Check(d); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if err := identifiers.Validate(spec.Name); err != nil {
		return "", fmt.Errorf("%s: %w: %w", what, containers.ErrInvalid, err)
	}
	defer d.lock(spec.Name)()
	for {
		have, err := d.cli.ContainerService().Get(ctx, spec.Name)
		switch err = native(err); {
		case errdefs.IsNotFound(err):
			if err := check(spec); err != nil {
				return "", fmt.Errorf("%s: %w: %w", what, containers.ErrInvalid, err)
			}
			err := d.create(ctx, spec)
			if errdefs.IsAlreadyExists(err) {
				continue // another process was faster
			}
			if err != nil {
				return "", d.fail(ctx, what, err)
			}
			return spec.Name, nil
		case err != nil:
			return "", d.fail(ctx, what, err)
		case have.Labels[labelRemoving] != "":
			if err := d.remove(ctx, spec.Name); err != nil {
				return "", d.fail(ctx, what, err)
			}
			continue
		}
		if err := spec.Recognize(spec.Name, have.Labels); err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		return spec.Name, nil
	}
}

// check refuses a spec from which no engine could make a container.
func check(spec containers.Spec) error {
	for _, m := range spec.Mounts {
		switch {
		case !path.IsAbs(m.Target) || path.Clean(m.Target) == "/":
			return fmt.Errorf("invalid mount: target %q is not an absolute path below /", m.Target)
		case !filepath.IsAbs(m.Source):
			return fmt.Errorf("invalid mount: source %q is not absolute", m.Source)
		}
		if _, err := os.Stat(m.Source); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("invalid mount: source %s does not exist", m.Source)
		}
	}
	for k := range spec.AllLabels() {
		if strings.HasPrefix(k, ownLabels) {
			return fmt.Errorf("label %s is the driver's own", k)
		}
	}
	return nil
}

// create makes a container that does not exist. Errors are containerd's, "already exists"
// if the container exists.
func (d *Driver) create(ctx context.Context, spec containers.Spec) error {
	img, err := d.find(ctx, spec.Image)
	if err != nil {
		return native(err)
	}
	if ok, err := img.IsUnpacked(ctx, d.opts.Snapshotter); err != nil {
		return native(err)
	} else if !ok {
		if err := img.Unpack(ctx, d.opts.Snapshotter); err != nil {
			return native(err)
		}
	}
	dir := d.dir(spec.Name)
	if err := d.makeFiles(dir, spec); err != nil {
		return err
	}
	failpoint.Hit("containerd-files-made")
	m := &maker{Driver: d, spec: spec, image: img, dir: dir}
	labels := spec.AllLabels()
	labels[labelDir] = dir
	labels[labelLog] = strconv.FormatInt(spec.LogBytes, 10)
	if talk := talkOf(spec); talk != logfile.TalkNone {
		labels[labelTalk] = string(talk)
	}
	if spec.Sandbox != nil {
		labels[labelSandbox] = "yes"
	}
	if len(spec.Ports) > 0 {
		labels[labelPorts] = showPorts(option.Each(spec.Ports, option.ParsePort))
	}
	runtime, err := d.runtime(spec)
	if err != nil {
		return err
	}
	stopWith := client.WithImageStopSignal(img, "SIGTERM")
	if spec.StopSignal != "" {
		stopWith = client.WithAdditionalContainerLabels(map[string]string{client.StopSignalLabel: spec.StopSignal})
	}
	_, err = d.cli.NewContainer(ctx, spec.Name,
		client.WithImage(img), client.WithSnapshotter(d.opts.Snapshotter),
		// The name has a random part, so that it cannot clash with the snapshot of an
		// unfinished create, which containerd removes.
		client.WithNewSnapshot(spec.Name+"-"+strings.ToLower(rand.Text()[:8]), img),
		client.WithContainerLabels(labels), stopWith,
		runtime, client.WithNewSpec(m.opts()...), m.keepFailure)
	failpoint.Hit("containerd-container-made")
	return native(err)
}

// makeFiles makes the folder of a container, with the files that are mounted into
// it.
func (d *Driver) makeFiles(dir string, spec containers.Spec) error {
	if err := os.RemoveAll(dir); err != nil { // left by an old container of this name
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if talkOf(spec) != logfile.TalkNone {
		if err := makeInput(dir); err != nil {
			return err
		}
	}
	host := hostname(spec)
	resolv := ""
	if spec.Sandbox == nil && !d.network.off() {
		resolv = resolvers()
	}
	for name, text := range map[string]string{
		"hostname": host + "\n",
		"hosts":    "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t" + host + "\n",
		"resolv":   resolv,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// hostname returns a container's own hostname, or its name on the engine in a form that
// the kernel accepts.
func hostname(spec containers.Spec) string {
	const limit = 63
	name := spec.Name
	if spec.Hostname != "" {
		return spec.Hostname
	}
	return strings.Trim(strings.ReplaceAll(name[:min(len(name), limit)], "_", "-"), "-.")
}

// resolvers returns the host's resolv.conf without servers on the host's loopback, which
// a container cannot reach.
func resolvers() string {
	b, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return ""
	}
	var keep strings.Builder
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" && (strings.HasPrefix(f[1], "127.") || f[1] == "::1") {
			continue
		}
		keep.WriteString(line)
	}
	return keep.String()
}
