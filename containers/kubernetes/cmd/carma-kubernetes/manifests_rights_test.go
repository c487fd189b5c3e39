package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// listedRights reads the table of docs/kubernetes.md: the verbs for each resource, by
// the role that grants them.
func listedRights(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "\n| resource | verbs | reason |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	verbs := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z/, ]+?)( \(cluster\))? \| ([a-z, ]+) \| (.+) \|$`).FindAllStringSubmatch(table, -1) {
		role := "ClusterRole carma-tasks"
		switch {
		case strings.HasSuffix(row[4], "only with `listen`"):
			role = "ClusterRole carma-listen" // role of that component
		case row[2] != "":
			role = "ClusterRole carma-daemon"
		case row[1] == "leases":
			role = "Role carma-daemon"
		}
		for resource := range strings.SplitSeq(row[1], ", ") {
			key := role + ": " + resource
			verbs[key] = append(verbs[key], strings.Split(row[3], ", ")...)
		}
	}
	return sortedVerbs(verbs)
}

func sortedVerbs(verbs map[string][]string) map[string]string {
	out := map[string]string{}
	for key, list := range verbs {
		slices.Sort(list)
		out[key] = strings.Join(slices.Compact(list), ", ")
	}
	return out
}

// TestManifestsRights: the daemon is granted what docs/kubernetes.md lists with a reason,
// and nothing else.
func TestManifestsRights(t *testing.T) {
	groups := map[string]string{"leases": "coordination.k8s.io", "resourceclaims": "resource.k8s.io", "resourceslices": "resource.k8s.io",
		"tokenreviews": "authentication.k8s.io", "subjectaccessreviews": "authorization.k8s.io", "jobs": "batch"}
	granted := map[string][]string{}
	add := func(role string, rules []rbacv1.PolicyRule) {
		if strings.Contains(role, "carma-agent") {
			return
		}
		for _, r := range rules {
			for _, resource := range r.Resources {
				key := role + ": " + resource
				granted[key] = append(granted[key], r.Verbs...)
				if len(r.APIGroups) != 1 || r.APIGroups[0] != groups[resource] {
					t.Errorf("%s: API groups %q, want %q", key, r.APIGroups, groups[resource])
				}
			}
		}
	}
	for _, o := range manifestObjects(t) {
		switch o := o.(type) {
		case *rbacv1.Role:
			add("Role "+o.Name, o.Rules)
		case *rbacv1.ClusterRole:
			add("ClusterRole "+o.Name, o.Rules)
		}
	}
	want, got := listedRights(t), sortedVerbs(granted)
	if len(want) < 5 {
		t.Fatalf("docs/kubernetes.md lists %v", want)
	}
	keys := slices.Sorted(maps.Keys(want))
	for key := range got {
		if _, ok := want[key]; !ok {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if want[key] != got[key] {
			t.Errorf("%s: granted %q, listed %q", key, got[key], want[key])
		}
	}
}
