//go:build kubernetes

package test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/runner/api"
)

var noTime metav1.Time

// overlay is the simulated overlay for this cluster. Pods have only the machine's network here,
// and the apiserver's service address does not work.
const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%[1]s/overlays/simulated]
components: [%[1]s/components/listen]
images: [{name: carma/daemon, newTag: %[2]q}]
patches:
  - patch: |
      apiVersion: apps/v1
      kind: StatefulSet
      metadata: {name: carma-daemon, namespace: carma}
      spec:
        template:
          spec:
            hostNetwork: true
            containers:
              - name: daemon
                ports: [{$patch: replace}, {name: tls, containerPort: %[5]s}]
                env:
                  - {name: KUBERNETES_SERVICE_HOST, value: 127.0.0.1}
                  - {name: KUBERNETES_SERVICE_PORT, value: "%[3]s"}
                  - {name: CARMA_LISTEN, value: "0.0.0.0:%[5]s"}
                  - {name: CARMA_KUBERNETES_NAMESPACES, value: ann}
  - patch: |
      apiVersion: apps/v1
      kind: DaemonSet
      metadata: {name: carma-agent, namespace: carma}
      spec:
        template:
          spec:
            hostNetwork: true
            containers:
              - name: agent
                args: [agent, --simulate=dgx-station-a100, --kubelet=%[4]s/kubelet, --cdi=%[4]s/cdi, --dir=%[4]s/sim]
                env: [{name: KUBERNETES_SERVICE_HOST, value: 127.0.0.1}, {name: KUBERNETES_SERVICE_PORT, value: "%[3]s"}]
                volumeMounts:
                  - {$patch: replace}
                  - {name: plugins, mountPath: %[4]s/kubelet/plugins}
                  - {name: registry, mountPath: %[4]s/kubelet/plugins_registry}
                  - {name: cdi, mountPath: %[4]s/cdi}
                  - {name: gpus, mountPath: %[4]s/sim}
            volumes:
              - {name: plugins, hostPath: {path: %[4]s/kubelet/plugins}}
              - {name: registry, hostPath: {path: %[4]s/kubelet/plugins_registry}}
              - {name: cdi, hostPath: {path: %[4]s/cdi}}
              - {name: gpus, hostPath: {path: %[4]s/sim}}
