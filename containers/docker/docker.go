// Package docker implements [containers.Driver] on the Docker engine, from version 20.10
// on. It speaks the engine's API through the moby client and agrees on the API version at
// the first request.
//
// It keeps no record of containers: a new process gets the containers of an old one from
// the engine.
package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"carma/containers"
)

// Options configure the driver.
type Options struct {
	// Host is the engine's address, by default DOCKER_HOST and its companion variables,
	// or the local socket.
	Host string
	// Network is the containers' network, or empty for the engine's default. The networks of
	// the host and of other containers are refused.
	Network string
	// Init is the path of the program carma-init. ParkDir is an absolute folder of this
	// driver. The engine must see both under these paths. If either is empty, containers
	// cannot be parked.
	Init, ParkDir string
}

// Driver talks to one Docker engine. It is safe for concurrent use.
//
// Its parts are responsible for one kind of object each: images, the networks and volumes
// of suites, parked containers, the bridge and sessions with programs.
type Driver struct {
	*engine
	*images
	*hosting
	*parking
	*bridge
	*sessions

	opts Options
}

// engine keeps the connection with the engine.
type engine struct {
	address string // as in [Options].Host
	conn    atomic.Pointer[connection]
	// starting contains a *sync.Mutex per container id, because two concurrent Starts could
	// run a short container twice.
	starting sync.Map
}

// connection is a client, with a flag that is set once the API version is negotiated.
type connection struct {
	cli        *client.Client
	negotiated atomic.Bool
}

var (
	_ containers.Driver    = (*Driver)(nil)
	_ containers.Parker    = (*Driver)(nil)
	_ containers.Checker   = (*Driver)(nil)
	_ containers.Ender     = (*Driver)(nil)
	_ containers.Terminals = (*Driver)(nil)
)

// New returns a driver. It does not talk to the engine: [Driver.Ping] checks whether it
// answers. An error means wrong options.
func New(opts Options) (*Driver, error) {
	if err := checkNetwork(opts.Network); err != nil {
		return nil, err
	}
	e := &engine{address: opts.Host}
	c, err := e.connect()
	if err != nil {
		return nil, err
	}
	e.conn.Store(c)
	return &Driver{
		engine: e, images: &images{e}, hosting: &hosting{e}, sessions: &sessions{e}, opts: opts,
		parking: &parking{e: e, init: opts.Init, dir: opts.ParkDir}, bridge: &bridge{e: e, network: opts.Network},
	}, nil
}

func (e *engine) connect() (*connection, error) {
	opts := []client.Opt{client.FromEnv}
	if e.address != "" {
		opts = append(opts, client.WithHost(e.address))
	}
	cli, err := client.New(opts...)
	if err != nil {
		return nil, fmt.Errorf("docker address: %w", err)
	}
	return &connection{cli: cli}, nil
}

// client returns a client that has negotiated an API version. Otherwise a request during
// an engine's restart would use the client's newest version, and the engine would refuse
// it as invalid.
func (e *engine) client(ctx context.Context) (*client.Client, error) {
	c := e.conn.Load()
	if c.negotiated.Load() {
		return c.cli, nil
	}
	if _, err := c.cli.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %s", containers.ErrUnavailable, containers.CleanMessage(err.Error()))
	}
	c.negotiated.Store(true)
	return c.cli, nil
}

// renew drops the API version after the engine was replaced by one that does not support
// it. The next request negotiates it again.
func (e *engine) renew(cli *client.Client) {
	old := e.conn.Load()
	if old.cli != cli {
		return // another request was faster
	}
	if c, err := e.connect(); err == nil && e.conn.CompareAndSwap(old, c) {
		_ = cli.Close()
	}
}

// Name returns "docker".
func (d *Driver) Name() string { return "docker" }

// endingAfter is the longest time that an engine may take to answer a new connection.
// With systemd socket activation, connections wait for the next engine.
const endingAfter = 2 * time.Second

// Ending checks with a new connection whether dockerd is shutting down. dockerd first
// stops listening, then ends its containers, and answers old connections until it has
// finished.
func (e *engine) Ending(ctx context.Context) bool {
	c, err := e.connect()
	if err != nil {
		return false // a wrong address shows nothing about the engine
	}
	defer func() { _ = c.cli.Close() }()
	asking, cancel := context.WithTimeout(ctx, endingAfter)
	defer cancel()
	_, err = c.cli.Ping(asking, client.PingOptions{})
	return err != nil && ctx.Err() == nil
}

// Ping asks the engine for its version and runtimes.
func (e *engine) Ping(ctx context.Context) (containers.Engine, error) {
	cli, err := e.client(ctx)
	if err != nil {
		return containers.Engine{}, fmt.Errorf("ping docker: %w", err)
	}
	res, err := cli.Info(ctx, client.InfoOptions{})
	if err != nil {
		err = e.fail(ctx, cli, "ping docker", err)
		if !errors.Is(err, containers.ErrUnavailable) && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", containers.ErrUnavailable, err)
		}
		return containers.Engine{}, err
	}
	out := containers.Engine{Version: res.Info.ServerVersion, APIVersion: cli.ClientVersion(), CDIDirs: res.Info.CDISpecDirs, Root: res.Info.DockerRootDir, CgroupDriver: res.Info.CgroupDriver}
	for name := range res.Info.Runtimes {
		out.Runtimes = append(out.Runtimes, name)
	}
	slices.Sort(out.Runtimes)
	return out, nil
}

// Address returns the address at which the engine is expected.
func (e *engine) Address() string { return e.conn.Load().cli.DaemonHost() }

// Advice returns help for a Docker engine that does not answer.
func (d *Driver) Advice() containers.Advice {
	return containers.Advice{
		Service: "docker", Program: "dockerd", Package: "docker.io", Setting: "docker-host", Group: "docker", Images: "docker load -i FILE and docker images",
	}
}

// Close drops idle connections.
func (e *engine) Close() error { return e.conn.Load().cli.Close() }
