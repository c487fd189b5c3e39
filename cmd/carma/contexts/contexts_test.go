package contexts

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/configs"
	"carma/runner/api"
)

// TestChoose: CARMA_HOST wins over CARMA_SOCKET, and --socket over both.
func TestChoose(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	config := configs.Config{Socket: "/run/x"}
	for _, row := range []struct {
		host      string
		kind      configs.Kind
		want, err string
	}{
		{"", configs.FromEnv, "unix:///run/x", ""},
		{"https://lab:7443", configs.FromEnv, "https://lab:7443", ""},
		{"unix:///run/y", configs.FromEnv, "unix:///run/y", ""},
		{"https://lab:7443", configs.FromFlag, "unix:///run/x", ""},
		{"http://lab:7443", configs.FromEnv, "", "in the clear"},
		{"lab:7443", configs.FromEnv, "", "write https://host:port"},
	} {
		t.Setenv(HostVariable, row.host)
		c, _, err := Choose("", config, configs.Origins{"socket": {Kind: row.kind}})
		if err == nil && (row.err != "" || c.Host != row.want) || err != nil && (row.err == "" || !strings.Contains(err.Error(), row.err)) {
			t.Errorf("%+v: %+v, %v", row, c, err)
		}
	}
}

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
	client, err := Context{Name: "x", Host: s.URL, CA: ca, Kubeconfig: kubeconfig}.Connect()
	if err != nil {
		t.Fatal(err)
	}
	if uid, err := client.UID(t.Context()); err != nil || uid != 4294967999 || got.Get("Authorization") != "Bearer ann-s" || got.Get(api.NamespaceHeader) != "lab" {
		t.Errorf("%d, %v; sent %v", uid, err, got)
	}
	got = nil
	client, err = Context{Name: "x", Host: s.URL, Kubeconfig: kubeconfig}.Connect()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.UID(t.Context()); err == nil || got != nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the authority: %v; sent %v", err, got)
	}
}
