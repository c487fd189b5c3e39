package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/root"
	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/containers/engines"
)

func TestMain(m *testing.M) {
	register()
	os.Exit(m.Run())
}

// nobody writes a kubeconfig whose cluster does not answer.
func nobody(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}],
		users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: k, user: u, namespace: lab}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDriver checks that the program has the configured driver, and that its error names the
// address and a fix.
func TestDriver(t *testing.T) {
	e, ok := engines.Named(settings.Drivers[len(settings.Drivers)-1])
	if !ok {
		t.Fatalf("no driver %s", settings.Drivers[len(settings.Drivers)-1])
	}
	d, err := e.Open(engines.Settings{DataDir: t.TempDir(), Kubeconfig: nobody(t)})
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := d.(containers.Advised); !ok || d.Name() != e.Name || a.Address() == "" || a.Advice() == (containers.Advice{}) {
		t.Errorf("driver %s of row %s", d.Name(), e.Name)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestDaemon checks that the daemon treats the driver as a cluster's, and first asks for the
// Lease.
func TestDaemon(t *testing.T) {
	t.Setenv("CARMA_CONFIG", os.DevNull)
	var errs bytes.Buffer
	dir := t.TempDir()
	code := root.Execute(cli.New(nil, &errs, &errs, "test"), []string{
		"daemon", "--driver", "kubernetes", "--kubeconfig", nobody(t), "--data-dir", dir, "--socket", filepath.Join(dir, "s"),
	}, nil)
	if text := errs.String(); code == cli.ExitOK || !strings.Contains(text, "driver kubernetes: take the Lease carma-daemon") {
		t.Errorf("code %d, %s", code, text)
	}
}
