//go:build kubernetes

package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// variants lists the installations: a kustomization that names folders of configs/kubernetes,
// and the values with which the chart makes the same objects.
var variants = map[string]struct{ kustomization, values string }{
	"simulated":       {"resources: [%s/overlays/simulated]", "agent: {gpus: simulated}"},
	"nvidia":          {"resources: [%s/overlays/nvidia]", "{}"},
	"jobs":            {"resources: [%[1]s/overlays/nvidia]\ncomponents: [%[1]s/components/jobs]", "jobs: true"},
	"every-namespace": {"resources: [%[1]s/overlays/nvidia]\ncomponents: [%[1]s/components/every-namespace]", `taskNamespaces: ["*"]`},
	"listen":          {"resources: [%[1]s/overlays/nvidia]\ncomponents: [%[1]s/components/listen]", "listen: {enabled: true}"},
	"all": {"resources: [%[1]s/overlays/nvidia]\ncomponents: [%[1]s/components/every-namespace, %[1]s/components/listen, %[1]s/components/jobs]",
		`{taskNamespaces: ["*"], listen: {enabled: true}, jobs: true}`},
}

// chart renders the chart with values.
func chart(t *testing.T, values string) []object {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return rendered(t, "helm", "../../../configs/kubernetes/chart", "carma", file)
}

// kustomized renders a kustomization. %s in it is replaced by the path of configs/kubernetes.
func kustomized(t *testing.T, text string, more ...any) []object {
	t.Helper()
	root, err := filepath.Abs("../../../configs/kubernetes")
	dir := t.TempDir()
	if err == nil {
		root, err = filepath.Rel(dir, root)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, text, append([]any{root}, more...)...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rendered(t, "kustomize", dir)
}

// TestManifests checks that the real apiserver accepts the objects of kustomize and Helm
// without unknown fields, and that both make the same objects.
func TestManifests(t *testing.T) {
	c := newCluster(t, "--no-node")
	c.namespace("carma")
	for name, v := range variants {
		t.Run(name, func(t *testing.T) {
			outer := c.t
			c.t = t
			defer func() { c.t = outer }()
			folder, chart := kustomized(t, v.kustomization), chart(t, v.values)
			c.apply(folder, true)
			c.apply(chart, true)
			// The results of the apiserver, without the fields that the two tools add.
			one, other := c.made(only(folder, false, "Namespace")), c.made(chart)
			for name := range one {
				if one[name] != other[name] {
					t.Errorf("%s: kustomize makes\n%s\nand Helm\n%s", name, one[name], other[name])
				}
			}
			if len(one) != len(other) {
				t.Errorf("kustomize makes %v, Helm %v", slices.Sorted(maps.Keys(one)), slices.Sorted(maps.Keys(other)))
			}
		})
	}
}

// TestListenValues checks that another port, Secret and type of the Service replace the
// defaults everywhere, and that none of these objects exist without listen.
func TestListenValues(t *testing.T) {
	text := func(values string) string {
		all, err := json.Marshal(chart(t, values))
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	for _, word := range []string{"7443", "carma-tls", "LISTEN", "tokenreviews", `"Service"`} {
		if strings.Contains(text("{}"), word) {
			t.Errorf("without listen there is %s", word)
		}
	}
	other := text(`listen: {enabled: true, port: 8443, secretName: lab.cert, serviceType: LoadBalancer, serviceAnnotations: {a: b}}`)
	for word, want := range map[string]int{"7443": 0, `"carma-tls"`: 0, `"0.0.0.0:8443"`: 1, `"containerPort":8443`: 1, `"port":8443`: 1, `"secretName":"lab.cert"`: 1, `"LoadBalancer"`: 1, `"annotations":{"a":"b"}`: 1} {
		if got := strings.Count(other, word); got != want {
			t.Errorf("%s is there %d times, want %d: %s", word, got, want, other)
		}
	}
}

// made returns the objects that the apiserver would store, by kind and name.
func (c *cluster) made(list []object) map[string]string {
	c.t.Helper()
	out := map[string]string{}
	for i := range list {
		body, err := json.Marshal(list[i].Object)
		if err != nil {
			c.t.Fatal(err)
		}
		code, answer := c.send(http.MethodPatch, c.path(&list[i])+"?fieldManager=test&force=true&dryRun=All", "application/apply-patch+yaml", body)
		if code != http.StatusOK && code != http.StatusCreated {
			c.t.Fatalf("%s %s: %d %s", list[i].GetKind(), list[i].GetName(), code, answer)
		}
		var o object
		if err := json.Unmarshal(answer, &o.Object); err != nil {
			c.t.Fatal(err)
		}
		o.SetUID("")
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		o.SetCreationTimestamp(noTime)
		delete(o.Object, "status")
		if o.GetKind() == "StatefulSet" { // Helm restarts its pods when the configuration changes
			delete(o.Object["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any), "annotations")
		}
		if o.GetKind() == "DaemonSet" { // the default speed
			args := containersOf(&o)[0]["args"].([]any)
			containersOf(&o)[0]["args"] = slices.DeleteFunc(args, func(a any) bool { return a == "--speed=1" })
		}
		if o.GetKind() == "StatefulSet" { // the order of variables and volumes does not matter here
			pod := o.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			for _, list := range []any{containersOf(&o)[0]["env"], containersOf(&o)[0]["volumeMounts"], pod["volumes"]} {
				slices.SortFunc(list.([]any), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
		if data, ok := o.Object["data"].(map[string]any); ok {
			for k, v := range data {
				data[k] = strings.TrimSpace(v.(string))
			}
		}
		text, err := json.MarshalIndent(o.Object, "", " ")
		if err != nil {
			c.t.Fatal(err)
		}
		out[o.GetKind()+" "+o.GetName()] = string(text)
	}
	return out
}

func containersOf(o *object) (out []map[string]any) {
	list := o.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)
	for _, c := range list {
		out = append(out, c.(map[string]any))
	}
	return out
}
