// Package kubernetes runs containers as pods of a Kubernetes cluster. It makes no scheduling
// decision. A pod is pinned to the node of its GPUs, and a ResourceClaim allocates the memory
// of these GPUs. The cluster's scheduler only checks that the allocation is possible.
//
// A container is a pod and, if it has GPUs, a claim of the same name. Both exist until
// [Driver.Remove]. A finalizer keeps the pod, so that its exit code can be read even if
// somebody deletes it. A scheduling gate holds a pod that is not started. A pod's name contains
// task and attempt, and a pod runs at most once, so no attempt starts twice. A daemon that dies
// after it has made the pod, and before it has made the claim, leaves a gated pod. The next
// daemon makes the claim before it starts the pod. It reads the amount of memory from the
// annotation carma.dev/gpu-memory.
//
// # Requests
//
// A launch sends three requests: make the pod with its gate, make the claim, and remove the
// gate. A fourth request reads the output. Everything else comes from watches of pods, nodes,
// slices, claims and the agents' Leases. A claim is read only if its watch does not prove which
// GPUs this pod has. A pod is read after 20 s without an event, with at most ten such readings
// per second. Bodies and watches are protobuf. The claim is made with the finalizer that the
// scheduler would otherwise add by another request. The patch that removes the gate also drops
// the pod's managedFields, so that the cluster need not write them at each change. On 1,250
// fake nodes both together gave 119 pods a second in place of 90 (one run each, 2026-11-26).
//
// # Full namespaces
//
// If a ResourceQuota refuses a pod or claim, carma starts one task of the namespace at a time
// as a probe, after 5 s, then 10 s, then every 30 s, and 5 s after a task of the namespace has
// ended. The first probe that is not refused releases the other tasks. carma reads no quotas.
//
// # Jobs
//
// A claim has the name of its Job, because the pod's name is unknown when the claim gets its
// name. So a Job has one pod at a time. carma never deletes a Job. If the task ends before its
// Job, carma suspends the Job.
package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// Options configure a [Driver].
type Options struct {
	// Kubeconfig is the path of a file with the cluster's address and credentials. If empty, the
	// driver searches the same places as kubectl (KUBECONFIG, ~/.kube/config), and then uses the
	// service account of the pod that it runs in.
	Kubeconfig string
	// Namespace is the namespace of the daemon's Lease, and of pods and claims whose specs name no
	// other namespace. The default is the kubeconfig's namespace, or default.
	Namespace string
	// Namespaces lists the other namespaces in which pods may be made; see [Driver.Serves].
	// [manifest.AllNamespaces] stands for all namespaces.
	Namespaces []string
	// Audience is the audience that users' tokens must have. If empty, it is the apiserver's.
	Audience string
	// HostPaths lists the folders of the nodes that may be mounted, with all their subfolders.
	// They must have the same content on each node, as on a shared file system. If the list is
	// empty, no folder of a node can be mounted.
	HostPaths []string
	// StopGrace is the time between a pod's stop signal and its kill if its spec names
	// none. The default is [stopGrace].
	StopGrace time.Duration
	// ClaimPatience is the longest time that a started pod may wait for its GPUs, because another
	// claim may have allocated them in the meantime. The default is [claimPatience].
	ClaimPatience time.Duration
	// NodePatience is the longest time for which a node may do nothing for a pod that is assigned
	// to it. The default is [nodePatience].
	NodePatience time.Duration
}

// stopGrace is the default of [Options].StopGrace, and kubectl's.
const stopGrace = 30 * time.Second

// claimPatience is the default of [Options].ClaimPatience. The scheduler allocates in well
// under a second; the release of a claim whose attempt has just ended takes longer.
const claimPatience = 30 * time.Second

// nodePatience is the default of [Options].NodePatience. A kubelet makes a pod's sandbox and
// prepares its claim within seconds, and retries after a failure.
const nodePatience = 2 * time.Minute

// Driver is a [containers.Driver] for a Kubernetes cluster.
//
// Each embedded part handles one kind of request and owns the state for it.
type Driver struct {
	*view
	*jobs
	*logs
	*sessions
	*election
	*agents
	*reviews

	opts      Options
	c         *client
	watch     *podWatch
	claims    *claims
	manifests *manifest.Builder
	making    chan struct{} // semaphore of the pods that are being made
	fresh     sync.Map      // pods that Create made and that are not started yet, by id
}

