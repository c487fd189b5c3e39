// Package containerd implements [containers.Driver] on containerd, from
// version 1.6 on, with its runc shim.
//
// Like any driver it keeps no record of its own. What containerd does not
// remember is written into the container's labels before it happens: that a
// start was begun, why it failed, how the container ended (see [record]). With
// that a container is found as it is after this process, containerd or the
// machine went down.
//
// containerd keeps no output: a process per container, this same program
// called with [LogCommand], writes it into the driver's folder (see package
// logfile).
package containerd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"carma/containers"
	"carma/containers/cdi"
)

// Defaults of [Options].
const (
	DefaultAddress   = "/run/containerd/containerd.sock"
	DefaultNamespace = "carma"
	defaultSnapshots = "overlayfs"
)

// runtimeName is containerd's shim for runc and for what replaces it.
const runtimeName = "io.containerd.runc.v2"

// Options are what the driver is configured with.
type Options struct {
	// Address is the path of containerd's socket; empty: CONTAINERD_ADDRESS,
	// else [DefaultAddress].
	Address string
	// Namespace holds our images and containers; empty: [DefaultNamespace].
	Namespace string
	// Snapshotter makes the containers' root file systems; empty: overlayfs.
	Snapshotter string
	// Dir is a folder for the containers' output, absolute. It has to last as
	// long as the containers.
	Dir string
	// Logger is a program that calls [RunLogger] when its first argument is
	// [LogCommand]; empty: this one.
	Logger string
	// Network is one of CNI's by name, or "none"; empty: the first that is
	// configured, else none. The host's is refused.
	Network string
	// CNIConf and CNIBin are CNI's folders; empty: /etc/cni/net.d, /opt/cni/bin.
	CNIConf, CNIBin string
	// CDIDirs are the folders of CDI files; nil: [cdi.Dirs].
	CDIDirs []string
	// NVIDIARuntime is the path of nvidia-container-runtime; empty: looked up
	// in PATH.
	NVIDIARuntime string
}

// Driver talks to one containerd. It is safe for concurrent use.
type Driver struct {
	opts    Options
	cli     *client.Client
	network *network
	// busy holds a *sync.Mutex per container: what is done in several steps is
	// done by one at a time.
	busy sync.Map
	// whole has the ids of the containers that this process has made in the
	// kernel, to the end.
	whole sync.Map
	// beforeGone is called before a task is deleted; nil: nothing is.
	beforeGone func(ctx context.Context, id string)
}

var (
	_ containers.Driver = (*Driver)(nil)
	_ containers.Parker = (*Driver)(nil)
	_ containers.Near   = (*Driver)(nil)
)

// New returns a driver. It does not talk to containerd: whether that answers
// is what [Driver.Ping] tells.
func New(opts Options) (*Driver, error) {
	for _, o := range []struct {
		field *string
		value string
	}{
		{&opts.Address, os.Getenv("CONTAINERD_ADDRESS")}, {&opts.Address, DefaultAddress},
		{&opts.Namespace, DefaultNamespace}, {&opts.Snapshotter, defaultSnapshots},
		{&opts.CNIConf, "/etc/cni/net.d"}, {&opts.CNIBin, "/opt/cni/bin"},
	} {
		if *o.field == "" {
			*o.field = o.value
		}
	}
	if !filepath.IsAbs(opts.Dir) {
		return nil, fmt.Errorf("containerd: folder %q for the output is not absolute", opts.Dir)
	}
	if opts.Logger == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("containerd: path of this program: %w", err)
		}
		opts.Logger = self
	}
	network, err := newNetwork(opts)
	if err != nil {
		return nil, err
	}
	cli, err := client.New(opts.Address, client.WithDefaultNamespace(opts.Namespace),
		client.WithExtraDialOpts([]grpc.DialOption{
			// The daemon asks again at short intervals and wants to know soon; the
			// client's own dialer waits for a socket to appear.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second},
				MinConnectTimeout: 5 * time.Second,
			}),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", opts.Address)
			}),
		}))
	if err != nil {
		return nil, fmt.Errorf("containerd address %s: %w", opts.Address, err)
	}
	return &Driver{opts: opts, cli: cli, network: network}, nil
}

// Name returns "containerd".
func (d *Driver) Name() string { return "containerd" }

// Ping asks containerd for its version and says what GPUs can be attached by:
// containerd itself knows neither runtimes nor CDI.
func (d *Driver) Ping(ctx context.Context) (containers.Engine, error) {
	v, err := d.cli.Version(ctx)
	if err != nil {
		err = d.fail(ctx, "ping containerd", err)
		if !errors.Is(err, containers.ErrUnavailable) && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", containers.ErrUnavailable, err)
		}
		return containers.Engine{}, err
	}
	e := containers.Engine{Version: v.Version, APIVersion: "v1", Runtimes: []string{runtimeName}, CDIDirs: cdi.Dirs}
	if d.opts.CDIDirs != nil {
		e.CDIDirs = d.opts.CDIDirs
	}
	if path, _ := d.nvidiaRuntime(); path != "" {
		e.Runtimes = append(e.Runtimes, "nvidia")
	}
	e.Notes = d.network.notes()
	return e, nil
}

// nvidiaRuntime is the path of NVIDIA's runtime.
func (d *Driver) nvidiaRuntime() (string, error) {
	if d.opts.NVIDIARuntime != "" {
		return d.opts.NVIDIARuntime, nil
	}
	return exec.LookPath("nvidia-container-runtime")
}

// Address is where containerd is expected.
func (d *Driver) Address() string { return d.opts.Address }

// Advice is for people whose containerd does not answer.
func (d *Driver) Advice() containers.Advice {
	return containers.Advice{Service: "containerd", Program: "containerd", Package: "containerd runc", Setting: "containerd-address"}
}

// Close closes the connection.
func (d *Driver) Close() error { return d.cli.Close() }

// lock makes a container this caller's until it calls the result.
func (d *Driver) lock(id string) (unlock func()) {
	mu, _ := d.busy.LoadOrStore(id, new(sync.Mutex))
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// dir is where a container's files are.
func (d *Driver) dir(id string) string { return filepath.Join(d.opts.Dir, id) }

// SameFiles is nil if containerd sees the file systems that this process sees.
func (d *Driver) SameFiles() error { return containers.SameMounts(d.opts.Address) }
