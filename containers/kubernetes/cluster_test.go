package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"carma/containers/containerstest"
	"carma/containers/kubernetes/manifest"
)

// cluster is a fake of the parts of an apiserver, a scheduler and a kubelet that the driver
// uses. Its pods run on a fake container engine.
type cluster struct {
	*httptest.Server
	engine *containerstest.Fake
	images map[string]bool

	mu     sync.Mutex
	pods   map[string]*corev1.Pod
	claims map[string]*resourcev1.ResourceClaim
	slices []resourcev1.ResourceSlice
	// ran is the id of a pod's container in the engine.
	ran map[types.UID]string
	// told, if not nil, is closed before pods are reported as running; taken receives a token for
	// each attach request that has reached a program.
	told, taken chan struct{}
	// logless means that the node has removed the logs of its containers.
	logless   atomic.Bool
	made      int
	version   int
	events    []metav1.WatchEvent
	seen      []string      // namespace and labels of each event's pod, for the selector
	changed   chan struct{} // closed and replaced at each event
	fault     func(r *http.Request) int
	audiences []string // audiences of ann's token
	denied    bool     // refuse all permissions
	// admit refuses a pod with a code and the text of an admission plugin.
	admit func(*corev1.Pod) (int, string)
	// refuse refuses new objects of a resource, as the admission of quotas does.
	refuse func(resource string) (int, string)
	objects
	jobsServed
}

// namespace of the tests.
const namespace = "lab"

func newCluster(t *testing.T, images ...string) *cluster {
	c := &cluster{
		engine: containerstest.NewFake(), images: map[string]bool{}, pods: map[string]*corev1.Pod{}, claims: map[string]*resourcev1.ResourceClaim{},
		ran: map[types.UID]string{}, changed: make(chan struct{}),
	}
	for _, name := range images {
		c.images[name] = true
		c.engine.AddImage(name, containerstest.ToolImage())
	}
	mux := http.NewServeMux()
	const pods, claims = "/api/v1/namespaces/{ns}/pods", "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims"
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"gitVersion": "v1.36.3"})
	})
	mux.HandleFunc("POST "+pods, c.postPod)
	mux.HandleFunc("GET "+pods, c.listPods)
	mux.HandleFunc("GET /api/v1/pods", c.listPods)
	mux.HandleFunc("GET "+pods+"/{name}", c.getPod)
	mux.HandleFunc("PATCH "+pods+"/{name}", c.patchPod)
	mux.HandleFunc("DELETE "+pods+"/{name}", c.deletePod)
	mux.HandleFunc("GET "+pods+"/{name}/log", c.logs)
	mux.HandleFunc("GET "+pods+"/{name}/exec", c.exec)
	mux.HandleFunc("GET "+pods+"/{name}/attach", c.attach)
	mux.HandleFunc("POST "+claims, c.postClaim)
	mux.HandleFunc("GET "+claims+"/{name}", c.getClaim)
	mux.HandleFunc("DELETE "+claims+"/{name}", c.deleteClaim)
	c.serveObjects(mux)
	c.serveJobs(mux)
	c.serveUsers(mux)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noteRight(r)
		c.mu.Lock()
		fault := c.fault
		c.mu.Unlock()
		if fault != nil {
			if code := fault(r); code != 0 {
				refuse(w, code, "Unknown", "the test's fault")
				return
			}
		}
		inJSON(r)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
		c.engine.Shutdown()
	})
	return c
}

// inJSON converts a body in the cluster's own encoding to JSON.
func inJSON(r *http.Request) {
	if r.Header.Get("Content-Type") != runtime.ContentTypeProtobuf {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has closed the connection
	}
	o, _, err := codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		panic(err)
	}
	body, err = json.Marshal(o)
	if err != nil {
		panic(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
}

func (c *cluster) driver(t *testing.T, opts Options) *Driver {
	t.Helper()
	d, err := newDriver(opts, namespace, &rest.Config{Host: c.URL})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// offer publishes simulated GPUs of 80 GiB on a node.
func (c *cluster) offer(node string, uuids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slices = append(c.slices, Slice(node, "Test GPU", uuids, 80<<30))
	c.touch()
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: text,
	})
}

func notFound(w http.ResponseWriter, what string) {
	refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, what+" not found")
}

// tell sends an event about a pod. The caller holds c.mu.
func (c *cluster) tell(kind string, pod *corev1.Pod) {
	c.version++
	pod.ResourceVersion = strconv.Itoa(c.version)
	pod.Kind, pod.APIVersion = "Pod", "v1"
	e := metav1.WatchEvent{Type: kind}
	e.Object.Raw, _ = json.Marshal(pod)
	c.events, c.seen = append(c.events, e), append(c.seen, pod.Namespace+" "+labels.Set(pod.Labels).String())
	close(c.changed)
	c.changed = make(chan struct{})
}

// gone deletes a pod without finalizers. The caller holds c.mu.
func (c *cluster) gone(pod *corev1.Pod) {
	s := manifest.Status(pod)
	over := s == nil && c.ran[pod.UID] == "" || s != nil && s.State.Terminated != nil
	if c.pods[podKey(pod)] == pod && pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0 && over {
		delete(c.pods, podKey(pod))
		c.tell("DELETED", pod)
	}
}

// merge applies a JSON merge patch.
func merge(into, patch map[string]any) {
	for k, v := range patch {
		inner, ok := v.(map[string]any)
		was, is := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case ok && is:
			merge(was, inner)
		default:
			into[k] = v
		}
	}
}

func (c *cluster) postClaim(w http.ResponseWriter, r *http.Request) {
	claim := &resourcev1.ResourceClaim{}
	if err := json.NewDecoder(r.Body).Decode(claim); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	claim.Namespace = r.PathValue("ns")
	if c.refusesNew(w, "resourceclaims", claim.Name) {
		return
	}
	if c.claims[key(claim.Namespace, claim.Name)] != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "claim exists")
		return
	}
	c.claims[key(claim.Namespace, claim.Name)] = claim
	c.touch()
	answer(w, claim)
}

func (c *cluster) getClaim(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if claim := c.claims[keyOf(r)]; claim != nil {
		answer(w, claim)
		return
	}
	notFound(w, "claim")
}

func (c *cluster) deleteClaim(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.claims[keyOf(r)] == nil {
		notFound(w, "claim")
		return
	}
	delete(c.claims, keyOf(r))
	c.touch()
	answer(w, metav1.Status{Status: metav1.StatusSuccess})
}

// logs answers like a kubelet: both streams in one, each line after its time.
func (c *cluster) logs(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	pod := c.pods[keyOf(r)]
	id := ""
	if pod != nil {
		id = c.ran[pod.UID]
	}
	c.mu.Unlock()
	switch {
	case pod == nil:
		notFound(w, "pods")
		return
	case id == "":
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "container is waiting to start")
		return
	}
	if c.logless.Load() {
		fmt.Fprintf(w, "unable to retrieve container logs for containerd://%s", id)
		return
	}
	since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("sinceTime"))
	c.stream(w, r, id, since, r.URL.Query().Get("follow") == "true")
}

// has counts the pods and claims that exist.
func (c *cluster) has() (pods, claims int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pods), len(c.claims)
}

func unescaped(words []string) []string {
	out := slices.Clone(words)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "$$", "$")
	}
	return out
}
