// Package simgpus is a DRA driver for simulated GPUs, for tests and demos of a cluster. It
// publishes a node's simulated GPUs, whose memory many claims may share, and mounts in a pod
// the files that it needs to use them. NVIDIA's driver does the same for real GPUs.
//
// A kubelet finds the driver by a socket in its folder for plugins, and asks for its services.
// It calls the driver before it starts the first container of a pod with a claim, and after the
// last container has ended.
package simgpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	resourcev1 "k8s.io/api/resource/v1"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"carma/containers"
	"carma/containers/kubernetes"
)

// Options configure a [Plugin].
type Options struct {
	// Cluster is the driver that publishes the GPUs.
	Cluster *kubernetes.Driver
	// Node is the name of this machine in the cluster.
	Node string
	// UUIDs lists the node's simulated GPUs. All have this model and this many bytes of memory.
	UUIDs []string
	Model string
	Bytes int64
	// Kubelet is the kubelet's folder, usually /var/lib/kubelet. CDI is a folder in which the
	// node's container runtime searches CDI files.
	Kubelet, CDI string
	// Mounts and Env give each pod with a GPU the simulated server's socket and the path of the
	// socket.
	Mounts []containers.Mount
	Env    []string // KEY=value
}

// Plugin is the running driver. Its methods may be called concurrently.
type Plugin struct {
	dra.UnimplementedDRAPluginServer
	registration.UnimplementedRegistrationServer

	opts  Options
	slice resourcev1.ResourceSlice
	serve errgroup.Group
	stop  []func()

	first   sync.Once
	offered chan struct{} // closed when the GPUs are first published
}

// Start serves the kubelet until [Plugin.Close]. The driver publishes its GPUs each time the
// kubelet has registered it. Before, the kubelet could prepare no claim, and a restarted
// kubelet deletes the slices of drivers that have not registered yet.
func Start(ctx context.Context, opts Options) (*Plugin, error) {
	p := &Plugin{opts: opts, slice: kubernetes.Slice(opts.Node, opts.Model, opts.UUIDs, opts.Bytes), offered: make(chan struct{})}
	folder := filepath.Join(opts.Kubelet, "plugins", kubernetes.SimulatedDriver)
	for _, dir := range []string{folder, filepath.Dir(p.registrar()), opts.CDI} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, err
		}
	}
	service := func(s *grpc.Server) { dra.RegisterDRAPluginServer(s, p) }
	err := p.listen(p.socket(), service)
	// This socket comes last, because the kubelet sends claims once it exists.
	if err == nil {
		err = p.listen(p.registrar(), func(s *grpc.Server) { registration.RegisterRegistrationServer(s, p) })
	}
	if err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

// Offered is closed when the kubelet has registered the driver and the GPUs are published.
func (p *Plugin) Offered() <-chan struct{} { return p.offered }

func (p *Plugin) socket() string {
	return filepath.Join(p.opts.Kubelet, "plugins", kubernetes.SimulatedDriver, "dra.sock")
}

func (p *Plugin) registrar() string {
	return filepath.Join(p.opts.Kubelet, "plugins_registry", kubernetes.SimulatedDriver+"-reg.sock")
}

// listen serves one of the two services on its socket.
func (p *Plugin) listen(socket string, register func(*grpc.Server)) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	register(server)
	p.serve.Go(func() error { return server.Serve(l) })
	p.stop = append(p.stop, server.Stop)
	return nil
}

// Close withdraws the GPUs. Pods that use some keep them.
func (p *Plugin) Close(ctx context.Context) error {
	for i := len(p.stop) - 1; i >= 0; i-- {
		p.stop[i]()
	}
	return errors.Join(p.serve.Wait(), p.opts.Cluster.Withdraw(ctx, p.slice.Name))
}

// GetInfo describes the plugin to the kubelet.
func (p *Plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.DRAPlugin, Name: kubernetes.SimulatedDriver, Endpoint: p.socket(), SupportedVersions: []string{dra.DRAPluginService},
	}, nil
}

