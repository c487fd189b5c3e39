package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/containers/kubernetes/manifest"
)

// elsewhere is a driver that makes all its pods in a namespace that is not the daemon's.
type elsewhere struct{ *Driver }

func (e elsewhere) Create(ctx context.Context, spec containers.Spec) (string, error) {
	spec.Namespace = "ann"
	return e.Driver.Create(ctx, spec)
}

// TestSuiteElsewhere runs the suite of all drivers in a namespace other than the daemon's, with
// a daemon that serves all namespaces.
func TestSuiteElsewhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1", "GPU-2")
	containerstest.Suite(t, func(t *testing.T) containers.Driver {
		return elsewhere{c.driver(t, Options{Namespaces: []string{manifest.AllNamespaces}, HostPaths: []string{os.TempDir()}, StopGrace: 3 * time.Second})}
	}, containerstest.Images{Tool: toolImage, Missing: "carma/no-such-image:1", Lacks: Lacks})
	if pods, claims := c.has(); pods != 0 || claims != 0 {
		t.Errorf("%d pods and %d claims are left", pods, claims)
	}
}

// TestNamespaces checks that tasks of one name run in several namespaces, each with its claim
// there, and that a second daemon's driver finds them all by label.
func TestNamespaces(t *testing.T) {
	for _, served := range [][]string{{"ann", "bob"}, {manifest.AllNamespaces}} {
		c := newCluster(t, toolImage)
		c.offer("node-1", "GPU-1")
		first := c.driver(t, Options{Namespaces: served})
		ids := map[string]string{}
		for _, namespace := range []string{"", "ann", "bob"} {
			spec := task("same", "block:0")
			spec.Namespace, spec.Account = namespace, map[string]string{"bob": "trainer"}[namespace]
			spec.GPUs, spec.GPUMemory, spec.Attach = []string{"GPU-1"}, 20<<30, containers.AttachSimulated
			id := begin(t, first, spec)
			if got := c.claims[key(namespace, "same")]; got == nil || got.Status.Allocation == nil {
				t.Fatalf("%q: claim %+v", namespace, got)
			}
			ids[namespace] = id
		}
		if p := c.pods["ann/same"]; p.Spec.ServiceAccountName != "" || p.Spec.AutomountServiceAccountToken == nil || *p.Spec.AutomountServiceAccountToken {
			t.Errorf("a task that names no account has one: %+v", p.Spec)
		}
		if p := c.pods["bob/same"]; p.Spec.ServiceAccountName != "trainer" || p.Spec.AutomountServiceAccountToken != nil {
			t.Errorf("the account of a task that names one: %+v", p.Spec)
		}
		first.Close()

		second := c.driver(t, Options{Namespaces: served})
		all, err := second.List(t.Context(), map[string]string{"carma.task": "1"})
		if err != nil || len(all) != 3 {
			t.Fatalf("found %v, %v", all, err)
		}
		claims, err := second.Claims(t.Context())
		if err != nil || len(claims) != 3 || !claims[0].Ours || !claims[1].Ours || !claims[2].Ours {
			t.Errorf("claims %+v, %v", claims, err)
		}
		for namespace, id := range ids {
			if got, err := second.Attached(t.Context(), id); err != nil || got.Visible != "GPU-1" {
				t.Errorf("%q: %+v, %v", namespace, got, err)
			}
			if err := second.Kill(t.Context(), id); err != nil {
				t.Error(err)
			}
			if exit, err := second.Wait(t.Context(), id); err != nil || exit.Code != 0 {
				t.Errorf("%q: %+v, %v", namespace, exit, err)
			}
			if err := second.Remove(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		if pods, claims := c.has(); pods+claims != 0 {
			t.Errorf("%d pods and %d claims are left", pods, claims)
		}
		second.Close()
	}
}

// TestServed checks that pods are made in served namespaces only, and that pods of another
// daemon there are neither listed nor used.
func TestServed(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1")
	ours := c.driver(t, Options{Namespaces: []string{"ann"}})
	defer ours.Close()
	spec := task("x", "block:0")
	spec.Namespace = "bob"
	if _, err := ours.Create(t.Context(), spec); !errors.Is(err, containers.ErrInvalid) || !strings.Contains(err.Error(), "kubernetes-namespaces") {
		t.Errorf("in a namespace that is not served: %v", err)
	}
	other, err := newDriver(Options{Namespaces: []string{"ann"}}, "second", ours.c.config)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	spec.Namespace, spec.GPUs, spec.GPUMemory, spec.Attach = "ann", []string{"GPU-1"}, 20<<30, containers.AttachSimulated
	id := begin(t, other, spec)
	if all, err := ours.List(t.Context(), map[string]string{"carma.task": "1"}); err != nil || len(all) != 0 {
		t.Errorf("another daemon's pods: %v, %v", all, err)
	}
	if claims, err := ours.Claims(t.Context()); err != nil || len(claims) != 1 || claims[0].Ours {
		t.Errorf("another daemon's claims: %+v, %v", claims, err)
	}
	if err := other.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// TestOldID checks that the ids in a journal of an older version, which contain no namespace,
// still work.
func TestOldID(t *testing.T) {
	c := newCluster(t, toolImage)
	d := c.driver(t, Options{Namespaces: []string{manifest.AllNamespaces}})
	defer d.Close()
	id := begin(t, d, task("x", "exit:3"))
	uid, at := d.c.ns.Split(id)
	if at.Namespace != namespace || at.Name != "x" {
		t.Fatalf("%s is %s", id, at)
	}
	if exit, err := d.Wait(t.Context(), uid+".x"); err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestRefusedByNamespace checks that a quota, Pod Security or a missing service account is a
// fault of one task, with a reason of one line. No object is left, and no other task waits.
func TestRefusedByNamespace(t *testing.T) {
	for says, want := range map[string]struct{ code, text string }{
		"exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0": {"quota", "namespace ann can never take it: its ResourceQuota few allows 0 of pods in all, and the task wants 1; ask its administrator"},
		"failed quota: few: must specify limits.memory for: task":               {"quota", "--host-mem"},
		`violates PodSecurity "restricted:latest": unrestricted capabilities (container "task" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "task" must set securityContext.runAsNonRoot=true)`: {"pod-security", "; name a user that is not root, such as --user 1000:1000"},
		`violates PodSecurity "baseline:latest": hostPath volumes (volume "v0")`: {"pod-security", "; leave out -v"},
		`violates PodSecurity "restricted:latest": restricted volume types (volume "v0" uses restricted volume type "hostPath"), runAsNonRoot != true (pod or container "task" must set securityContext.runAsNonRoot=true)`: {"pod-security", "--user 1000:1000, and leave out -v"},
		`error looking up service account ann/nobody: serviceaccount "nobody" not found`:    {"account", "--service-account"},
		"unable to create new content in namespace ann because it is being terminated":      {"namespace", "being deleted"},
		`User "carma" cannot create resource "pods" in API group "" in the namespace "ann"`: {"rights", "docs/kubernetes.md"},
		`ValidatingAdmissionPolicy 'x' denied request: no`:                                  {"admission", "denied request: no"},
	} {
		c := newCluster(t, toolImage)
		d := c.driver(t, Options{Namespaces: []string{"ann"}})
		c.admit = func(*corev1.Pod) (int, string) { return http.StatusForbidden, says }
		spec := task("x", "exit:0")
		spec.Namespace = "ann"
		_, err := d.Create(t.Context(), spec)
		fault, ok := errors.AsType[*containers.StartFault](err)
		if !ok || fault.Scope != containers.ScopeTask || fault.Code != want.code || !strings.Contains(err.Error(), want.text) ||
			!strings.Contains(err.Error(), "namespace ann") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", says, err)
		}
		if ok && containers.StartFaultOf(err).Scope != containers.ScopeTask {
			t.Errorf("%s: the runner would blame %+v", says, containers.StartFaultOf(err))
		}
		d.Close()
	}
}

// TestClaimRefused checks that the pod is deleted if the cluster refuses its claim.
func TestClaimRefused(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1")
	d := c.driver(t, Options{Namespaces: []string{"ann"}})
	defer d.Close()
	c.fault = func(r *http.Request) int {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/resourceclaims") {
			return http.StatusForbidden
		}
		return 0
	}
	spec := task("x", "exit:0")
	spec.Namespace, spec.GPUs, spec.Attach = "ann", []string{"GPU-1"}, containers.AttachSimulated
	if _, err := d.Create(t.Context(), spec); err == nil {
		t.Fatal("no error")
	}
	if pods, _ := c.has(); pods != 0 {
		t.Error("its pod is left")
	}
}

// TestNamespaceFull checks that a full quota is not the task's fault. The message names the
// quota, the use and the limit, and the task waits. A task that can never fit fails. If a claim
// is refused, its pod is deleted.
func TestNamespaceFull(t *testing.T) {
	for says, want := range map[string]struct {
		scope containers.Scope
		text  string
	}{
		"exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2": {containers.ScopeNamespace, "its ResourceQuota few is full: 2 of 2 pods are used, and the task wants 1"},
		"exceeded quota: few, requested: pods=1,requests.memory=2Gi, used: pods=2,requests.memory=7Gi, limited: pods=2,requests.memory=8Gi": {containers.ScopeNamespace,
			"its ResourceQuota few is full: 2 of 2 pods are used, and the task wants 1; 7Gi of 8Gi requests.memory are used, and the task wants 2Gi"},
		"exceeded quota: few, requested: limits.memory=10Gi,pods=1, used: limits.memory=0,pods=2, limited: limits.memory=8Gi,pods=2": {containers.ScopeTask,
			"its ResourceQuota few allows 8Gi of limits.memory in all, and the task wants 10Gi; ask for less with --host-mem"},
		"exceeded quota: few, requested: requests.cpu=1500m, used: requests.cpu=0, limited: requests.cpu=1":                                                                                                            {containers.ScopeTask, "ask for less with --cpus"},
		"exceeded quota: few, requested: gpu.carma.dev.deviceclass.resource.k8s.io/devices=2, used: gpu.carma.dev.deviceclass.resource.k8s.io/devices=0, limited: gpu.carma.dev.deviceclass.resource.k8s.io/devices=1": {containers.ScopeTask, "ask for fewer GPUs"},
		"status unknown for quota: few, resources: pods": {containers.ScopeNamespace, "not counted yet"},
	} {
		for _, of := range []string{"pods", "resourceclaims"} {
			c := newCluster(t, toolImage)
			c.offer("node-1", "GPU-1")
			d := c.driver(t, Options{Namespaces: []string{"ann"}})
			c.refuse = func(resource string) (int, string) {
				if resource != of {
					return 0, ""
				}
				return http.StatusForbidden, says
			}
			spec := task("x", "exit:0")
			spec.Namespace, spec.GPUs, spec.Attach = "ann", []string{"GPU-1"}, containers.AttachSimulated
			_, err := d.Create(t.Context(), spec)
			fault, ok := errors.AsType[*containers.StartFault](err)
			if !ok || fault.Scope != want.scope || fault.Code != "quota" || !strings.Contains(fault.Text, want.text) || strings.Contains(fault.Text, "\n") {
				t.Errorf("%s: %s: %+v, %v", of, says, fault, err)
			}
			if pods, claims := c.has(); pods+claims != 0 {
				t.Errorf("%s: %s: %d pods and %d claims are left", of, says, pods, claims)
			}
			d.Close()
		}
	}
}

// TestQuotaConflict checks that a conflict about a quota, which concurrent requests cause,
// counts as a full namespace and not as a fault of the cluster.
func TestQuotaConflict(t *testing.T) {
	c := newCluster(t, toolImage)
	d := c.driver(t, Options{Namespaces: []string{"ann"}})
	defer d.Close()
	c.refuse = func(string) (int, string) {
		return http.StatusConflict, `Operation cannot be fulfilled on resourcequotas "few": the object has been modified; please apply your changes to the latest version and try again`
	}
	spec := task("x", "exit:0")
	spec.Namespace = "ann"
	_, err := d.Create(t.Context(), spec)
	if f := containers.StartFaultOf(err); f.Scope != containers.ScopeNamespace || !strings.Contains(f.Text, "at the same time") {
		t.Errorf("%+v, %v", f, err)
	}
}
