package kubernetes

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// asks records the requests to the tests' clusters: scope, group, resource and verb.
var asks struct {
	mu  sync.Mutex
	all map[string]bool
}

// noteRight records the right that a request needs.
func noteRight(r *http.Request) {
	where, text := need(r)
	if where == "" {
		return
	}
	asks.mu.Lock()
	defer asks.mu.Unlock()
	if asks.all == nil {
		asks.all = map[string]bool{}
	}
	asks.all[where+" "+text] = true
	if stream, ok := strings.CutSuffix(text, " get"); ok && (strings.HasSuffix(stream, "pods/exec") || strings.HasSuffix(stream, "pods/attach")) {
		asks.all[where+" "+stream+" create"] = true // Kubernetes also requires create if a stream is opened by GET
	}
}

// need returns the right that an apiserver would require, or empty if none.
func need(r *http.Request) (where, text string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return "", "" // everybody may read the versions
	}
	where = InCluster
	if parts[0] == "namespaces" && len(parts) > 2 {
		where, parts = InTasks, parts[2:]
	}
	resource, named := parts[0], len(parts) > 1
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	verb := map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[r.Method]
	switch {
	case verb != "":
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	case named:
		verb = "get"
	default:
		verb = "list"
	}
	switch {
	case resource == "leases":
		where = InDaemon
	case where == InCluster && (resource == "pods" || resource == "jobs"): // requests about all namespaces that may have tasks
		where = InTasks
	}
	return where, group + " " + resource + " " + verb
}

// listed returns the rights one by one, in the format of need.
func listed(all ...Right) (out []string) {
	for _, r := range all {
		for _, verb := range r.Verbs {
			out = append(out, fmt.Sprintf("%s %s %s %s", r.Where, r.Group, r.Resource, verb))
		}
	}
	return out
}

// TestMain runs all tests, and then compares the requests to the clusters with the list of
// rights. No other right may be used, and, if all tests ran, each listed right must be used.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	wrong := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "rights: "+format+"\n", args...)
		code = 1
	}
	have := listed(DaemonRights...)
	for _, r := range AgentRights {
		if r.Where == InCluster && r.Resource == "resourceclaims" {
			r.Where = InTasks // the right is needed for one claim, in the namespace of its pod
		}
		have = append(have, listed(r)...)
	}
	for ask := range asks.all {
		if !slices.Contains(have, ask) {
			wrong("carma asks for %q, which rights.go does not list", ask)
		}
	}
	if whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && flag.Lookup("test.list").Value.String() == ""; whole && code == 0 {
		for _, right := range listed(DaemonRights...) {
			if !asks.all[right] {
				wrong("rights.go lists %q, and no test needs it", right)
			}
		}
	}
	os.Exit(code)
}

// TestRightsTold checks that the administrator's documentation has the same table.
func TestRightsTold(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Rights\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var rows []string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| resource |") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, r := range append(slices.Clone(DaemonRights), AgentRights...) {
		want = append(want, r.Row())
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the table of docs/kubernetes.md, Rights, is\n%s\nand should be\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}
