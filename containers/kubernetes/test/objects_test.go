//go:build kubernetes

package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// object is any object of a cluster.
type object = unstructured.Unstructured

// renderer is the program that renders manifests and chart, built once.
var renderer = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("./tools/build.sh").Output()
	if err, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("tools/build.sh: %s", err.Stderr)
	}
	return strings.TrimSpace(string(out)), err
})

// rendered returns the renderer's output for a folder or a chart.
func rendered(t *testing.T, args ...string) []object {
	t.Helper()
	program, err := renderer()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("render %v: %v: %s", args, err, stderr.String())
	}
	var list []object
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
		var o object
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("render %v: %v", args, err)
		}
		if len(o.Object) > 0 {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		t.Fatalf("render %v: nothing", args)
	}
	return list
}

// path returns the URL path of an object.
func (c *cluster) path(o *object) string {
	c.t.Helper()
	root := "/apis/" + o.GetAPIVersion()
	if !strings.Contains(o.GetAPIVersion(), "/") {
		root = "/api/" + o.GetAPIVersion()
	}
	if c.kinds[root] == nil {
		list, ok := get[struct{ Resources []kind }](c, root)
		if !ok {
			c.t.Fatalf("the cluster has no %s", o.GetAPIVersion())
		}
		c.kinds[root] = list.Resources
	}
	i := slices.IndexFunc(c.kinds[root], func(k kind) bool { return k.Kind == o.GetKind() && !strings.Contains(k.Name, "/") })
	if i < 0 {
		c.t.Fatalf("%s has no %s", o.GetAPIVersion(), o.GetKind())
	}
	k := c.kinds[root][i]
	if k.Namespaced {
		root += "/namespaces/" + o.GetNamespace()
	}
	return root + "/" + k.Name + "/" + o.GetName()
}

// apply sends objects like kubectl apply --server-side. With dry, the apiserver only checks
// them. Unknown fields are errors.
func (c *cluster) apply(list []object, dry bool) {
	c.t.Helper()
	for i := range list {
		body, err := json.Marshal(list[i].Object)
		if err != nil {
			c.t.Fatal(err)
		}
		query := "?fieldManager=test&force=true&fieldValidation=Strict"
		if dry {
			query += "&dryRun=All"
		}
		code, answer := c.send(http.MethodPatch, c.path(&list[i])+query, "application/apply-patch+yaml", body)
		if code != http.StatusOK && code != http.StatusCreated {
			c.t.Errorf("%s %s: %d %s", list[i].GetKind(), list[i].GetName(), code, answer)
		}
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// only returns the objects of some kinds, or with with false the objects of all other kinds.
func only(list []object, with bool, kinds ...string) (out []object) {
	for _, o := range list {
		if slices.Contains(kinds, o.GetKind()) == with {
			out = append(out, o)
		}
	}
	return out
}

// may reports whether a service account of namespace carma has a permission.
func (c *cluster) may(account, verb, group, resource, namespace string) bool {
	c.t.Helper()
	body, err := json.Marshal(authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:carma:" + account,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace},
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(c.must(http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", string(body)), &review); err != nil {
		c.t.Fatal(err)
	}
	return review.Status.Allowed
}
