package kubeconfig

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/cmd/carma/contexts"
	"carma/runner/api"
)

// TestConnect: the daemon gets the token and the namespace of the kubeconfig, and only a
// daemon whose certificate the authority signed gets them.
func TestConnect(t *testing.T) {
	var got http.Header
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"user":"ann","uid":4294967999}`))
	}))
	defer s.Close()
	dir := t.TempDir()
	ca, kubeconfig := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "config")
	for path, text := range map[string]string{
		ca: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
		kubeconfig: `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}],
			users: [{name: u, user: {token: ann-s}}], contexts: [{name: c, context: {cluster: k, user: u, namespace: lab}}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client, err := Connect(contexts.Context{Name: "x", Host: s.URL, CA: ca, Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	if uid, err := client.UID(t.Context()); err != nil || uid != 4294967999 || got.Get("Authorization") != "Bearer ann-s" || got.Get(api.NamespaceHeader) != "lab" {
		t.Errorf("%d, %v; sent %v", uid, err, got)
	}
	got = nil
	client, err = Connect(contexts.Context{Name: "x", Host: s.URL, Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.UID(t.Context()); err == nil || got != nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the authority: %v; sent %v", err, got)
	}
}
