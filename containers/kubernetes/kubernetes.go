// Package kubernetes runs containers as pods of a Kubernetes cluster. It decides nothing:
// a pod is pinned to the node of the GPUs that it was given, and a ResourceClaim
// allocates the memory of these GPUs. The cluster's scheduler only checks that the
// allocation is possible.
//
// A container is a pod and, if it has GPUs, a claim of the same name. Both stay until
// [Driver.Remove]: the pod by a finalizer, so that its end can be read even if somebody
// deletes it. A scheduling gate keeps a pod that is not started. A pod's name is fixed by
// task and attempt, and a pod runs at most once, so no attempt starts twice. A daemon
// that dies between pod and claim leaves a gated pod; the next one makes the claim before
// it starts the pod, and the annotation carma.dev/gpu-memory says how much.
//
// # Requests
//
// A launch is three requests: the pod with its gate, the claim, the lifting of the gate;
// the stream of its output is a fourth. All else comes by watches of pods, nodes, slices,
// claims and the agents' Leases: a claim is read only if its stream does not show the
// GPUs for this very pod, and a pod is read after 20 s without an event about it, at most
// ten such readings a second. Bodies and streams are protobuf. The claim is made with the
// finalizer that the scheduler would add by a request of its own, and the pod's
// managedFields are dropped with the gate, so that the cluster need not write them at
// each change. On 1,250 fake nodes both together gave 119 pods a second in place of 90
// (one run each, 2026-11-26).
//
// # Full namespaces
//
// Where a ResourceQuota refuses a pod or claim, one task of the namespace is tried at a
// time, after 5 s, then 10 s, at most every 30 s, and 5 s after a task there has ended. The
// first that is not refused lets the others go. carma reads no quotas.
//
// # Jobs
//
// A claim is called like its Job, as a pod's own name is not known when the claim is named.
// So a Job has one pod at a time. carma never deletes a Job: it suspends one whose task has
// ended before it.
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
	// Kubeconfig is the path of a file with the cluster's address and credentials. If
	// empty, it is found as by kubectl (KUBECONFIG, ~/.kube/config), or as by a pod of
	// the cluster.
	Kubeconfig string
	// Namespace has the daemon's Lease, and the pods and claims of specs that name no
	// other namespace. The default is the kubeconfig's namespace, or default.
	Namespace string
	// Namespaces are the others in which pods may be made; see [Driver.Serves].
	// [manifest.AllNamespaces] is every one.
	Namespaces []string
	// Audience is the required audience of users' tokens, the apiserver if empty.
	Audience string
	// HostPaths are the folders of the nodes that may be mounted, with all that is below
	// them. They must be the same on each node, like a shared file system. If there are
	// none, no folder of a node is mounted.
	HostPaths []string
	// StopGrace is the time between a pod's stop signal and its kill if its spec names
	// none. The default is [stopGrace].
	StopGrace time.Duration
	// ClaimPatience is the longest time that a started pod may wait for its GPUs, which
	// somebody else may have allocated in the meantime. The default is [claimPatience].
	ClaimPatience time.Duration
	// NodePatience is the longest time that a node may do nothing for a pod that was
	// assigned to it. The default is [nodePatience].
	NodePatience time.Duration
}

// stopGrace is the default of [Options].StopGrace, and kubectl's.
const stopGrace = 30 * time.Second

// claimPatience is the default of [Options].ClaimPatience. The scheduler allocates in
// well under a second; a claim of an attempt that has just ended takes longer to be
// released.
const claimPatience = 30 * time.Second

// nodePatience is the default of [Options].NodePatience. A kubelet makes a pod's
// sandbox and prepares its claim within seconds, and tries again what fails.
const nodePatience = 2 * time.Minute

// Driver is a [containers.Driver] for a Kubernetes cluster.
//
// Each of its parts is responsible for one kind of request and owns the state for it.
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
	making    chan struct{} // a place for each pod that is being made
	fresh     sync.Map      // pods that Create made and nobody has started yet, by id
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

// Address is the apiserver's. It implements [containers.Advised].
func (d *Driver) Address() string { return d.c.config.Host }

// Advice says what to look at if the cluster does not answer.
func (d *Driver) Advice() containers.Advice {
	return containers.Advice{
		Setting: "kubeconfig", Mend: "kubectl get --raw /readyz asks the cluster; set kubeconfig to the file that tells how to reach it",
		Images: "a registry that the nodes reach",
	}
}

// Namespace is the daemon's own.
func (d *Driver) Namespace() string { return d.c.ns.Own() }

// Serves reports whether pods may be made in a namespace.
func (d *Driver) Serves(namespace string) bool { return d.c.ns.Serves(namespace) }

// Served lists the namespaces in which pods may be made, the daemon's first, or is nil if
// pods may be made in all.
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
	// The runtimes are the nodes' own affair.
	return containers.Engine{Version: strings.TrimPrefix(v.GitVersion, "v"), APIVersion: "v1", Runtimes: []string{"node"}}, nil
}

// Image returns only the name as id: which images a cluster's nodes can get shows
// when they start a pod.
func (d *Driver) Image(_ context.Context, ref string) (containers.Image, error) {
	return containers.Image{ID: ref, Unseen: true}, nil
}

// Pull does nothing: the node that gets the pod fetches the image.
func (d *Driver) Pull(context.Context, string, containers.Credential) error { return nil }
