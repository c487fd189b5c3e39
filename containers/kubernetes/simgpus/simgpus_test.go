package simgpus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"carma/containers"
	"carma/containers/kubernetes"
	"carma/containers/kubernetes/manifest"
)

// codecs decode the driver's messages, in JSON or in the cluster's own encoding.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	if err := resourcev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return serializer.NewCodecFactory(scheme)
}()

// apiserver serves one claim for both GPUs, and stores the published slice.
type apiserver struct {
	mu    sync.Mutex
	slice *resourcev1.ResourceSlice
}

func (a *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch name := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/apis/resource.k8s.io/v1/"); name {
	case "POST resourceslices":
		a.slice = &resourcev1.ResourceSlice{}
		if body, err := io.ReadAll(r.Body); err == nil {
			_, _, _ = codecs.UniversalDeserializer().Decode(body, nil, a.slice)
		}
		_ = json.NewEncoder(w).Encode(a.slice)
	case "DELETE resourceslices/node-1-gpu.carma.dev":
		a.slice = nil
		_, _ = w.Write([]byte("{}"))
	case "GET namespaces/lab/resourceclaims/x":
		fmt.Fprint(w, `{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":{"name":"x","uid":"u1"},"status":{"allocation":{"devices":{"results":[
			{"request":"gpu-0","driver":"gpu.carma.dev","pool":"node-1","device":"gpu-1","shareID":"s1"},
			{"request":"gpu-1","driver":"another.driver","pool":"node-1","device":"gpu-7"}]}}}}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

// TestKubelet acts as the kubelet: it registers the driver, and prepares and unprepares a claim
// twice.
func TestKubelet(t *testing.T) {
	api := &apiserver{}
	server := httptest.NewServer(api)
	defer server.Close()
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("", "dra")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"x","cluster":{"server":%q}}],"users":[{"name":"x"}],"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}]}`, server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, err := kubernetes.New(kubernetes.Options{Kubeconfig: config})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	p, err := Start(t.Context(), Options{
		Cluster: cluster, Node: "node-1", UUIDs: []string{"GPU-a", "GPU-b"}, Bytes: 80 << 30, Kubelet: dir, CDI: filepath.Join(dir, "cdi"),
		Env: []string{"A=1"}, Mounts: []containers.Mount{{Source: "/run/sim", Target: "/sim", ReadOnly: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	registrar := registration.NewRegistrationClient(dial(t, filepath.Join(dir, "plugins_registry", "gpu.carma.dev-reg.sock")))
	info, err := registrar.GetInfo(ctx, &registration.InfoRequest{})
	if err != nil || info.Type != registration.DRAPlugin || info.Name != "gpu.carma.dev" {
		t.Fatalf("%+v, %v", info, err)
	}
	status := func(taken bool) {
		t.Helper()
		if _, err := registrar.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: taken}); err != nil {
			t.Fatal(err)
		}
	}
	if status(false); api.slice != nil {
		t.Error("the GPUs are published before the kubelet has taken the driver in")
	}
	for range 2 { // a restarted kubelet has deleted the slices
		api.slice = nil
		status(true)
		if api.slice == nil || len(api.slice.Spec.Devices) != 2 || *api.slice.Spec.Devices[1].Attributes[manifest.UUIDAttribute].StringValue != "GPU-b" {
			t.Fatalf("published: %+v", api.slice)
		}
		<-p.Offered()
	}
	kubelet := dra.NewDRAPluginClient(dial(t, info.Endpoint))
	good, other := &dra.Claim{Namespace: "lab", Name: "x", Uid: "u1"}, &dra.Claim{Namespace: "lab", Name: "x", Uid: "u2"}
	for range 2 {
		got, err := kubelet.NodePrepareResources(ctx, &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{good, other}})
		if err != nil || len(got.Claims["u1"].Devices) != 1 || got.Claims["u1"].Error != "" || got.Claims["u2"].Error == "" {
			t.Fatalf("%+v, %v", got, err)
		}
		if d := got.Claims["u1"].Devices[0]; d.DeviceName != "gpu-1" || d.GetShareId() != "s1" || len(d.CdiDeviceIds) != 1 || d.CdiDeviceIds[0] != "gpu.carma.dev/claim=u1" {
			t.Errorf("%+v", d)
		}
	}
	b, err := os.ReadFile(p.file("u1"))
	for _, want := range []string{`"name":"u1"`, `"A=1"`, `"hostPath":"/run/sim"`, `"ro"`} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s, %v", want, b, err)
		}
	}
	for range 2 {
		got, err := kubelet.NodeUnprepareResources(ctx, &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{good}})
		if err != nil || got.Claims["u1"].Error != "" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "cdi")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := p.Close(context.Background()); err != nil || api.slice != nil {
		t.Errorf("close: %v, slice %v", err, api.slice)
	}
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
