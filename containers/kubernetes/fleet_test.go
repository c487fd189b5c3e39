//go:build kubernetes

package kubernetes_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"carma/containers/kubernetes"
)

// controlPlane starts a control plane without a node, and returns its kubeconfig.
func controlPlane(t *testing.T) string {
	t.Helper()
	if out, err := exec.Command("../../test/kubernetes/build.sh", "--cached").CombinedOutput(); err != nil {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if os.Getenv("KUBERNETES_STATE") == "" {
		t.Setenv("KUBERNETES_STATE", "/tmp/carma-kubernetes-scale")
		t.Setenv("KUBERNETES_PORT", "17643")
	}
	script(t, "down.sh")
	t.Cleanup(func() { script(t, "down.sh") })
	return script(t, "up.sh", "--no-node")
}

// fleet are nodes that are only objects, and one loop that does for all of them what a
// kubelet tells of its pods.
type fleet struct {
	core, resource rest.Interface
	state          string // folder of the cluster
	failed         sync.Once
}

func newFleet(t *testing.T, kubeconfig string) *fleet {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, resourcev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	client := func(gv schema.GroupVersion, path string) rest.Interface {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		config.GroupVersion, config.APIPath, config.QPS = &gv, path, -1
		config.ContentType = runtime.ContentTypeProtobuf // as kubelets do
		config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		c, err := rest.RESTClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return &fleet{core: client(corev1.SchemeGroupVersion, "/api"), resource: client(resourcev1.SchemeGroupVersion, "/apis"), state: filepath.Dir(kubeconfig)}
}

// gpuOf is the UUID of a GPU by its number through the cluster.
func gpuOf(i int) string { return fmt.Sprintf("GPU-%06d", i) }

// join makes nodes with eight simulated GPUs of 80 GiB each.
func (f *fleet) join(nodes int) {
	work := make(chan int)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range work {
				name := fmt.Sprintf("fake-%04d", i)
				room := corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("128"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110"),
				}
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
					Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Fake", LastHeartbeatTime: metav1.Now()}},
				}}
				var uuids []string
				for g := range 8 {
					uuids = append(uuids, gpuOf(8*i+g))
				}
				slice := kubernetes.Slice(name, "Fake GPU", uuids, 80<<30)
				must(f.core.Post().Resource("nodes").Body(node).Do(context.Background()).Error())
				must(f.resource.Post().Resource("resourceslices").Body(&slice).Do(context.Background()).Error())
			}
		})
	}
	for i := range nodes {
		work <- i
	}
	close(work)
	all.Wait()
}

// kubelets tells that each pod which a node gets runs, and, when it is deleted, that it
// has ended, until the test ends.
func (f *fleet) kubelets(t *testing.T) {
	work := make(chan *corev1.Pod, 64*1024)
	for range 16 {
		go func() {
			for {
				select {
				case pod := <-work:
					f.turn(t, pod)
				case <-t.Context().Done():
					return
				}
			}
		}()
	}
	tell := func(o any) {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName != "" {
			work <- pod
		}
	}
	informed(t, f.core, "pods", &corev1.Pod{}, tell)
}

// informed tells each object of a kind now and at each change, until the test ends.
func informed(t *testing.T, client rest.Interface, kind string, example runtime.Object, tell func(any)) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client, kind, metav1.NamespaceAll, fields.Everything()), ObjectType: example,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }},
	})
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Errorf("%s cannot be read", kind)
	}
}

// turn does what is next for a pod of a node.
func (f *fleet) turn(t *testing.T, pod *corev1.Pod) {
	state := ""
	switch {
	case pod.DeletionTimestamp != nil && pod.Status.Phase == corev1.PodRunning:
		state = `{"phase":"Failed","containerStatuses":[{"name":"task","image":"none","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":137,"startedAt":"` + stamp() + `","finishedAt":"` + stamp() + `"}}}]}`
	case pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending:
		state = `{"phase":"Running","containerStatuses":[{"name":"task","image":"none","imageID":"","ready":true,"restartCount":0,"state":{"running":{"startedAt":"` + stamp() + `"}}}]}`
	default:
		return
	}
	over := pod.DeletionTimestamp != nil
	err := f.core.Patch(types.MergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("status").
		Body([]byte(`{"status":` + state + `}`)).Do(context.Background()).Error()
	if over && err == nil { // a kubelet deletes it for good when its containers are gone
		now := int64(0)
		err = f.core.Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
			Body(&metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}}).Do(context.Background()).Error()
	}
	if err != nil && !apierrors.IsNotFound(err) { // one that is gone by now needs nothing
		f.failed.Do(func() { t.Errorf("tell of pod %s: %v", pod.Name, err) })
	}
}

// cpu is the CPU time in seconds of each program of the control plane, and of this process.
func (f *fleet) cpu() map[string]float64 {
	out := map[string]float64{}
	for _, name := range []string{"etcd", "apiserver", "scheduler", "controllers"} {
		pid, err := os.ReadFile(filepath.Join(f.state, "run", name+".pid"))
		must(err)
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		must(err)
		_, rest, _ := strings.Cut(string(stat), ") ")
		for _, field := range strings.Fields(rest)[11:13] {
			ticks, err := strconv.ParseFloat(field, 64)
			must(err)
			out[name] += ticks / 100
		}
	}
	var own syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &own))
	out[""] = float64(own.Utime.Nano()+own.Stime.Nano()) / 1e9
	return out
}

// cpuSince says what each program has used since.
func (f *fleet) cpuSince(before map[string]float64) string {
	now := f.cpu()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if name != "" {
			out = append(out, fmt.Sprintf("%s %.1f", name, now[name]-before[name]))
		}
	}
	return strings.Join(out, ", ")
}

func (f *fleet) own(before map[string]float64) float64 { return f.cpu()[""] - before[""] }

func stamp() string { return metav1.Now().UTC().Format("2006-01-02T15:04:05Z") }

// must ends a test program whose cluster does not do as it should.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