// NotifyRegistrationStatus publishes the GPUs if the kubelet has registered the driver. A
// kubelet that refuses the driver, or gets an error here, registers it again later.
func (p *Plugin) NotifyRegistrationStatus(ctx context.Context, r *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if r.PluginRegistered {
		if err := p.opts.Cluster.Offer(ctx, p.slice); err != nil {
			return nil, err
		}
		p.first.Do(func() { close(p.offered) })
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// NodePrepareResources writes a CDI file per claim. It may be repeated.
func (p *Plugin) NodePrepareResources(ctx context.Context, r *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	out := &dra.NodePrepareResourcesResponse{Claims: map[string]*dra.NodePrepareResourceResponse{}}
	for _, claim := range r.Claims {
		devices, err := p.prepare(ctx, claim)
		out.Claims[claim.Uid] = &dra.NodePrepareResourceResponse{Devices: devices}
		if err != nil {
			out.Claims[claim.Uid] = &dra.NodePrepareResourceResponse{Error: err.Error()}
		}
	}
	return out, nil
}

func (p *Plugin) prepare(ctx context.Context, claim *dra.Claim) ([]*dra.Device, error) {
	given, err := p.opts.Cluster.Given(ctx, kubernetes.SimulatedDriver, claim.Namespace, claim.Name, claim.Uid)
	if err != nil {
		return nil, err
	}
	if err := p.write(claim.Uid); err != nil {
		return nil, err
	}
	var devices []*dra.Device
	for i, g := range given {
		d := &dra.Device{RequestNames: []string{g.Request}, PoolName: g.Pool, DeviceName: g.Device}
		if g.Share != "" {
			d.ShareId = &g.Share
		}
		if i == 0 { // a pod gets the same files for all its GPUs
			d.CdiDeviceIds = []string{kind + "=" + claim.Uid}
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// kind is the CDI kind of a claim for simulated GPUs.
const kind = kubernetes.SimulatedDriver + "/claim"

func (p *Plugin) file(uid string) string {
	return filepath.Join(p.opts.CDI, strings.ReplaceAll(kind, "/", "-")+"-"+uid+".json")
}

// write makes a claim's CDI file atomically.
func (p *Plugin) write(uid string) error {
	mounts := []map[string]any{}
	for _, m := range p.opts.Mounts {
		options := []string{"rbind", "rw"}
		if m.ReadOnly {
			options = []string{"rbind", "ro"}
		}
		mounts = append(mounts, map[string]any{"hostPath": m.Source, "containerPath": m.Target, "options": options})
	}
	edits := map[string]any{"env": append([]string{"CARMA_CLAIM=" + uid}, p.opts.Env...)}
	if len(mounts) > 0 {
		edits["mounts"] = mounts
	}
	b, err := json.Marshal(map[string]any{
		"cdiVersion": "0.6.0", "kind": kind,
		"devices": []map[string]any{{"name": uid, "containerEdits": edits}},
	})
	if err != nil {
		return err
	}
	part := p.file(uid) + ".part"
	if err := os.WriteFile(part, b, 0o600); err != nil {
		return err
	}
	return os.Rename(part, p.file(uid))
}

// NodeUnprepareResources removes the files. It may be repeated.
func (p *Plugin) NodeUnprepareResources(_ context.Context, r *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	out := &dra.NodeUnprepareResourcesResponse{Claims: map[string]*dra.NodeUnprepareResourceResponse{}}
	for _, claim := range r.Claims {
		out.Claims[claim.Uid] = &dra.NodeUnprepareResourceResponse{}
		if err := os.Remove(p.file(claim.Uid)); err != nil && !errors.Is(err, os.ErrNotExist) {
			out.Claims[claim.Uid].Error = fmt.Sprintf("remove the CDI file: %v", err)
		}
	}
	return out, nil
}
