//go:build kubernetes

// Package fleet simulates nodes of a real control plane as API objects, to test with more nodes
// than one machine can run.
package fleet

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
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

// Fleet simulates nodes as API objects. One loop sends the reports of all kubelets about their
// pods.
type Fleet struct {
	core, resource rest.Interface
	state          string // folder of the test cluster
	failed         sync.Once
	logs           *httptest.Server // serves as all kubelets, for pods that print nothing
	ended          sync.Map         // end of each pod, by name
	runs           sync.Map         // process on each GPU, by UUID
}

// New connects to a cluster with an administrator's kubeconfig. The folder of the kubeconfig
// must be the cluster's folder.
func New(t *testing.T, kubeconfig string) *Fleet {
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
		config.ContentType = runtime.ContentTypeProtobuf // kubelets use the same format
		config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		c, err := rest.RESTClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	f := &Fleet{core: client(corev1.SchemeGroupVersion, "/api"), resource: client(resourcev1.SchemeGroupVersion, "/apis"), state: filepath.Dir(kubeconfig)}
	f.logs = httptest.NewTLSServer(http.HandlerFunc(f.log))
	t.Cleanup(func() { f.logs.CloseClientConnections(); f.logs.Close() })
	return f
}

// log answers like a kubelet for a pod that prints nothing:
// /containerLogs/NAMESPACE/POD/CONTAINER.
func (f *Fleet) log(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) != 5 || parts[1] != "containerLogs" {
		http.NotFound(w, r)
		return
	}
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	if r.URL.Query().Get("follow") != "" {
		select {
		case <-f.end(parts[3]).over:
		case <-r.Context().Done():
		}
	}
}

// ending is the end of a pod. close closes over and may be called again.
type ending struct {
	over  chan struct{}
	close func()
}

func (f *Fleet) end(pod string) ending {
	over := make(chan struct{})
	e, _ := f.ended.LoadOrStore(pod, ending{over, sync.OnceFunc(func() { close(over) })})
	return e.(ending)
}

// GPU returns the UUID of a GPU from its index in the cluster.
func GPU(i int) string { return fmt.Sprintf("GPU-%06d", i) }

func nodeName(i int) string { return fmt.Sprintf("fake-%04d", i) }

// Join adds nodes with eight simulated GPUs of 80 GiB each.
func (f *Fleet) Join(nodes int) {
	work := make(chan int)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range work {
				name := nodeName(i)
				room := corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("128"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110"),
				}
				at, err := netip.ParseAddrPort(f.logs.Listener.Addr().String())
				must(err)
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
					Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Fake", LastHeartbeatTime: metav1.Now()}},
					Addresses:       []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: at.Addr().String()}},
					DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(at.Port())}},
				}}
				var uuids []string
				for g := range 8 {
					uuids = append(uuids, GPU(8*i+g))
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

// Kubelets reports each pod as running when a node gets it, and as ended when it is deleted,
// until the test ends.
func (f *Fleet) Kubelets(t *testing.T) {
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

// informed calls tell with each present object of a kind, and again at each change, until the
// test ends.
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

// turn reports the next state of a pod.
func (f *Fleet) turn(t *testing.T, pod *corev1.Pod) {
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
	f.occupy(pod, over)
	if over {
		f.end(pod.Name).close()
	}
	err := f.core.Patch(types.MergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("status").
		Body([]byte(`{"status":` + state + `}`)).Do(context.Background()).Error()
	if over && err == nil { // a kubelet deletes the pod with grace 0 when its containers are gone
		now := int64(0)
		err = f.core.Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
			Body(&metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}}).Do(context.Background()).Error()
	}
	if err != nil && !apierrors.IsNotFound(err) { // a pod that is gone needs no report
		f.failed.Do(func() { t.Errorf("tell of pod %s: %v", pod.Name, err) })
	}
}

func stamp() string { return metav1.Now().UTC().Format("2006-01-02T15:04:05Z") }

// must panics if a request of a test program fails.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
