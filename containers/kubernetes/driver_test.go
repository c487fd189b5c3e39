package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carma/containers"
)

func task(name string, args ...string) containers.Spec {
	return containers.Spec{
		Name: name, Image: toolImage, Command: args, Identity: map[string]string{"carma.task": "1"},
		Labels: map[string]string{"carma.why": "a text with spaces, longer than a label"},
	}
}

// begin creates and starts a container.
func begin(t *testing.T, d *Driver, spec containers.Spec) string {
	t.Helper()
	id, err := d.Create(t.Context(), spec)
	if err == nil {
		err = d.Start(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// change edits a pod as the cluster would.
func (c *cluster) change(name string, edit func(*corev1.Pod)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit(c.pods[name])
	c.tell("MODIFIED", c.pods[name])
}

// TestRefused checks that a request that a cluster cannot fulfil is refused with a message of
// one line, and that nothing is made.
func TestRefused(t *testing.T) {
	c := newCluster(t, toolImage)
	d := c.driver(t, Options{HostPaths: []string{"/shared/"}})
	defer d.Close()
	for say, spoil := range map[string]func(*containers.Spec){
		"static CPU manager":        func(s *containers.Spec) { s.CPUSet = "0-3" },
		"--ulimit":                  func(s *containers.Spec) { s.Ulimits = []string{"core=0"} },
		"--pids":                    func(s *containers.Spec) { s.Pids = 100 },
		"leave out mode, exec, uid": func(s *containers.Spec) { s.Tmpfs = []string{"/x:uid=7"} },
		"--device":                  func(s *containers.Spec) { s.Devices = []string{"/dev/null"} },
		"--stop-signal":             func(s *containers.Spec) { s.StopSignal = "SIGINT" },
		"port-forward":              func(s *containers.Spec) { s.Ports = []string{"80"} },
		"IPC":                       func(s *containers.Spec) { s.IPC = containers.IPCHost },
		"without network":           func(s *containers.Spec) { s.Sandbox = &containers.Sandbox{} },
		"Deployments":               func(s *containers.Spec) { s.Hosted = &containers.Hosted{} },
		"mode 777":                  func(s *containers.Spec) { s.Tmpfs = []string{"/x:mode=700"} },
		"mounting /home/ada":        func(s *containers.Spec) { s.Mounts = []containers.Mount{{Source: "/home/ada", Target: "/x"}} },
		"mounting /shared2":         func(s *containers.Spec) { s.Mounts = []containers.Mount{{Source: "/shared2", Target: "/x"}} },
		"mounting /shared/../etc":   func(s *containers.Spec) { s.Mounts = []containers.Mount{{Source: "/shared/../etc", Target: "/x"}} },
	} {
		spec := task("refused")
		spoil(&spec)
		_, err := d.Create(t.Context(), spec)
		if !errors.Is(err, containers.ErrUnsupported) || !errors.Is(err, containers.ErrInvalid) || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", say, err)
		}
	}
	if pods, claims := c.has(); pods+claims != 0 {
		t.Errorf("%d pods, %d claims", pods, claims)
	}
	spec := task("allowed", "exit:0")
	spec.Mounts = []containers.Mount{{Source: "/shared/data", Target: "/x"}}
	if _, err := d.Create(t.Context(), spec); err != nil {
		t.Errorf("a folder that is allowed: %v", err)
	}
}

// TestAttachedOfMissing checks that a pod keeps its GPU while the node does not offer the GPU,
// for example while its agent is upgraded, and that a new driver still knows the GPU.
func TestAttachedOfMissing(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-a", "GPU-b")
	first := c.driver(t, Options{})
	defer first.Close()
	spec := task("two", "block:0")
	spec.GPUs, spec.GPUMemory, spec.Attach = []string{"GPU-b", "GPU-a"}, 50<<30, containers.AttachClaim
	id := begin(t, first, spec)
	c.mu.Lock()
	c.slices = nil
	c.mu.Unlock()
	d := c.driver(t, Options{})
	defer d.Close()
	if got, err := d.Attached(t.Context(), id); err != nil || containers.CheckGPUs(spec, got, nil) != nil {
		t.Errorf("attached %+v, %v", got, err)
	}
}

// TestStartWithoutClaim: a daemon died after it had made a pod and before it had made the
// claim. The next daemon makes the claim before it starts the pod.
func TestStartWithoutClaim(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-a", "GPU-b")
	first := c.driver(t, Options{})
	defer first.Close()
	spec := task("half", "block:0")
	spec.GPUs, spec.GPUMemory, spec.Attach = []string{"GPU-b", "GPU-a"}, 50<<30, containers.AttachClaim
	id, err := first.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	want := c.claims["half"].Spec
	delete(c.claims, "half")
	c.mu.Unlock()
	d := c.driver(t, Options{ClaimPatience: 100 * time.Millisecond, NodePatience: 100 * time.Millisecond})
	defer d.Close()
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.claims["half"]; got == nil || !reflect.DeepEqual(got.Spec, want) {
		t.Errorf("the claim is %+v, want %+v", got, want)
	}
}

// TestBooking checks that the claim names GPU and bytes, two tasks share a GPU, and Attached
// returns the allocation.
func TestBooking(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-a", "GPU-b")
	c.offer("node-2", "GPU-c")
	d := c.driver(t, Options{ClaimPatience: 100 * time.Millisecond})
	defer d.Close()
	spec := task("two", "block:0")
	spec.GPUs, spec.GPUMemory, spec.Attach = []string{"GPU-b", "GPU-a"}, 50<<30, containers.AttachSimulated
	id := begin(t, d, spec)
	claim := c.claims["two"]
	if n := len(claim.Spec.Devices.Requests); n != 2 {
		t.Fatalf("%d requests", n)
	}
	first := claim.Spec.Devices.Requests[0].Exactly
	if q := first.Capacity.Requests["memory"]; q.Value() != 50<<30 || first.Selectors[0].CEL.Expression != `device.attributes["gpu.carma.dev"].uuid == "GPU-b"` {
		t.Errorf("request %+v", first)
	}
	if owner := claim.OwnerReferences[0]; owner.UID != c.pods["two"].UID || owner.Kind != "Pod" {
		t.Errorf("owner %+v", owner)
	}
	if f := c.pods["two"].Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]; f.Key != "metadata.name" || !slices.Equal(f.Values, []string{"node-1"}) {
		t.Errorf("node %+v", f)
	}
	if got, err := d.Attached(t.Context(), id); err != nil || containers.CheckGPUs(spec, got, nil) != nil {
		t.Errorf("attached %+v, %v", got, err)
	}
	other := spec
	other.Name, other.GPUs, other.GPUMemory = "other", []string{"GPU-a"}, 30<<30
	begin(t, d, other)

	// There is no room for a third task. Create must fail, so that the mapper decides again,
	// instead of making a pod that waits.
	third := other
	third.Name = "third"
	id, err := d.Create(t.Context(), third)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Start(t.Context(), id)
	if fault, ok := errors.AsType[*containers.StartFault](err); !ok || fault.Code != "gpu-taken" || fault.Scope != containers.ScopeGPU {
		t.Errorf("start without room: %v", err)
	}
	if exit, err := d.Wait(t.Context(), id); err != nil || containers.Classify(exit, nil, containers.Facts{}).Class != containers.ClassInfrastructure {
		t.Errorf("its end: %+v, %v", exit, err)
	}
	if err := d.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if pods, claims := c.has(); pods != 2 || claims != 2 {
		t.Errorf("%d pods and %d claims, want 2", pods, claims)
	}

	spread := task("spread")
	spread.GPUs = []string{"GPU-a", "GPU-c"}
	if _, err := d.Create(t.Context(), spread); !errors.Is(err, containers.ErrInvalid) {
		t.Errorf("GPUs of two nodes: %v", err)
	}
	spread.GPUs = []string{"GPU-none"}
	if fault, ok := errors.AsType[*containers.StartFault](second(d.Create(t.Context(), spread))); !ok || fault.Device != "GPU-none" {
		t.Errorf("unknown GPU: %v", fault)
	}
}

func second(_ string, err error) error { return err }

// TestBrokenOff: a daemon dies between the creation of the pod and the claim, or finds the
// claim of an earlier attempt.
func TestBrokenOff(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-a")
	d := c.driver(t, Options{})
	defer d.Close()
	spec := task("x", "exit:4")
	spec.GPUs, spec.GPUMemory = []string{"GPU-a"}, 1<<30
	dying := true
	c.fault = func(r *http.Request) int {
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "resourceclaims") && dying {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	if _, err := d.Create(t.Context(), spec); !errors.Is(err, containers.ErrUnavailable) {
		t.Fatalf("create: %v", err)
	}
	if pods, claims := c.has(); pods != 1 || claims != 0 {
		t.Fatalf("%d pods, %d claims", pods, claims)
	}
	c.mu.Lock()
	dying = false
	c.mu.Unlock()
	id := begin(t, d, spec)
	if exit, err := d.Wait(t.Context(), id); err != nil || exit.Code != 4 {
		t.Errorf("%+v, %v", exit, err)
	}
	// The pod is deleted and the claim exists, as if the daemon had died within Remove.
	c.mu.Lock()
	delete(c.pods, "x")
	c.mu.Unlock()
	second := begin(t, d, spec)
	if second == id {
		t.Error("the second pod has the first one's id")
	}
	if _, err := d.Wait(t.Context(), id); !errors.Is(err, containers.ErrNotFound) {
		t.Errorf("wait for the first: %v", err)
	}
	if c.claims["x"].OwnerReferences[0].UID != c.pods["x"].UID {
		t.Error("the second pod has the first one's claim")
	}
}

// TestClusterAway checks that the task is not at fault if a cluster does not answer or refuses
// the request.
func TestClusterAway(t *testing.T) {
	c := newCluster(t, toolImage)
	d := c.driver(t, Options{})
	defer d.Close()
	id := begin(t, d, task("x", "block:0"))
	for code, want := range map[int]error{http.StatusInternalServerError: containers.ErrUnavailable, http.StatusBadGateway: containers.ErrUnavailable} {
		c.breaks(code)
		if _, err := d.Wait(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("code %d: %v", code, err)
		}
	}
	waited := make(chan error, 1)
	c.mu.Lock()
	c.fault = nil
	c.mu.Unlock()
	go func() { _, err := d.Wait(t.Context(), id); waited <- err }()
	time.Sleep(50 * time.Millisecond) // Start must notice it before or after this pause
	c.mu.Lock()
	c.fault = func(*http.Request) int { return http.StatusServiceUnavailable }
	c.mu.Unlock()
	c.CloseClientConnections()
	select {
	case err := <-waited:
		if !errors.Is(err, containers.ErrUnavailable) {
			t.Errorf("wait while the cluster goes: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("wait goes on although the cluster is away")
	}
}

// TestWords checks that $(NAME) in a command reaches the program unchanged, although a cluster
// would replace it.
func TestWords(t *testing.T) {
	c := newCluster(t, toolImage)
	d := c.driver(t, Options{})
	defer d.Close()
	spec := task("x", "out:$(A) $$(A) $A $$", "env:A", "env:B")
	spec.Env = []string{"A=1", "B=$(A)", "A=2"}
	id := begin(t, d, spec)
	var got []string
	err := d.Logs(t.Context(), id, time.Time{}, true, func(_ time.Time, _ containers.Stream, line []byte, _ bool) { got = append(got, string(line)) })
	if want := []string{"$(A) $$(A) $A $$", "A=2", "B=$(A)"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, w := range c.pods["x"].Spec.Containers[0].Args {
		if strings.Contains(strings.ReplaceAll(w, "$$", ""), "$") {
			t.Errorf("%q is not literal", w)
		}
	}
	list, err := d.List(context.Background(), map[string]string{"carma.why": spec.Labels["carma.why"]})
	if err != nil || len(list) != 1 || list[0].ID != id {
		t.Errorf("by a label that a cluster cannot have: %+v, %v", list, err)
	}
}
