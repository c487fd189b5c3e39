// Package containerd implements [containers.Driver] on containerd, from version 1.6 on,
// with its runc shim.
//
// Like every driver it keeps no record of its own. containerd forgets that a start has
// begun, why it failed, and how the container ended. So the driver writes these facts
// into the container's labels before it acts (see [record]). They survive a crash of this
// process, of containerd or of the machine.
//
// containerd keeps no output. Each container has a logger process, which writes the
// output into the driver's folder (see package logfile). The logger is this same program,
// called with [LogCommand].
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

// runtimeName is containerd's shim for runc and its replacements.
const runtimeName = "io.containerd.runc.v2"

// Options configure the driver.
type Options struct {
	// Address is the path of containerd's socket, by default CONTAINERD_ADDRESS, else
	// [DefaultAddress].
	Address string
	// Namespace contains carma's images and containers, or is empty for [DefaultNamespace].
	Namespace string
	// Snapshotter makes the containers' root file systems. The default is overlayfs.
	Snapshotter string
	// Dir is an absolute folder for the containers' output. It must exist as long as the
	// containers.
	Dir string
	// Logger is a program that calls [RunLogger] if its first argument is [LogCommand].
	// The default is this program.
	Logger string
	// Init is the path of the program carma-init. If it is empty, no container can have
	// carma-init as its first process.
	Init string
	// Network is the name of a CNI network, or "none". By default it is the first configured
	// network, or none. The host's network is refused.
	Network string
	// CNIConf and CNIBin are CNI's folders for networks and plugins, by default
	// /etc/cni/net.d and /opt/cni/bin.
	CNIConf, CNIBin string
	// CDIDirs lists the folders of CDI files, or is nil for [cdi.Dirs].
	CDIDirs []string
	// NVIDIARuntime is the path of nvidia-container-runtime. By default it is looked up in
	// PATH.
	NVIDIARuntime string
}

// Driver talks to one containerd. It is safe for concurrent use.
type Driver struct {
	opts    Options
	cli     *client.Client
	network *network
	// busy contains a *sync.Mutex per container, which serializes operations of several
	// steps.
	busy sync.Map
	// whole contains the ids of the containers that this process has created completely in
	// the kernel.
	whole sync.Map
	// doors contains a *doors for each container with open ports.
	doors sync.Map
	// life ends when the driver is closed. commands contains the commands whose output the
	// driver reads.
	life     context.Context
	end      context.CancelFunc
	commands sync.WaitGroup
	// tookOver contains the ids of the containers that were searched for commands of earlier
	// drivers.
	tookOver sync.Map
	// beforeGone, if not nil, is called before a task is deleted.
	beforeGone func(ctx context.Context, id string)
}

var (
	_ containers.Driver    = (*Driver)(nil)
	_ containers.Parker    = (*Driver)(nil)
	_ containers.Near      = (*Driver)(nil)
	_ containers.Terminals = (*Driver)(nil)
)

// New returns a driver. It does not talk to containerd: [Driver.Ping] checks whether it
// answers. An error means wrong options.
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
			// The daemon retries at short intervals and needs a quick answer. The client's own
			// dialer would wait for the socket to appear.
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
	d := &Driver{opts: opts, cli: cli, network: network}
	d.life, d.end = context.WithCancel(context.Background())
	return d, nil
}

// Name returns "containerd".
func (d *Driver) Name() string { return "containerd" }

// Ping returns containerd's version and the ways to attach GPUs. The driver determines
// these itself, because containerd reports neither runtimes nor CDI.
func (d *Driver) Ping(ctx context.Context) (containers.Engine, error) {
	v, err := d.cli.Version(ctx)
	if err != nil {
		err = d.fail(ctx, "ping containerd", err)
		if !errors.Is(err, containers.ErrUnavailable) && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", containers.ErrUnavailable, err)
		}
		return containers.Engine{}, err
	}
	e := containers.Engine{Version: v.Version, APIVersion: "v1", Runtimes: []string{runtimeName}, CDIDirs: cdi.Dirs, CgroupDriver: "cgroupfs"}
	if d.opts.CDIDirs != nil {
		e.CDIDirs = d.opts.CDIDirs
	}
	if path, _ := d.nvidiaRuntime(); path != "" {
		e.Runtimes = append(e.Runtimes, "nvidia")
	}
	e.Notes = d.network.notes()
	return e, nil
}

// nvidiaRuntime returns the path of NVIDIA's runtime.
func (d *Driver) nvidiaRuntime() (string, error) {
	if d.opts.NVIDIARuntime != "" {
		return d.opts.NVIDIARuntime, nil
	}
	return exec.LookPath("nvidia-container-runtime")
}

// Address returns the path of containerd's socket.
func (d *Driver) Address() string { return d.opts.Address }

// Advice returns help for a containerd that does not answer.
func (d *Driver) Advice() containers.Advice {
	return containers.Advice{Service: "containerd", Program: "containerd", Package: "containerd runc", Setting: "containerd-address"}
}

// Close closes the connection and the ports; containers, and commands in them, keep
// running.
func (d *Driver) Close() error {
	d.end()
	d.commands.Wait()
	d.doors.Range(func(id, _ any) bool { d.closePorts(id.(string)); return true })
	return d.cli.Close()
}

// lock locks a container for the caller until it calls unlock.
func (d *Driver) lock(id string) (unlock func()) {
	mu, _ := d.busy.LoadOrStore(id, new(sync.Mutex))
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// dir returns the folder of a container's files.
func (d *Driver) dir(id string) string { return filepath.Join(d.opts.Dir, id) }

// SameFiles returns nil if containerd sees the same file systems as this process.
func (d *Driver) SameFiles() error { return containers.SameMounts(d.opts.Address) }