`

// installation renders the manifests of the installation, for an image with this tag.
func (c *cluster) installation(tag string) []object {
	c.t.Helper()
	port := c.url[strings.LastIndexByte(c.url, ':')+1:]
	_, listen, _ := net.SplitHostPort(c.near())
	return kustomized(c.t, overlay, tag, port, c.state, listen)
}

// volume makes a volume of the node for the daemon's journal.
func (c *cluster) volume() {
	c.t.Helper()
	dir := filepath.Join(c.state, "journal")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Chown(dir, 65532, 65532); err != nil {
		c.t.Fatal(err)
	}
	c.must(http.MethodPost, "/api/v1/persistentvolumes", fmt.Sprintf(`{"metadata":{"name":"journal"},"spec":{"capacity":{"storage":"20Gi"},"accessModes":["ReadWriteOnce"],
		"persistentVolumeReclaimPolicy":"Retain","hostPath":{"path":%q},"claimRef":{"namespace":"carma","name":"journal-carma-daemon-0"}}}`, dir))
}

const (
	daemonSet = "/apis/apps/v1/namespaces/carma/statefulsets/carma-daemon"
	agentSet  = "/apis/apps/v1/namespaces/carma/daemonsets/carma-agent"
)

// rolled waits until daemon and agents run in the version that was applied last.
func (c *cluster) rolled() {
	c.t.Helper()
	c.until("the daemon is ready", func() bool {
		s, ok := get[appsv1.StatefulSet](c, daemonSet)
		return ok && s.Status.ObservedGeneration == s.Generation && s.Status.ReadyReplicas == 1 && s.Status.CurrentRevision == s.Status.UpdateRevision
	})
	c.until("the agent runs", func() bool {
		s, ok := get[appsv1.DaemonSet](c, agentSet)
		return ok && s.Status.ObservedGeneration == s.Generation && s.Status.NumberReady == 1 && s.Status.UpdatedNumberScheduled == 1
	})
}

// ask returns a client of the daemon in its pod, through its socket on the node.
func (c *cluster) ask() *daemon {
	c.t.Helper()
	pod, ok := get[corev1.Pod](c, "/api/v1/namespaces/carma/pods/carma-daemon-0")
	if !ok {
		c.t.Fatal("there is no pod of the daemon")
	}
	link := filepath.Join("/tmp", "ck-"+string(pod.UID)[:8]) // the path of a socket must be short
	if err := os.Symlink(filepath.Join(c.state, "kubelet/pods", string(pod.UID), "volumes/kubernetes.io~empty-dir/run"), link); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = os.Remove(link) })
	return &daemon{process: &process{t: c.t}, api: api.NewClient(filepath.Join(link, "carma.sock"))}
}

// tasks returns the pods of tasks in a namespace.
func (c *cluster) tasks(namespace string) []corev1.Pod {
	c.t.Helper()
	list, _ := get[corev1.PodList](c, "/api/v1/namespaces/"+namespace+"/pods?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dcarma")
	return list.Items
}

// empty waits until a namespace has neither pods nor claims of tasks.
func (c *cluster) empty(namespace string) {
	c.t.Helper()
	var left []string
	defer func() {
		if c.t.Failed() {
			c.t.Logf("left in %s: %s", namespace, strings.Join(left, "; "))
		}
	}()
	c.until("no pod or claim is left in "+namespace, func() bool {
		claims, ok := get[resourcev1.ResourceClaimList](c, "/apis/resource.k8s.io/v1/namespaces/"+namespace+"/resourceclaims")
		left = nil
		for _, o := range claims.Items {
			left = append(left, fmt.Sprintf("claim %s deleted %v held by %v for %v", o.Name, o.DeletionTimestamp, o.Finalizers, o.Status.ReservedFor))
		}
		for _, o := range c.tasks(namespace) {
			left = append(left, fmt.Sprintf("pod %s deleted %v held by %v, %s %v", o.Name, o.DeletionTimestamp, o.Finalizers, o.Status.Phase, o.Annotations))
		}
		return ok && len(left) == 0
	})
}

// block returns a task that runs the suite's program until it gets a signal, and then ends with
// 0. word identifies its process.
func block(name, word string) api.Submit {
	return api.Submit{Name: name, Image: tool, Mem: 512 << 20, Command: []string{"out:" + word, "block:0"}, Pull: "never"}
}

// printed reports whether a program on the node has printed a line.
func (c *cluster) printed(line string) bool {
	logs, _ := filepath.Glob(filepath.Join(c.state, "kubelet/podlogs/*/*/*.log"))
	return slices.ContainsFunc(logs, func(log string) bool {
		text, _ := os.ReadFile(log)
		return bytes.Contains(text, []byte(" F "+line+"\n"))
	})
}

// finish ends a task of block normally. A program may count as running before it handles
// signals, so finish waits for its first output.
func (c *cluster) finish(word string) {
	c.t.Helper()
	c.until(word+" is printed", func() bool { return c.printed(word) })
	pids := all("out:" + word)
	if len(pids) != 1 {
		c.t.Fatalf("%s has the processes %v, want one", word, pids)
	}
	if err := syscall.Kill(pids[0], syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
}

// TestInstall checks an installation by the manifests. Daemon and agent run as pods with the
// listed rights. A user connects over TLS ([cluster.testListen]). Tasks run, continue while
// both are upgraded, and end once. After the documented uninstallation no object is left.
func TestInstall(t *testing.T) {
	c := newCluster(t)
	c.bringTool()
	c.bringDaemon(t, "0.1.0", "0.1.1")
	c.must(http.MethodPatch, "/api/v1/nodes/localhost", `{"metadata":{"labels":{"carma.dev/simulated":"true"}}}`)
	c.volume()
	objects := c.installation("0.1.0")
	c.apply(only(objects, true, "Namespace"), false)
	secret, ca := c.tlsSecret()
	c.must(http.MethodPost, secrets, secret)
	c.apply(only(objects, false, "Namespace"), true)
	c.apply(only(objects, false, "Namespace"), false)
	c.rolled()
	d := c.ask()
	c.until("the daemon has the node's GPUs", func() bool {
		gpus, err := d.api.GPUs(t.Context())
		return err == nil && len(gpus) == 4 && !slices.ContainsFunc(gpus, func(g api.GPU) bool { return g.Fault != "" })
	})

	// They have only the listed rights.
	for _, r := range [][]string{{"list", "", "secrets", "carma"}, {"create", "", "pods", "default"}, {"patch", "", "nodes", ""}, {"delete", "resource.k8s.io", "resourceslices", ""}, {"create", "", "pods/exec", "kube-system"}} {
		if c.may("carma-daemon", r[0], r[1], r[2], r[3]) {
			t.Errorf("the daemon may %v", r)
		}
	}
	if !c.may("carma-daemon", "create", "", "pods", "carma") || c.may("carma-agent", "create", "", "pods", "carma") {
		t.Error("the daemon may not make pods, or the agent may")
	}

	c.testListen(ca)

	for _, name := range []string{"one", "two"} {
		d.submit(block(name, "install-"+name))
		d.runs(name)
	}
	d.submit(api.Submit{Name: "quick", Image: tool, Mem: 512 << 20, Command: []string{"out:hello", "exit:0"}, Pull: "never"})
	d.ends("quick", 1)
	c.until("only two tasks run", func() bool { return len(uids(c.tasks("carma"))) == 2 })
	before := c.tasks("carma")

	c.apply(only(c.installation("0.1.1"), false, "Namespace"), false)
	c.rolled()
	d = c.ask()
	for _, name := range []string{"one", "two"} {
		d.runs(name)
	}
	pod, _ := get[corev1.Pod](c, "/api/v1/namespaces/carma/pods/carma-daemon-0")
	if got := pod.Spec.Containers[0].Image; got != "carma/daemon:0.1.1" {
		t.Errorf("the daemon's image is %s", got)
	}
	if after := c.tasks("carma"); !slices.Equal(uids(before), uids(after)) {
		t.Errorf("pods of tasks before the upgrade %v, after it %v", uids(before), uids(after))
	}
	c.finish("install-one")
	d.ends("one", 1)

	// Uninstall. The tasks go first, so that the daemon removes its finalizers from their pods.
	if _, err := d.api.Stop(t.Context(), "two", api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	c.empty("carma")
	slices.Reverse(objects)
	for i := range objects {
		c.must(http.MethodDelete, c.path(&objects[i]), "")
	}
	c.gone("carma")
	c.until("the node offers no GPUs", func() bool {
		list, ok := get[resourcev1.ResourceSliceList](c, "/apis/resource.k8s.io/v1/resourceslices")
		return ok && len(list.Items) == 0
	})
	for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
		code, answer := c.send(http.MethodGet, "/apis/rbac.authorization.k8s.io/v1/"+kind, "application/json", nil)
		if code != http.StatusOK || strings.Contains(string(answer), `"carma-`) {
			t.Errorf("%s of carma are left: %d", kind, code)
		}
	}
}

// gone waits until a deleted namespace is gone.
func (c *cluster) gone(name string) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		n, ok := get[corev1.Namespace](c, "/api/v1/namespaces/"+name)
		if !ok {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the namespace %s is not gone within %s: %+v", name, patience, n.Status.Conditions)
		}
	}
}

// uids returns the uids of the pods that have not ended.
func uids(pods []corev1.Pod) (out []string) {
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			out = append(out, string(pods[i].UID))
		}
	}
	slices.Sort(out)
	return out
}