var (
	_ containers.Driver  = (*Driver)(nil)
	_ containers.Advised = (*Driver)(nil)
	_ containers.Checker = (*Driver)(nil)
	_ containers.Aborter = (*Driver)(nil)
	_ containers.Jobber  = (*Driver)(nil)

	_ containers.Namespaced = (*Driver)(nil)
	_ containers.Reviewer   = (*Driver)(nil)
)

// New returns a driver. It sends nothing yet.
func New(opts Options) (*Driver, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = opts.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster is configured: %s", containers.CleanMessage(err.Error()))
	}
	namespace := opts.Namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil || namespace == "" {
			namespace = "default"
		}
	}
	return newDriver(opts, namespace, config)
}

func newDriver(opts Options, namespace string, config *rest.Config) (*Driver, error) {
	c, err := newClient(config, manifest.NewNamespaces(namespace, opts.Namespaces))
	if err != nil {
		return nil, fmt.Errorf("the cluster's configuration: %w", err)
	}
	if opts.ClaimPatience == 0 {
		opts.ClaimPatience = claimPatience
	}
	if opts.NodePatience == 0 {
		opts.NodePatience = nodePatience
	}
	if opts.StopGrace == 0 {
		opts.StopGrace = stopGrace
	}
	d := &Driver{opts: opts, c: c, watch: newPodWatch(c), view: &view{c: c}, making: make(chan struct{}, 16)}
	d.manifests = manifest.NewBuilder(c.ns, opts.StopGrace, opts.HostPaths)
	d.claims = &claims{c: c, view: d.view}
	d.jobs = &jobs{c: c, claims: d.claims}
	d.logs = &logs{c: c, watch: d.watch, nodePatience: opts.NodePatience}
	d.sessions = &sessions{c: c, watch: d.watch, logs: d.logs}
	d.election, d.agents, d.reviews = &election{c: c}, &agents{c: c}, &reviews{c: c, audience: opts.Audience}
	return d, nil
}

// Name returns "kubernetes".
func (d *Driver) Name() string { return "kubernetes" }

// Address returns the address of the apiserver. It implements [containers.Advised].
func (d *Driver) Address() string { return d.c.config.Host }

// Advice tells an administrator what to check if the cluster does not answer.
func (d *Driver) Advice() containers.Advice {
	return containers.Advice{
		Setting: "kubeconfig", Fix: "kubectl get --raw /readyz asks the cluster; set kubeconfig to the file that tells how to reach it",
		Images: "a registry that the nodes reach",
	}
}

// Namespace returns the daemon's own namespace.
func (d *Driver) Namespace() string { return d.c.ns.Own() }

// Serves reports whether pods may be made in a namespace.
func (d *Driver) Serves(namespace string) bool { return d.c.ns.Serves(namespace) }

// Served lists the namespaces in which pods may be made, the daemon's first, or returns nil if
// pods may be made in all namespaces.
func (d *Driver) Served() []string { return d.c.ns.Served() }

// Close ends the driver's connections. Pods keep running.
func (d *Driver) Close() error {
	d.c.close()
	d.watch.handover.end()
	d.c.tasks.Wait()
	return nil
}

// Ping asks the cluster for its version.
func (d *Driver) Ping(ctx context.Context) (containers.Engine, error) {
	body, err := d.c.core.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return containers.Engine{}, fail(ctx, "ask the cluster for its version", err)
	}
	var v version.Info
	if err := json.Unmarshal(body, &v); err != nil {
		return containers.Engine{}, fmt.Errorf("ask the cluster for its version: %w: %w", containers.ErrUnavailable, err)
	}
	// Each node may have another runtime.
	return containers.Engine{Version: strings.TrimPrefix(v.GitVersion, "v"), APIVersion: "v1", Runtimes: []string{"node"}}, nil
}

// Image returns the name as the id. Only the start of a pod shows whether a node can fetch the
// image.
func (d *Driver) Image(_ context.Context, ref string) (containers.Image, error) {
	return containers.Image{ID: ref, Unseen: true}, nil
}

// Pull does nothing: the node that gets the pod fetches the image.
func (d *Driver) Pull(context.Context, string, containers.Credential) error { return nil }
